/** What a middle owner says, as far as it can be believed: one of another version, or a faulty one, must not spoil a counter. */
import type { Limit } from '../core/decision.ts';
import type { LentNow, MiddleReport, Total } from './messages.ts';
import { LEASE_MS } from './middle-terms.ts';

/** No lease of an isolate lasts for longer (`engine/lease-terms`). */
const LENT_ON_MS_MAX = 1_000;

/** `undefined` when it is no report. */
export function believableReport(report: Partial<MiddleReport> | null | undefined): MiddleReport | undefined {
  const { counterId, limit } = report ?? {};
  if (typeof counterId !== 'string' || limit?.algorithm !== 'token_bucket' || !isSound(limit))
    return undefined;
  if (!Number.isSafeInteger(report?.epoch) || !Number.isSafeInteger(report?.number)) return undefined;
  const { epoch = 0, number = 0, owed, returned } = report ?? {};
  return {
    counterId,
    limit,
    epoch,
    number,
    lease: report?.lease && lentNow(report.lease, limit, LEASE_MS),
    lentOn: lentNow(report?.lentOn, limit, LENT_ON_MS_MAX),
    held: amount(report?.held),
    owed: total(owed),
    returned: total(returned),
    lent: amount(report?.lent),
    unitsPerSecond: amount(report?.unitsPerSecond),
    largestCost: amount(report?.largestCost),
    isShort: report?.isShort === true,
    isFinal: report?.isFinal === true,
  };
}

/** Never more than there is of the limit. */
function lentNow(
  lent: Partial<LentNow> | undefined,
  { quota, windowMs, burst }: Limit,
  lifeMs: number,
): LentNow {
  return {
    unitsPerMs: Math.min(quota / windowMs, amount(lent?.unitsPerMs)),
    capacity: Math.min(burst, amount(lent?.capacity)),
    endsInMs: Math.min(lifeMs, amount(lent?.endsInMs)),
  };
}

function isSound({ quota, windowMs, burst }: Limit): boolean {
  return quota >= 0 && windowMs > 0 && burst >= 0 && Number.isFinite(quota + windowMs + burst);
}

function total(value: Total | undefined): Total {
  const units = amount(value?.units);
  return { units, heard: Math.min(units, amount(value?.heard)) };
}

function amount(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0;
}
