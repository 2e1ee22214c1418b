/** Numbers and foreign text as the commands show them. */

/** `1,234`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

/** `1 rule`, `2 rules`. */
export function plural(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const;

/** Exact: `90_500` is `1m 30s 500ms`. */
export function durationText(ms: number): string {
  const parts: string[] = [];
  let leftMs = ms;
  for (const [name, unitMs] of UNITS) {
    if (leftMs < unitMs) continue;
    parts.push(`${Math.floor(leftMs / unitMs)}${name}`);
    leftMs %= unitMs;
  }
  return parts.join(' ') || '0s';
}

/** What a log or a rule file says must not move a terminal's cursor: control characters are spelt out. */
export function plainText(text: string): string {
  return text.replace(/\p{C}/gu, (found) => `\\u{${found.codePointAt(0)!.toString(16)}}`);
}
