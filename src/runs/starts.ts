import type { AdditionalUrl } from "../db/tables.ts";

type Sources = {
  urlMap: Record<string, string>;
  provider: { docsUrl: string | null; productUrl: string | null } | null;
  additionalUrls: AdditionalUrl[] | null;
  text: string;
};

const inText = /https?:\/\/[^\s<>"'`\\{}|^]+/gi;

/**
 * Where a session starts: urlMap, the provider's docs, additionalUrls, addresses in the text; without doubles, in that order. A mapped host
 * of which the later sources know an address starts there, else at its root. A product that is not docs is nobody's start.
 */
export function startUrls({ urlMap, provider, additionalUrls, text }: Sources): string[] {
  const known = [
    ...(provider?.docsUrl ? [provider.docsUrl] : []),
    ...(additionalUrls ?? []).filter(({ kind }) => kind !== "competitor" && kind !== "mcp").map(({ url }) => url),
    // A sentence ends with a mark that is no part of the address.
    ...[...text.matchAll(inText)].map(([url]) => url.replace(/[.,;:!?)\]]+$/, "")),
  ].filter((url) => URL.canParse(url));
  const mapped = Object.keys(urlMap).flatMap((key) => {
    const origin = key.includes("://") ? new URL(key).origin : null;
    const host = (origin ? new URL(origin).host : key).toLowerCase();
    const own = known.filter((url) => (origin ? new URL(url).origin === origin : new URL(url).host === host));
    return own.length > 0 ? own : [`${origin ?? `https://${host}`}/`];
  });
  return [...new Set([...mapped, ...known].map((url) => new URL(url).href))];
}
