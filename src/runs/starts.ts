import type { AdditionalUrl } from "../db/tables.ts";
import { keysOf, type MappedPlace } from "../net/mapping.ts";

type Sources = {
  mapped: MappedPlace[];
  provider: { docsUrl: string | null; productUrl: string | null } | null;
  additionalUrls: AdditionalUrl[] | null;
  text: string;
};

const inText = /https?:\/\/[^\s<>"'`\\{}|^]+/gi;

/**
 * The start URLs of a session: urlMap keys, the provider's docs, additionalUrls and URLs in the text, deduplicated, in that
 * order. A urlMap key uses a matching URL from the later sources, else its root. Product URLs are not start URLs.
 */
export function startUrls({ mapped, provider, additionalUrls, text }: Sources): string[] {
  const known = [
    ...(provider?.docsUrl ? [provider.docsUrl] : []),
    ...(additionalUrls ?? []).filter(({ kind }) => kind !== "competitor" && kind !== "mcp").map(({ url }) => url),
    // Trailing punctuation is not part of the URL.
    ...[...text.matchAll(inText)].map(([url]) => url.replace(/[.,;:!?)\]]+$/, "")),
  ].filter((url) => URL.canParse(url));
  const first = mapped.flatMap(({ key, origin }) => {
    const own = known.filter((url) => keysOf(new URL(url)).includes(key));
    return own.length > 0 ? own : [`${origin}/`];
  });
  return [...new Set([...first, ...known].map((url) => new URL(url).href))];
}
