import { pageKey } from "../../net/page-key.ts";

/** All links that were found, followed or not: for each page, the keys of the pages that it links to, with the text of the first link. */
export type LinkGraph = Map<string, Map<string, string>>;

/** Adds the links of a page. */
export function addToGraph(graph: LinkGraph, from: string, links: { url: string; text?: string }[]): void {
  const key = pageKey(from);
  const targets = graph.get(key) ?? new Map<string, string>();
  for (const { url, text = "" } of links) {
    const target = pageKey(url);
    targets.set(target, targets.get(target) || text);
  }
  graph.set(key, targets);
}

/** The texts of links to a page. */
export function namesOf(graph: LinkGraph, url: string): string[] {
  const key = pageKey(url);
  return [...new Set([...graph.values()].flatMap((targets) => targets.get(key) ?? []))].filter((name) => name !== "");
}

/** If at least this many pages link to the same places, these places show what all pages of the site have in common. */
const minPages = 3;

/** The keys of pages to which most pages with links link: the menu of the site. */
export function menuOf(graph: LinkGraph): string[] {
  const pages = [...graph.values()].filter((targets) => targets.size > 1);
  if (pages.length < minPages) return [];
  const counts = new Map<string, number>();
  for (const targets of pages) for (const target of targets.keys()) counts.set(target, (counts.get(target) ?? 0) + 1);
  return [...counts].flatMap(([target, count]) => (count > pages.length / 2 ? [target] : []));
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
    ring = new Set(
      [...ring].flatMap((page) => [...(graph.get(page)?.keys() ?? [])].filter((target) => !visited.has(target))),
    );
    for (const page of ring) visited.add(page);
  }
  return null;
}
