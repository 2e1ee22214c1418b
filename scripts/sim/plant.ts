/**
 * A known fault, built in from outside the engine: between a gate and its ports, before a gate, or around an owner.
 *
 * The simulator has to find each of them, or it would not find the same fault in the engine either.
 */
import type { Ports } from '../../src/engine/ports.ts';
import type { GateRequest } from '../../src/engine/verdict.ts';
import type { OwnerHost } from './owner-host.ts';
import type { Handle } from './owner-server.ts';

export interface Plant {
  readonly name: string;
  readonly about: string;
  /** Made anew for each run, since it may remember. */
  readonly make: () => Interference;
}

export interface Interference {
  /** Changes what a gate hears of the world. */
  readonly aroundPorts?: (ports: Ports, holder: string) => Ports;
  readonly aroundOwner?: (host: OwnerHost) => Handle;
  readonly beforeGate?: (request: GateRequest, holder: string) => GateRequest;
}
