/** All planted faults by name. */
import type { Plant } from './plant.ts';

export const PLANTS: readonly Plant[] = [];
