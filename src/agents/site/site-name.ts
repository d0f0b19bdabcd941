import { httpUrl } from "../../schema.ts";

/** Names below it never resolve (RFC 6761). */
const siteDomain = ".site.invalid";

/** The host name that a site has within its runs. Builds with different content have different names, like previews. */
export const toSiteHostname = (digest: string): string => digest.slice(0, 12) + siteDomain;

/** The digits of the digest in the URL of a site; null for any other URL. */
export function siteDigestOf(url: string): string | null {
  const hostname = URL.parse(url)?.hostname ?? "";
  return hostname.endsWith(siteDomain) ? hostname.slice(0, -siteDomain.length) : null;
}

/** The URL that a site is published at: absolute http(s), without query, fragment and user info; null for anything else. */
export function parseSiteUrl(at: string): URL | null {
  const url = httpUrl(at);
  return url && !url.search && !url.hash && !url.username && !url.password ? url : null;
}
