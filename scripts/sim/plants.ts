/** All planted faults by name. */
import { giveBack, nowMsFor } from '../../src/core/algorithms.ts';
import type { Counter } from '../../src/engine/counters.ts';
import type { LeaseGrant } from '../../src/engine/lease.ts';
import type { OwnerCall, OwnerReply, Question } from '../../src/engine/messages.ts';
import { Meter } from '../../src/engine/meter.ts';
import type { Ports } from '../../src/engine/ports.ts';
import type { OwnerHost } from './owner-host.ts';
import type { Interference, Plant } from './plant.ts';

export const PLANTS: readonly Plant[] = [
  {
    name: 'grant-not-deducted',
    about: 'what an owner lends stays in its own bucket too',
    make: () => ({
      aroundOwner: (host) => (call) => {
        const reply = host.handle(call);
        const units = reply.answer?.lease?.units ?? 0;
        if (units > 0) for (const counter of decidingOf(host, call.question)) refund(host, counter, units);
        return reply;
      },
    }),
  },
  {
    name: 'outstanding-not-counted',
    about: 'an owner forgets what it has lent, and fills up to the brim and at the full rate',
    make: () => ({
      aroundOwner: (host) => (call) => {
        const reply = host.handle(call);
        for (const counter of host.owner.counters()) counter.lent = undefined;
        return reply;
      },
    }),
  },
  { name: 'give-back-twice', about: 'a charge that is taken back is taken back twice', make: giveBackTwice },
  {
    name: 'lease-after-expiry',
    about: 'a holder goes on spending a lease that has ended',
    make: () => ({
      aroundPorts: hearing((lease) => ({
        ...lease,
        lifeMs: lease.lifeMs + 60_000,
        renewInMs: lease.renewInMs + 60_000,
      })),
    }),
  },
  {
    name: 'hold-ignored',
    about: 'a holder that was told to hold asks again at once',
    make: () => ({
      aroundPorts: hearing((lease) => (lease.isScarce ? { ...lease, isScarce: false, renewInMs: 0 } : lease)),
    }),
  },
  {
    name: 'shadow-decides',
    about: 'a shadow rule refuses requests',
    make: () => ({
      beforeGate: (request) => ({
        ...request,
        enforced: [...request.enforced, ...request.shadow],
        shadow: [],
      }),
    }),
  },
  {
    name: 'denied-demand',
    about: 'the demand for a counter counts arrivals that another counter denied',
    make: deniedDemand,
  },
  { name: 'slow-calls', about: 'every call leaves its isolate 40 ms late', make: slowCalls },
];

/** Applies a give-back once more than the engine does. */
function giveBackTwice(): Interference {
  return {
    aroundOwner: (host) => {
      const charged = new Map<string, Question>();
      return (call) => {
        const reply = host.handle(call);
        const { question } = call;
        for (const id of call.giveBacks ?? []) {
          const taken = charged.get(id);
          charged.delete(id);
          for (const counter of decidingOf(host, taken)) refund(host, counter, taken!.cost);
        }
        if (question !== undefined && reply.answer?.outcome === 'allowed') charged.set(question.id, question);
        return reply;
      };
    },
  };
}

/** Reports the isolate's arrivals as its demand, whatever became of them. */
function deniedDemand(): Interference {
  const clocks = new Map<string, Ports>();
  const meters = new Map<string, Meter>();
  const meterOf = (holder: string, counterId: string) => {
    const key = `${holder} ${counterId}`;
    const meter = meters.get(key) ?? new Meter(clocks.get(holder)!.nowMs());
    meters.set(key, meter);
    return meter;
  };
  const inflate = (holder: string, { question, ...call }: OwnerCall): OwnerCall => {
    if (question === undefined) return call;
    const counters = question.counters.map((counter) => ({
      ...counter,
      unitsPerSecond: meterOf(holder, counter.id).unitsPerSecond(clocks.get(holder)!.nowMs()),
    }));
    return { ...call, question: { ...question, counters } };
  };
  return {
    aroundPorts: (ports, holder) => {
      clocks.set(holder, ports);
      return { ...ports, callOwner: (owner, call) => ports.callOwner(owner, inflate(holder, call)) };
    },
    beforeGate: (request, holder) => {
      const nowMs = clocks.get(holder)!.nowMs();
      for (const { counterId } of request.enforced) meterOf(holder, counterId).arrive(request.cost, nowMs);
      return request;
    },
  };
}

/** More than a whole round trip, and far less than a deadline: nothing falls back, everybody only waits. */
const LATE_MS = 40;

function slowCalls(): Interference {
  return {
    aroundPorts: (ports) => ({
      ...ports,
      callOwner: async (owner, call) => {
        await ports.timer(LATE_MS).done;
        return ports.callOwner(owner, call);
      },
    }),
  };
}

/** Changes each lease on its way to the holder. */
function hearing(change: (lease: LeaseGrant) => LeaseGrant): (ports: Ports) => Ports {
  const heard = (reply: OwnerReply): OwnerReply =>
    reply.answer?.lease === undefined
      ? reply
      : { ...reply, answer: { ...reply.answer, lease: change(reply.answer.lease) } };
  return (ports) => ({
    ...ports,
    callOwner: async (owner, call) => heard(await ports.callOwner(owner, call)),
  });
}

/** The counters that decide a question, as the owner has them. */
function decidingOf(host: OwnerHost, question: Question | undefined): readonly Counter[] {
  const ids = new Set(question?.counters.filter(({ shadow }) => !shadow).map(({ id }) => id));
  return [...host.owner.counters()].filter(({ id }) => ids.has(id));
}

function refund({ owner }: OwnerHost, counter: Counter, units: number): void {
  const nowMs = nowMsFor(counter.limit, owner.clock);
  counter.state = giveBack(counter.limit, counter.state, { cost: units, chargedAtMs: nowMs }, nowMs);
}
