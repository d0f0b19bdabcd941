import { mcpUrlsOf } from "../agents/task.ts";
import type { Context } from "../context.ts";
import type { AdditionalUrl, prompts } from "../db/tables/prompts.ts";
import { invalidField } from "../errors.ts";
import { keysOf, type MappedHost } from "../net/mapping.ts";
import { objectionToAddress } from "../providers/providers.ts";
import { fillTemplate } from "./template.ts";

type Sources = {
  mapped: MappedHost[];
  provider: { docsUrl: string | null; productUrl: string | null } | null;
  additionalUrls: AdditionalUrl[] | null;
  text: string;
  /** URLs of the MCP servers of the workspace. */
  mcpUrls: string[];
};

/** Whether agents start at an additional URL. */
const isStart = ({ kind }: AdditionalUrl): boolean => kind !== "competitor" && kind !== "mcp";

const urlPattern = /https?:\/\/[^\s<>"'`\\{}|^]+/gi;

/**
 * The start URLs of a session, in this order and without duplicates: urlMap keys, the provider's docs, additionalUrls and URLs in the text. A urlMap
 * key uses a matching URL from the later sources, else the root of its host. Product URLs and MCP servers are not start URLs.
 */
export function startUrls({ mapped, provider, additionalUrls, text, mcpUrls }: Sources): string[] {
  const urls = [
    ...(provider?.docsUrl ? [provider.docsUrl] : []),
    ...(additionalUrls ?? []).filter(isStart).map(({ url }) => url),
    // Trailing punctuation is not part of the URL.
    ...[...text.matchAll(urlPattern)].map(([url]) => url.replace(/[.,;:!?)\]]+$/, "")),
  ].filter((url) => URL.canParse(url));
  const mappedUrls = mapped.flatMap(({ key, origin }) => {
    const matches = urls.filter((url) => hasKey(url, key));
    if (matches.length > 0) return matches;
    return mcpUrls.some((url) => hasKey(url, key)) ? [] : [`${origin}/`];
  });
  return [...new Set([...mappedUrls, ...urls].map((url) => new URL(url).href))];
}

/** Whether a key of a urlMap maps a URL. */
const hasKey = (url: string, key: string): boolean => keysOf(new URL(url)).includes(key);

/** The start URLs of a run of a prompt without a urlMap, with the default of each variable. */
export const defaultStartUrls = (row: typeof prompts.$inferSelect, provider: Sources["provider"]): string[] =>
  startUrls({
    mapped: [],
    provider,
    additionalUrls: row.additionalUrls,
    text: fillTemplate(row.text, row.templateDefaults ?? {}),
    mcpUrls: mcpUrlsOf(row.workspace ?? undefined),
  });

/**
 * Throws bad_request for an additional URL that no run can reach. If no start URL can be reached, it throws bad_request that names the provider or
 * the text. A urlMap maps names of hosts, so only the run checks what they resolve to.
 */
export function checkReachable(ctx: Context, row: typeof prompts.$inferSelect, provider: Sources["provider"]): void {
  for (const [i, each] of (row.additionalUrls ?? []).entries()) {
    const objection = isStart(each) ? objectionToAddress(ctx, each.url) : null;
    if (objection) throw invalidField(`additionalUrls.${i}.url`, objection);
  }
  const objections = defaultStartUrls(row, provider).map((url) => objectionToAddress(ctx, url));
  const [first] = objections;
  if (first && objections.every((objection) => objection !== null))
    throw invalidField(provider?.docsUrl ? "targetProviderId" : "text", first);
}
