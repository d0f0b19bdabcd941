import { pageKey } from "../../net/page-key.ts";

/** All links that were found, followed or not: the keys of the pages that each page links to. */
export type LinkGraph = Map<string, Set<string>>;

/** Adds the links of a page. */
export function addToGraph(graph: LinkGraph, from: string, links: { url: string }[]): void {
  const key = pageKey(from);
  const targets = graph.get(key) ?? new Set();
  for (const { url } of links) targets.add(pageKey(url));
  graph.set(key, targets);
}

/**
 * Number of clicks from the nearest start to a page; null if there is no path. The distance is counted over the site's links, so that it doesn't
 * depend on the order in which we read pages.
 */
export function clicksTo(graph: LinkGraph, url: string, starts: string[]): number | null {
  const goal = pageKey(url);
  let ring = new Set(starts.map(pageKey));
  const visited = new Set(ring);
  for (let clicks = 0; ring.size > 0; clicks++) {
    if (ring.has(goal)) return clicks;
    ring = new Set([...ring].flatMap((page) => [...(graph.get(page) ?? [])].filter((target) => !visited.has(target))));
    for (const page of ring) visited.add(page);
  }
  return null;
}
