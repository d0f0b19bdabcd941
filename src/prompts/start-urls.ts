import { mcpUrlsOf } from "../agents/task.ts";
import type { AdditionalUrl, prompts } from "../db/tables/prompts.ts";
import { keysOf, type MappedHost } from "../net/mapping.ts";
import { fillTemplate } from "./template.ts";

type Sources = {
  mapped: MappedHost[];
  provider: { docsUrl: string | null; productUrl: string | null } | null;
  additionalUrls: AdditionalUrl[] | null;
  text: string;
  /** URLs of the MCP servers of the workspace. */
  mcpUrls: string[];
};

const urlPattern = /https?:\/\/[^\s<>"'`\\{}|^]+/gi;

/**
 * The start URLs of a session: urlMap keys, the provider's docs, additionalUrls and URLs in the text, deduplicated, in that
 * order. A urlMap key uses a matching URL from the later sources, else its root. Product URLs and MCP servers are not start URLs.
 */
export function startUrls({ mapped, provider, additionalUrls, text, mcpUrls }: Sources): string[] {
  const urls = [
    ...(provider?.docsUrl ? [provider.docsUrl] : []),
    ...(additionalUrls ?? []).filter(({ kind }) => kind !== "competitor" && kind !== "mcp").map(({ url }) => url),
    // Trailing punctuation is not part of the URL.
    ...[...text.matchAll(urlPattern)].map(([url]) => url.replace(/[.,;:!?)\]]+$/, "")),
  ].filter((url) => URL.canParse(url));
  const urlsWithKey = (key: string, urls: string[]) => urls.filter((url) => keysOf(new URL(url)).includes(key));
  const mappedUrls = mapped.flatMap(({ key, origin }) => {
    const matches = urlsWithKey(key, urls);
    return matches.length > 0 ? matches : urlsWithKey(key, mcpUrls).length > 0 ? [] : [`${origin}/`];
  });
  return [...new Set([...mappedUrls, ...urls].map((url) => new URL(url).href))];
}

/** The start URLs of a run of a prompt without a urlMap, with the default of each variable. */
export const defaultStartUrls = (row: typeof prompts.$inferSelect, provider: Sources["provider"]): string[] =>
  startUrls({
    mapped: [],
    provider,
    additionalUrls: row.additionalUrls,
    text: fillTemplate(row.text, row.templateDefaults ?? {}),
    mcpUrls: mcpUrlsOf(row.workspace ?? undefined),
  });
