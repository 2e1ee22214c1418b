/**
 * The production owner with an outage that can be switched on, and with regions apart: a wrapper that exists under `serve --faults` and
 * `serve --region-latency` only.
 *
 * A call that is down rejects at once, as one to a lost machine does. A slow call runs late: its caller has long given up by the
 * time it takes effect, which is what a real slow owner does too. The switch and the count are the isolate's, so they cover
 * every object in it.
 */
import { env } from 'cloudflare:workers';
import { ControlPlane as ProductionControl, LimiterOwner as ProductionOwner } from '../../src/index.ts';
import { placeOf } from '../../src/policy/place.ts';
import { isRegion, REGIONS } from '../../src/policy/region.ts';
import { RegionsApart } from './regions-apart.ts';

export { MetricsHub } from '../../src/index.ts';

type Fault = { readonly mode: 'ok' | 'down' } | { readonly mode: 'slow'; readonly delayMs: number };
type Call = ProductionOwner['call'];

/** A stall beyond this tests nothing more: every caller's deadline is a second or less. */
const DELAY_MS_MAX = 60_000;

let fault: Fault = { mode: 'ok' };

/** Calls of isolates to owners, and of middle owners to roots. */
let ownerCalls = 0;
let rootCalls = 0;

const regions = new RegionsApart({
  latencyMs: Number((env as { readonly REGION_LATENCY_MS?: string }).REGION_LATENCY_MS ?? 0),
  wait: (ms) => scheduler.wait(ms),
});

/** What the control plane offers isolates in place of what is in force. */
const CONTROL_MODES = ['ok', 'down', 'slow', 'empty', 'corrupt', 'older', 'other_domain'] as const;
type ControlMode = (typeof CONTROL_MODES)[number];

let controlMode: ControlMode = 'ok';

/** The production control plane, as a source of rules that can be spoilt. What operators do goes on undisturbed. */
export class ControlPlane extends ProductionControl {
  override async head(domain: string): Promise<string> {
    const head = await super.head(domain);
    switch (controlMode) {
      case 'ok':
        return head;
      case 'down':
        throw new Error('Network connection lost.');
      case 'slow':
        await scheduler.wait(DELAY_MS_MAX);
        return head;
      case 'empty':
        return '';
      case 'corrupt':
        return head.slice(0, head.length / 2);
      case 'older':
        return JSON.stringify({ ...JSON.parse(head), activation: 0 });
      case 'other_domain':
        return JSON.stringify({ ...JSON.parse(head), domain: 'another' });
    }
  }

  override async key(hash: string): Promise<string | null> {
    if (controlMode === 'down') throw new Error('Network connection lost.');
    if (controlMode === 'slow') await scheduler.wait(DELAY_MS_MAX);
    return super.key(hash);
  }
}

export class LimiterOwner extends ProductionOwner {
  override async call(...args: Parameters<Call>): Promise<Awaited<ReturnType<Call>>> {
    const [{ holder }] = args;
    if (placeOf(holder) === undefined) {
      ownerCalls += 1;
      return this.#answer(args);
    }
    rootCalls += 1;
    return regions.call(holder, this.ctx.id.name ?? '', () => this.#answer(args));
  }

  async #answer(args: Parameters<Call>): Promise<Awaited<ReturnType<Call>>> {
    if (fault.mode === 'down') throw new Error('Network connection lost.');
    if (fault.mode === 'slow') await scheduler.wait(fault.delayMs);
    return super.call(...args);
  }
}

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (request.method === 'PUT') {
      const wanted: unknown = await request.json().catch(() => undefined);
      if (pathname === '/control') return setControl(wanted);
      return pathname === '/region' ? setRegion(wanted) : setFault(wanted);
    }
    if (request.method === 'DELETE') {
      ownerCalls = 0;
      rootCalls = 0;
    }
    return Response.json({ ownerCalls, rootCalls });
  },
};

function setFault(wanted: unknown): Response {
  const parsed = parseFault(wanted);
  if (parsed === undefined) {
    const error = `the body is {"mode":"ok"|"down"|"slow","delayMs":N}, N being 0 to ${DELAY_MS_MAX} (slow only)`;
    return Response.json({ error }, { status: 400 });
  }
  fault = parsed;
  return Response.json(fault);
}

function setControl(wanted: unknown): Response {
  const mode = (wanted as { mode?: unknown } | null | undefined)?.mode;
  const known = CONTROL_MODES.find((each) => each === mode);
  if (known === undefined) {
    const error = `the body is {"mode":M}, M being one of ${CONTROL_MODES.join(', ')}`;
    return Response.json({ error }, { status: 400 });
  }
  controlMode = known;
  return Response.json({ mode: known });
}

function setRegion(wanted: unknown): Response {
  const { name, mode } = (wanted ?? {}) as { name?: unknown; mode?: unknown };
  if (!isRegion(name) || (mode !== 'cut' && mode !== 'ok')) {
    const error = `the body is {"name":R,"mode":"cut"|"ok"}, R being one of ${REGIONS.join(', ')}`;
    return Response.json({ error }, { status: 400 });
  }
  regions.set(name, mode);
  return Response.json({ name, mode });
}

function parseFault(wanted: unknown): Fault | undefined {
  if (typeof wanted !== 'object' || wanted === null || !('mode' in wanted)) return undefined;
  if (wanted.mode === 'ok' || wanted.mode === 'down') return { mode: wanted.mode };
  if (wanted.mode !== 'slow' || !('delayMs' in wanted) || typeof wanted.delayMs !== 'number')
    return undefined;
  const { delayMs } = wanted;
  return delayMs >= 0 && delayMs <= DELAY_MS_MAX ? { mode: 'slow', delayMs } : undefined;
}
