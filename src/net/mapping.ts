import { GuardError } from "./failure.ts";

type Entry = { key: string; target: URL; prefix: string };

export type Mapping = {
  /** Where a request for the address goes instead; null if nowhere else. */
  toReal(url: URL): URL | null;
  /** An address that the real host of `current` spoke of, in the terms of the caller. */
  toCaller(spoken: URL, current: URL): URL;
};

/**
 * Compiles a urlMap: a host name (`docs.example.com`, any port), a host with port, or an origin → the address that stands in for its
 * root. The closest key wins. Throws GuardError("refused") on a target that is no http(s) address.
 */
export function createMapping(urlMap: Record<string, string>): Mapping {
  const entries = Object.entries(urlMap).map(([key, value]): Entry => {
    const target = URL.canParse(value) ? new URL(value) : null;
    if (!target || !/^https?:$/.test(target.protocol) || target.username || target.password)
      throw new GuardError(
        "refused",
        value,
        `The urlMap sends ${key} to ${value}, which is not an http or https address without user name`,
      );
    return { key: keyOf(key), target, prefix: target.pathname.replace(/\/+$/, "") };
  });
  const find = (url: URL) => {
    for (const name of [url.origin, url.host, url.hostname]) {
      const entry = entries.find(({ key }) => key === name);
      if (entry) return entry;
    }
    return null;
  };
  return {
    toReal(url) {
      const entry = find(url);
      if (!entry) return null;
      const real = new URL(url);
      real.protocol = entry.target.protocol;
      real.host = entry.target.host;
      // Setting `host` without a port keeps the port that was there.
      real.port = entry.target.port;
      real.pathname = entry.prefix + url.pathname;
      return real;
    },
    toCaller(spoken, current) {
      const own = find(current);
      const candidates = entries
        .filter(({ target, prefix }) => target.origin === spoken.origin && under(spoken.pathname, prefix))
        .sort((a, b) => Number(b === own) - Number(a === own) || b.prefix.length - a.prefix.length);
      // A server behind a proxy that strips the prefix does not know of it, so its own paths may lack it.
      const entry = candidates[0] ?? (own?.target.origin === spoken.origin ? own : null);
      if (!entry) return spoken;
      const origin = entry === own ? current.origin : entry.key.includes("://") ? entry.key : `https://${entry.key}`;
      const path = candidates[0] ? spoken.pathname.slice(entry.prefix.length) : spoken.pathname;
      return new URL(`${origin}${path.startsWith("/") ? path : `/${path}`}${spoken.search}${spoken.hash}`);
    },
  };
}

const under = (path: string, prefix: string) => path === prefix || path.startsWith(`${prefix}/`);

function keyOf(key: string): string {
  if (/^https?:\/\//i.test(key)) return URL.canParse(key) ? new URL(key).origin : key;
  return key.toLowerCase();
}
