import { pageKey } from "../../net/page-key.ts";

/** All links that were found, followed or not. */
export type LinkGraph = {
  add(from: string, to: Iterable<string>): void;
  /** Number of clicks from the nearest start to a page; null if there is no path. */
  clicksTo(url: string, starts: Iterable<string>): number | null;
};

/** The distance is counted over the site's links, so that it doesn't depend on the order in which we read pages. */
export function createLinkGraph(): LinkGraph {
  const targets = new Map<string, Set<string>>();
  return {
    add(from, to) {
      const key = pageKey(from);
      const urls = targets.get(key) ?? new Set();
      for (const url of to) urls.add(pageKey(url));
      targets.set(key, urls);
    },
    clicksTo(url, starts) {
      const goal = pageKey(url);
      let ring = new Set([...starts].map(pageKey));
      const visited = new Set(ring);
      for (let clicks = 0; ring.size > 0; clicks++) {
        if (ring.has(goal)) return clicks;
        const next = new Set<string>();
        for (const page of ring)
          for (const target of targets.get(page) ?? [])
            if (!visited.has(target)) {
              visited.add(target);
              next.add(target);
            }
        ring = next;
      }
      return null;
    },
  };
}
