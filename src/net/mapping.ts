import { badRequest } from "../errors.ts";
import { httpUrl } from "../schema.ts";

/** An entry of a urlMap: `target` replaces the root of the URLs that match `key`. */
export type MappedPlace = {
  /** A host name (any port), a host with port, or an origin, as the members of a URL spell it. */
  key: string;
  /** The origin that the key refers to when only the urlMap is known. */
  origin: string;
  target: URL;
};

const keyShape = /^(?:(https?):\/\/)?(\[[0-9a-f:.]+\]|[^/?#@:[\]\\\s]+)(?::(\d{1,5}))?\/?$/i;
const hostName = /^(?:[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[.+\])$/;

/**
 * Parses a urlMap: host names or http(s) origins, each with the absolute http(s) URL that replaces it. Throws bad_request that
 * names the first invalid entry, or two spellings of the same key.
 */
export function parseUrlMap(urlMap: Record<string, string>): MappedPlace[] {
  const given = new Map<string, string>();
  return Object.entries(urlMap).map(([name, value]) => {
    const place = placeOf(name);
    if (!place)
      throw badRequest(
        `Invalid urlMap: the key ${JSON.stringify(name)} must be a host name or an http or https origin, such as docs.example.com.`,
      );
    const target = httpUrl(value);
    if (!target || target.username || target.password)
      throw badRequest(
        `Invalid urlMap: the value of ${JSON.stringify(name)} must be an absolute http or https URL without user info, not ${JSON.stringify(value)}.`,
      );
    const same = given.get(place.key);
    if (same !== undefined)
      throw badRequest(
        `Invalid urlMap: the keys ${JSON.stringify(same)} and ${JSON.stringify(name)} are the same place. Keep one of them.`,
      );
    given.set(place.key, name);
    return { ...place, target };
  });
}

/** Parses a key. A host with a default port becomes the origin of that scheme, because URLs drop default ports. */
function placeOf(name: string): { key: string; origin: string } | null {
  const [, scheme, host = "", port] = keyShape.exec(name) ?? [];
  const hostname = URL.parse(`http://${host}`)?.hostname ?? "";
  if (!hostName.test(hostname) || Number(port) > 65535) return null;
  const implied = Number(port) === 443 ? "https" : Number(port) === 80 ? "http" : undefined;
  const { origin, host: place } = new URL(`${scheme ?? implied ?? "https"}://${hostname}${port ? `:${port}` : ""}`);
  return { key: scheme || implied ? origin : place, origin };
}

/** The hosts that a urlMap replaces, with the URL of each: the same for all spellings of a key. Sorted. */
export const placesOf = (urlMap: Record<string, string>): [host: string, url: string][] =>
  Object.entries(urlMap)
    .map(([name, url]): [string, string] => {
      const place = placeOf(name);
      return [place ? new URL(place.origin).host : name, url.replace(/[?#].*$/, "").replace(/\/$/, "")];
    })
    .sort();

/** The hosts that a urlMap replaces: two maps with the same hosts are previews of the same place. */
export const hostsOf = (urlMap: Record<string, string>): string =>
  [...new Set(placesOf(urlMap).map(([host]) => host))].join(" ");

/** The keys that can match a URL, most specific first. */
export const keysOf = ({ origin, host, hostname }: URL): string[] => [origin, host, hostname];

const pairsOf = (search: string): string[] => search.replace(/^\?/, "").split("&").filter(Boolean);

/** Secrets in a urlMap: previews take bypass tokens in the query of their URL. */
export const secretsOf = (urlMap: Record<string, string>): string[] =>
  Object.values(urlMap)
    .flatMap((value) => pairsOf(httpUrl(value)?.search ?? ""))
    .map((pair) => decoded(pair.slice(pair.indexOf("=") + 1)));

/** A urlMap for people and reports, without the queries of its values. */
export const shownUrlMap = (urlMap: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(urlMap).map(([name, value]) => {
      const url = httpUrl(value);
      return [name, url?.search ? value.replace(/\?[^#]*/, "?redacted") : value];
    }),
  );

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export type Mapping = {
  /** The mapped URL with the query of its urlMap value; null if no key matches. */
  toReal(url: URL): URL | null;
  /** The host, with port, that a URL is loaded from. */
  toHost(url: URL): string;
  /** The mapped URL for events and messages: without the query of the urlMap value, which may hold a token. */
  toShown(url: URL): URL | null;
  /** Translates a URL that the mapped host of `current` sent back to the caller's host names. */
  toCaller(received: URL, current: URL): URL;
};

/** Compiles a urlMap; the most specific key wins. Throws what `parseUrlMap` throws. */
export const createMapping = (urlMap: Record<string, string>): Mapping => compileMapping(parseUrlMap(urlMap));

/** Compiles a parsed urlMap; the most specific key wins. */
export function compileMapping(mapped: readonly MappedPlace[]): Mapping {
  const places = mapped.map((place) => ({
    ...place,
    prefix: place.target.pathname.replace(/\/+$/, ""),
    query: pairsOf(place.target.search),
  }));
  const byKey = new Map(places.map((place) => [place.key, place]));
  const find = (url: URL) => keysOf(url).flatMap((key) => byKey.get(key) ?? [])[0];
  function toShown(url: URL): URL | null {
    const place = find(url);
    if (!place) return null;
    const shown = new URL(url);
    shown.protocol = place.target.protocol;
    shown.host = place.target.host;
    // Setting `host` without a port keeps the old port.
    shown.port = place.target.port;
    shown.pathname = place.prefix + url.pathname;
    return shown;
  }
  return {
    toHost: (url) => (find(url)?.target ?? url).host,
    toShown,
    toReal(url) {
      const real = toShown(url);
      const query = find(url)?.query ?? [];
      if (!real || query.length === 0) return real;
      const own = pairsOf(url.search);
      real.search = [...own, ...query.filter((pair) => !own.includes(pair))].join("&");
      return real;
    },
    toCaller(received, current) {
      const own = find(current);
      const candidates = places
        .filter(({ target, prefix }) => target.origin === received.origin && under(received.pathname, prefix))
        .sort((a, b) => Number(b === own) - Number(a === own) || b.prefix.length - a.prefix.length);
      // A server behind a prefix-stripping proxy sends paths without the prefix.
      const place = candidates[0] ?? (own?.target.origin === received.origin ? own : null);
      if (!place) return received;
      const origin = place === own ? current.origin : place.origin;
      const path = candidates[0] ? received.pathname.slice(place.prefix.length) : received.pathname;
      const pairs = pairsOf(received.search);
      const search = pairs.filter((pair) => !place.query.includes(pair)).join("&");
      const kept = pairs.length === 0 ? received.search : search && `?${search}`;
      return new URL(`${origin}${path.startsWith("/") ? path : `/${path}`}${kept}${received.hash}`);
    },
  };
}

const under = (path: string, prefix: string) => path === prefix || path.startsWith(`${prefix}/`);
