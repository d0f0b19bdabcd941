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
 * Where a session starts: the places of the urlMap, the provider's docs, additionalUrls, addresses in the text; without doubles, in that
 * order. A mapped place of which the later sources know an address starts there, else at its root. A product that is not docs is nobody's start.
 */
export function startUrls({ mapped, provider, additionalUrls, text }: Sources): string[] {
  const known = [
    ...(provider?.docsUrl ? [provider.docsUrl] : []),
    ...(additionalUrls ?? []).filter(({ kind }) => kind !== "competitor" && kind !== "mcp").map(({ url }) => url),
    // A sentence ends with a mark that is no part of the address.
    ...[...text.matchAll(inText)].map(([url]) => url.replace(/[.,;:!?)\]]+$/, "")),
  ].filter((url) => URL.canParse(url));
  const first = mapped.flatMap(({ key, origin }) => {
    const own = known.filter((url) => keysOf(new URL(url)).includes(key));
    return own.length > 0 ? own : [`${origin}/`];
  });
  return [...new Set([...first, ...known].map((url) => new URL(url).href))];
}
