import { parse as parsePath } from "node:path/posix";
import { readPage } from "../page.ts";
import { fetchUrl, findRefusal, type Log, listSitemaps } from "./fetching.ts";
import type { PageLink } from "./frontier.ts";
import { probeMissingPage } from "./page-fetching.ts";
import { mapInOrder, type Session, type Steps, useTool } from "./session.ts";

/** What a host publishes about its pages, known before any of them is opened. */
type SiteListings = { fromLlmsTxt: ListingFile[]; fromSitemap: ListingFile[] };
type ListingFile = { url: string; text: string; links: PageLink[] };

/** Maximum number of sitemaps per host, including indexes, and of URLs from all of them. */
const maxSitemaps = 5;
const maxSitemapLinks = 2000;

/**
 * Requests robots.txt, llms.txt, sitemaps and a Markdown version of the first start URL, and reports which of them exist. Keeps what the site
 * shows for a missing page.
 */
export async function* readSiteListings(session: Session, origin: string, start: string): Steps<SiteListings> {
  return yield* useTool(session, "read_map", { origin }, async (log) => {
    const { fetcher } = session;
    const robotsResult = await fetchUrl(fetcher, toCheckRequest(`${origin}/robots.txt`), log);
    const llmsTxtUrls = [...new Set([`${origin}/llms.txt`, `${folderOf(start)}llms.txt`])];
    const llmsTxts = await mapInOrder(llmsTxtUrls, 2, log, (url, own) => readLlmsTxt(session, url, own));
    const markdownUrl = markdownUrlOf(start);
    const isServed = markdownUrl !== null && (await servesMarkdown(session, markdownUrl, log));
    const sitemaps = await readSitemaps(session, origin, log);
    await probeMissingPage(session, start, log);
    const fromLlmsTxt = llmsTxts.filter((file) => file !== null);
    const output = {
      origin,
      robotsTxt: robotsResult.ok ? robotsResult.response.status : robotsResult.kind,
      llmsTxt: fromLlmsTxt.map(({ url, links }) => ({ url, links: links.length })),
      sitemaps: sitemaps.map(({ url, links }) => ({ url, links: links.length })),
      markdownTwin: markdownUrl === null ? null : { url: markdownUrl, served: isServed },
    };
    return { ok: true, output, value: { fromLlmsTxt, fromSitemap: sitemaps } };
  });
}

const toCheckRequest = (url: string, foundOn: string | null = null) => ({
  url,
  provenance: "guessed" as const,
  foundOn,
  purpose: "check" as const,
});

/** Some hosts send a page of HTML for every URL. */
const isHtml = (text: string) => /^\s*<(!doctype|html)/i.test(text);

async function readLlmsTxt(session: Session, url: string, log: Log): Promise<ListingFile | null> {
  const fetchResult = await fetchUrl(session.fetcher, toCheckRequest(url), log);
  if (!fetchResult.ok || fetchResult.response.status !== 200) return null;
  const text = fetchResult.text();
  const hasLinkOrHeading = /\]\(|^#\s/m.test(text);
  if (isHtml(text) || !hasLinkOrHeading) return null;
  const page = readPage(fetchResult.response.url, "text/markdown", text);
  // The line of a link describes its page. It helps to choose a page.
  const lines = new Map<string, string>();
  for (const line of text.split("\n"))
    for (const match of line.slice(0, 1000).matchAll(/\[([^\][]{1,200})\]\(/g))
      lines.set(match[1]!, line.slice(0, 1000));
  const links = page.links.map(({ url: address, text: name }) => ({
    url: address,
    text: name,
    context: withoutLinkTargets(lines.get(name) ?? ""),
  }));
  return { url: fetchResult.response.url, text, links };
}

/** `[Limits](/limits): per hour` as `[Limits] : per hour`. Other words in parentheses are lost, too. */
const withoutLinkTargets = (line: string): string => line.replace(/\([^()]*\)/g, " ");

async function servesMarkdown(session: Session, url: string, log: Log): Promise<boolean> {
  if (await findRefusal(session.fetcher, url, log)) return false;
  const fetchResult = await fetchUrl(session.fetcher, toCheckRequest(url), log);
  return (
    fetchResult.ok &&
    fetchResult.response.status === 200 &&
    !/html/i.test(fetchResult.contentType ?? "") &&
    !isHtml(fetchResult.text())
  );
}

async function readSitemaps(session: Session, origin: string, log: Log): Promise<ListingFile[]> {
  const listedUrls = await listSitemaps(session.fetcher, `${origin}/`, log);
  const queue = listedUrls.length > 0 ? [...listedUrls] : [`${origin}/sitemap.xml`];
  const sitemaps: ListingFile[] = [];
  let linkCount = 0;
  for (let i = 0; i < queue.length && i < maxSitemaps; i++) {
    const url = queue[i]!;
    if (!URL.canParse(url) || !session.origins.has(new URL(url).origin) || /\.gz$/i.test(url)) continue;
    const fetchResult = await fetchUrl(
      session.fetcher,
      toCheckRequest(url, listedUrls.includes(url) ? `${origin}/robots.txt` : null),
      log,
    );
    if (!fetchResult.ok || fetchResult.response.status !== 200) continue;
    const xml = fetchResult.text();
    const locations = locationsIn(xml);
    if (/<sitemapindex[\s>]/i.test(xml)) {
      queue.push(...locations.filter((location) => !queue.includes(location)));
      continue;
    }
    const validUrls = locations.filter((location) => URL.canParse(location)).slice(0, maxSitemapLinks - linkCount);
    linkCount += validUrls.length;
    if (validUrls.length > 0)
      sitemaps.push({ url, text: xml, links: validUrls.map((location) => ({ url: location, text: "" })) });
  }
  return sitemaps;
}

/** The URLs in a sitemap or in an index of sitemaps. */
const locationsIn = (xml: string): string[] =>
  [...xml.matchAll(/<loc>((?:[^<]|<!\[CDATA\[){0,2000})<\/loc>/gi)].map((match) =>
    match[1]!.replace("<![CDATA[", "").replace("]]>", "").replaceAll("&amp;", "&").trim(),
  );

/** The folder of a page, with a trailing slash. */
function folderOf(address: string): string {
  const { origin, pathname } = new URL(address);
  const { dir, ext } = parsePath(pathname);
  // If the last part has an extension, it is a file. Any other last part may be a folder.
  const isFile = ext !== "" && !pathname.endsWith("/");
  const folder = isFile ? dir : pathname;
  return origin + `${folder}/`.replace(/\/{2,}/g, "/");
}

/** The common URL of a page's Markdown version: with `.md` appended; null if it is Markdown already. */
function markdownUrlOf(address: string): string | null {
  const url = new URL(address);
  if (/\.(mdx?|txt)$/i.test(url.pathname)) return null;
  const path = url.pathname.replace(/\.html?$/i, "");
  return `${url.origin}${path.endsWith("/") ? `${path}index` : path}.md`;
}
