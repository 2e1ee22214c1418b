/** What every peer is given to do: a limit for each API key that no bench can reach, so that all requests are admitted. */

export const QUOTA = 60_000_000;
export const WINDOW_MS = 60_000;
