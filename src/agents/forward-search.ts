/**
 * Finds parts of a text. The positions from which a part is searched may only grow, so each part takes one pass over `text`. Returns -1 if there is
 * none.
 */
export function createForwardSearch(text: string): (part: string, from: number) => number {
  const positions = new Map<string, number>();
  return (part, from) => {
    const last = positions.get(part);
    // It does not occur any more, or not before there.
    if (last !== undefined && (last < 0 || last >= from)) return last;
    const next = text.indexOf(part, from);
    positions.set(part, next);
    return next;
  };
}
