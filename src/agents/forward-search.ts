/** Finds parts of a text from positions that only grow, each part with one pass over `text`. Returns -1 if there is none. */
export function createForwardSearch(text: string): (part: string, from: number) => number {
  const found = new Map<string, number>();
  return (part, from) => {
    const last = found.get(part) ?? 0;
    if (last < 0 || last >= from) return last;
    const next = text.indexOf(part, from);
    found.set(part, next);
    return next;
  };
}
