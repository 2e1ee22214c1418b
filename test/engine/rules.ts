/** The rules that tests are about are made as the simulator makes them. */
export * from '../../scripts/sim/rules.ts';
