import type { AgentEvent, Provenance } from "./agent.ts";
import { type Basis, basisIn } from "./basis.ts";
import { toPagesListedEvent } from "./milestones.ts";
import { isReadable, type Page, readPage } from "./page.ts";
import { addPage, findPageWithPath, type PagesRead } from "./pages-read.ts";
import type { Task } from "./task.ts";

/** How an agent found a URL, and on which page. */
export type Source = { provenance: Provenance; foundOn: string | null };

/** A response to a GET request. `url` without fragment; `answeredBy`: the URL after redirects. */
type PageResponse = {
  url: string;
  answeredBy: string;
  status: number;
  contentType: string | null;
  text: string;
};

export type Reader = ReturnType<typeof createReader>;

/** A URL without its fragment. */
export const withoutFragment = (url: string) => url.replace(/#.*$/s, "");
const isText = (contentType: string | null) =>
  isReadable(contentType) ||
  /^\s*(application\/(json|yaml)|text\/|[^;]+\+(json|xml)|application\/xml)/i.test(contentType ?? "");

/** What an agent has read in a session, with any tool: the pages, and where it found their links and listed URLs. */
export function createReader({ startUrls, productUrl }: Task) {
  const pagesRead: PagesRead = { pages: new Map(), listedUrls: new Set(), index: null };
  const sources = new Map<string, Source>();
  const learn = (url: string, source: Source) => {
    if (!sources.has(withoutFragment(url))) sources.set(withoutFragment(url), source);
  };
  for (const url of [...startUrls, ...(productUrl ? [productUrl] : [])])
    learn(url, { provenance: "given", foundOn: null });

  return {
    pagesRead,
    learn,
    /** The source of a URL. A URL that appears in the text of a page, such as an API path, counts as found there. */
    sourceOf(url: string): Source {
      const source = sources.get(withoutFragment(url));
      if (source) return source;
      const path = URL.parse(url)?.pathname.replace(/\/$/, "") ?? "";
      const foundOn = path.length > 3 ? findPageWithPath(pagesRead, path) : null;
      return foundOn === null ? { provenance: "guessed", foundOn } : { provenance: "link", foundOn };
    },
    /** Reads a response, adds a successful page to the pages read, and records its links. `page` is null if it isn't text. */
    read({ url, answeredBy, status, contentType, text }: PageResponse): { page: Page | null; events: AgentEvent[] } {
      const events: AgentEvent[] = [];
      const isOk = status >= 200 && status <= 299;
      const path = new URL(answeredBy).pathname;
      if (isOk && /sitemap[^/]*\.xml$/i.test(path)) {
        const urls = [...text.matchAll(/<loc>\s*(\S+?)\s*<\/loc>/g)].map(([, address = ""]) => address);
        for (const address of urls) learn(address, { provenance: "sitemap", foundOn: answeredBy });
        events.push(toPagesListedEvent("sitemap", url, urls));
      }
      if (!isText(contentType)) return { page: null, events };
      const page = readPage(answeredBy, contentType, text);
      if (!isOk) return { page, events };
      const provenance = /\/llms(-full)?\.txt$/i.test(path) ? "llms.txt" : "link";
      const urls = page.links.map((link) => link.url);
      for (const each of urls) learn(each, { provenance, foundOn: answeredBy });
      if (provenance === "llms.txt") events.push(toPagesListedEvent(provenance, url, urls));
      addPage(pagesRead, page);
      return { page, events };
    },
  };
}

/** The event for a page that was read as a document. */
export const toPageReadEvent = (url: string, page: Page, basis?: Basis): AgentEvent => ({
  type: "milestone",
  name: "page_read",
  detail: {
    url,
    chars: page.markdown.length,
    form: page.form,
    title: page.title.slice(0, 200),
    ...basisIn(basis, page),
  },
});
