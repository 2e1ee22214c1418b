/** `*` patterns: each star stands for any run of characters, also none. Time is linear in the value for each star. */

export type Glob = (value: string) => boolean;

export function compileGlob(pattern: string): Glob {
  const pieces = pattern.split('*');
  const head = pieces[0] as string;
  const tail = pieces.at(-1) as string;
  const middle = pieces.slice(1, -1);
  return (value) => {
    if (!value.startsWith(head) || !value.endsWith(tail)) return false;
    // Taking each piece at its first place leaves the most room for those after it, so no other place need be tried.
    let from = head.length;
    for (const piece of middle) {
      const at = value.indexOf(piece, from);
      if (at < 0) return false;
      from = at + piece.length;
    }
    return from <= value.length - tail.length;
  };
}
