import { badRequest } from "../errors.ts";
import { httpUrl } from "../schema.ts";
import { decodePercent } from "./percent.ts";

/** An entry of a urlMap: `target` replaces the root of the URLs that match `key`. */
export type MappedHost = {
  /** A host name (any port), a host with port, or an origin, as the members of a URL spell it. */
  key: string;
  /** The origin of the key: with https, unless its scheme or port says otherwise. */
  origin: string;
  target: URL;
};

const bracketedAddress = /\[[0-9a-f:.]+\]/.source;
const namedHost = /[^/?#@:[\]\\\s]+/.source;
/** A host name or an origin, such as `docs.example.com`, `[::1]:8080` or `https://docs.example.com/`. */
const keyShape = new RegExp(
  `^(?:(?<scheme>https?)://)?(?<host>${bracketedAddress}|${namedHost})(?::(?<port>\\d{1,5}))?/?$`,
  "i",
);
const labelShape = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const maxHostName = 253;
const schemesByPort: Record<number, string> = { 80: "http", 443: "https" };

const isHostName = (host: string): boolean =>
  host.startsWith("[") || (host.length <= maxHostName && host.split(".").every((label) => labelShape.test(label)));

/**
 * Parses a urlMap: host names or http(s) origins, each with the absolute http(s) URL that replaces it. Throws bad_request, which names the first
 * invalid entry or two spellings of the same key.
 */
export function parseUrlMap(urlMap: Record<string, string>): MappedHost[] {
  const namesByKey = new Map<string, string>();
  return Object.entries(urlMap).map(([name, value]) => {
    const host = parseKey(name);
    if (!host)
      throw badRequest(
        `Invalid urlMap: the key ${JSON.stringify(name)} must be a host name or an http or https origin, such as docs.example.com.`,
      );
    const target = httpUrl(value);
    if (!target || target.username || target.password)
      throw badRequest(
        `Invalid urlMap: the value of ${JSON.stringify(name)} must be an absolute http or https URL without user info, not ${JSON.stringify(value)}.`,
      );
    const duplicate = namesByKey.get(host.key);
    if (duplicate !== undefined)
      throw badRequest(
        `Invalid urlMap: the keys ${JSON.stringify(duplicate)} and ${JSON.stringify(name)} are the same host. Keep one of them.`,
      );
    namesByKey.set(host.key, name);
    return { ...host, target };
  });
}

/** Parses a key. A host with a default port becomes the origin of that scheme, because URLs drop default ports. */
function parseKey(name: string): { key: string; origin: string } | null {
  const { scheme, host = "", port } = keyShape.exec(name)?.groups ?? {};
  // A trailing dot only says that the name is complete.
  const hostname = URL.parse(`http://${host.replace(/\.$/, "")}`)?.hostname ?? "";
  if (!isHostName(hostname) || (port !== undefined && (Number(port) < 1 || Number(port) > 65535))) return null;
  const impliedScheme = schemesByPort[Number(port)];
  const url = new URL(`${scheme ?? impliedScheme ?? "https"}://${hostname}${port ? `:${port}` : ""}`);
  return { key: scheme || impliedScheme ? url.origin : url.host, origin: url.origin };
}

/** The hosts that a urlMap replaces, each with its URL. The result is sorted, and the same for all spellings of a key. */
export const mappedHostsOf = (urlMap: Record<string, string>): [host: string, url: string][] =>
  Object.entries(urlMap)
    .map(([name, url]): [string, string] => {
      const host = parseKey(name);
      return [host ? new URL(host.origin).host : name, url.replace(/[?#].*$/, "").replace(/\/$/, "")];
    })
    .sort();

/** The hosts that a urlMap replaces, as one text separated by spaces. Two urlMaps with the same hosts are previews of the same product. */
export const hostsOf = (urlMap: Record<string, string>): string =>
  [...new Set(mappedHostsOf(urlMap).map(([host]) => host))].join(" ");

/** The keys that can match a URL, most specific first. */
export const keysOf = ({ origin, host, hostname }: URL): string[] => [origin, host, hostname];

const queryPairsOf = (search: string): string[] => search.replace(/^\?/, "").split("&").filter(Boolean);

/** Secrets in a urlMap: the URL of a preview can have a bypass token in its query. */
export const secretsOf = (urlMap: Record<string, string>): string[] =>
  Object.values(urlMap)
    .flatMap((value) => queryPairsOf(httpUrl(value)?.search ?? ""))
    .map((pair) => pair.slice(pair.indexOf("=") + 1))
    .map((value) => decodePercent(value) ?? value);

/** A urlMap for people and reports, without the queries of its values. */
export const withoutUrlMapTokens = (urlMap: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(urlMap).map(([name, value]) => {
      const url = httpUrl(value);
      return [name, url?.search ? value.replace(/\?[^#]*/, "?redacted") : value];
    }),
  );

export type Mapping = {
  /** The mapped URL with the query of its urlMap value; null if no key matches. */
  toMappedUrl(url: URL): URL | null;
  /** The host, with port, that a URL is loaded from. */
  toHost(url: URL): string;
  /** The mapped URL for events and messages: without the query of the urlMap value, which may hold a token. */
  toMappedUrlWithoutTokens(url: URL): URL | null;
  /** Translates a URL that the mapped host of `current` sent back to the caller's host names. */
  toCallerUrl(received: URL, current: URL): URL;
};

/** Compiles a urlMap; the most specific key wins. Throws what `parseUrlMap` throws. */
export const createMapping = (urlMap: Record<string, string>): Mapping => compileMapping(parseUrlMap(urlMap));

/** Compiles a parsed urlMap; the most specific key wins. */
export function compileMapping(hosts: readonly MappedHost[]): Mapping {
  const entries = hosts.map((host) => ({
    ...host,
    prefix: host.target.pathname.replace(/\/+$/, ""),
    query: queryPairsOf(host.target.search),
  }));
  const byKey = new Map(entries.map((entry) => [entry.key, entry]));
  const find = (url: URL) => keysOf(url).flatMap((key) => byKey.get(key) ?? [])[0];
  function toMappedUrlWithoutTokens(url: URL): URL | null {
    const entry = find(url);
    if (!entry) return null;
    const mappedUrl = new URL(url);
    mappedUrl.protocol = entry.target.protocol;
    mappedUrl.host = entry.target.host;
    // Setting `host` without a port keeps the old port.
    mappedUrl.port = entry.target.port;
    mappedUrl.pathname = entry.prefix + url.pathname;
    return mappedUrl;
  }
  return {
    toHost: (url) => (find(url)?.target ?? url).host,
    toMappedUrlWithoutTokens,
    toMappedUrl(url) {
      const mappedUrl = toMappedUrlWithoutTokens(url);
      const query = find(url)?.query ?? [];
      if (!mappedUrl || query.length === 0) return mappedUrl;
      const ownPairs = queryPairsOf(url.search);
      mappedUrl.search = [...ownPairs, ...query.filter((pair) => !ownPairs.includes(pair))].join("&");
      return mappedUrl;
    },
    toCallerUrl(received, current) {
      const currentEntry = find(current);
      const sameOrigin = entries.filter(({ target }) => target.origin === received.origin);
      const [matching] = sameOrigin
        .filter(({ prefix }) => isUnder(received.pathname, prefix))
        // The entry of the current URL comes first, then the most specific one.
        .sort((a, b) => Number(b === currentEntry) - Number(a === currentEntry) || b.prefix.length - a.prefix.length);
      // A server behind a prefix-stripping proxy sends paths without the prefix.
      const entry = matching ?? sameOrigin.find((each) => each === currentEntry);
      if (!entry) return received;
      const origin = entry === currentEntry ? current.origin : entry.origin;
      const path = received.pathname.slice(matching?.prefix.length ?? 0);
      const search = withoutPairs(received.search, entry.query);
      return new URL(`${origin}${path.startsWith("/") ? path : `/${path}`}${search}${received.hash}`);
    },
  };
}

/** The query that a server sent, without the pairs that it repeats from the urlMap value, because these may hold a token. */
function withoutPairs(search: string, omittedPairs: string[]): string {
  const pairs = queryPairsOf(search);
  if (pairs.length === 0) return search;
  const others = pairs.filter((pair) => !omittedPairs.includes(pair));
  return others.length === 0 ? "" : `?${others.join("&")}`;
}

const isUnder = (path: string, prefix: string) => path === prefix || path.startsWith(`${prefix}/`);

/** Translates the URLs in a text that the mapped host of `current` sent. They get the caller's host names. */
export const toCallerText = ({ toCallerUrl }: Mapping, text: string, current: URL): string =>
  text.replace(/https?:\/\/[^\s"'`<>()[\]{}\\]+/gi, (urlText) => {
    const received = URL.parse(urlText);
    if (received === null) return urlText;
    const url = toCallerUrl(received, current);
    return url === received ? urlText : url.href;
  });
