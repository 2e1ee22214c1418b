/**
 * One structured line for each change of state, and none per request. Nothing in a line is a raw key: owners' names hold hashes.
 */
export interface LogLine {
  readonly event: string;
  readonly [field: string]: string | number | boolean | undefined;
}

export function logEvent(line: LogLine): void {
  console.warn(JSON.stringify({ source: 'edge-limiter', ...line }));
}
