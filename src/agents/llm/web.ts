import { validateHeaderName, validateHeaderValue } from "node:http";
import { z } from "zod";
import { createGuard, GuardError, type GuardedRequest, type GuardedResponse } from "../../net/guarded.ts";
import { createHostList } from "../../net/hosts.ts";
import { createMapping } from "../../net/mapping.ts";
import { type AgentContext, type Means, type Provenance, pagesListed } from "../agent.ts";
import { isReadable, readPage } from "../page.ts";
import { addressesOf, type Task } from "../task.ts";
import { createLibrary } from "./library.ts";
import { type Call, maxUrlChars, type Result, shortened, spec } from "./tool.ts";

const pageChars = 20_000;
const bodyChars = 8_000;
const requestMs = 30_000;
const readerAccept = "text/markdown;q=1, text/html;q=0.8, text/plain;q=0.7";

type Asked = { method?: GuardedRequest["method"]; headers?: Record<string, string>; body?: string };
type Source = { provenance: Provenance; foundOn: string | null };
type Got = { ok: true; response: GuardedResponse; type: string | null } | { ok: false; kind: string; message: string };

/** Why headers cannot be sent; null if they can. */
function objectionTo(headers: Record<string, string>): string | null {
  try {
    for (const [name, value] of Object.entries(headers)) {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    }
    return null;
  } catch (error) {
    return error instanceof Error ? error.message.slice(0, 500) : String(error);
  }
}

const plain = (url: string) => url.replace(/#.*$/s, "");

/** Tracks where the agent's URLs come from. */
function createSources({ startUrls, productUrl }: Task, library: ReturnType<typeof createLibrary>) {
  const sources = new Map<string, Source>();
  const learn = (url: string, source: Source) => {
    if (!sources.has(plain(url))) sources.set(plain(url), source);
  };
  for (const url of [...startUrls, ...(productUrl ? [productUrl] : [])])
    learn(url, { provenance: "given", foundOn: null });

  /** URLs that appear in the text of a page, such as API paths, count as found there. */
  function sourceOf(url: string): Source {
    const known = sources.get(plain(url));
    if (known) return known;
    const path = URL.parse(url)?.pathname.replace(/\/$/, "") ?? "";
    const foundOn = path.length > 3 ? library.mentioning(path) : null;
    return foundOn === null ? { provenance: "guessed", foundOn } : { provenance: "link", foundOn };
  }
  return { learn, sourceOf };
}

/** The network tools. All requests go through the guard, to allowed hosts only. */
export function webTools(task: Task, { operatorHosts }: Means, { allow, userAgent, now }: AgentContext) {
  const guard = createGuard({ allow, urlMap: task.urlMap, userAgent, now });
  const mapping = createMapping(task.urlMap);
  const hosts = createHostList({ ...addressesOf(task), operatorHosts });
  const library = createLibrary();
  const { learn, sourceOf } = createSources(task, library);

  async function ask(url: string, asked: Asked, { id, signal, tell }: Call): Promise<Got> {
    const { provenance, foundOn } = sourceOf(url);
    const method = asked.method ?? "GET";
    const event = { type: "http" as const, id, method, url: plain(url), provenance, foundOn, purpose: "task" as const };
    const sent = asked.body ? { bytesOut: Buffer.byteLength(asked.body) } : {};
    const startedAt = now();
    if (url.length > maxUrlChars)
      return { ok: false, kind: "refused", message: `the URL is longer than ${maxUrlChars} characters` };
    try {
      const target = URL.canParse(url) ? new URL(url) : null;
      if (target && !mapping.toReal(target) && !hosts.permits(target.hostname))
        throw new GuardError("refused", url, hosts.objection(target.hostname));
      const response = await guard.request(url, { ...asked, signal, timeoutMs: requestMs });
      const { mappedUrl, status, ms, body } = response;
      const type = response.headers.get("content-type");
      tell({ ...event, ...sent, mappedUrl, status, ms, bytes: body.length, contentType: type, error: null });
      return { ok: true, response, type };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof GuardError)) throw error;
      const { kind, message } = error;
      const failed = { mappedUrl: guard.mapped(url), status: null, ms: now() - startedAt, bytes: 0, contentType: null };
      tell({ ...event, ...sent, ...failed, error: { kind, message } });
      return { ok: false, kind, message };
    }
  }

  /** Reads a page, adds its sections to the library and records its links. */
  async function open(url: string, call: Call) {
    const got = await ask(url, { headers: { accept: readerAccept } }, call);
    if (!got.ok) return { miss: { url, error: got.kind, message: got.message } };
    const { status, url: answered } = got.response;
    const text = guard.text(got.response);
    const path = new URL(answered).pathname;
    if (status >= 200 && status <= 299 && /sitemap[^/]*\.xml$/i.test(path)) {
      const addresses = [...text.matchAll(/<loc>\s*(\S+?)\s*<\/loc>/g)].map(([, address = ""]) => address);
      for (const address of addresses) learn(address, { provenance: "sitemap", foundOn: answered });
      call.tell(pagesListed("sitemap", plain(url), addresses));
    }
    const readable =
      isReadable(got.type) ||
      /^\s*(application\/(json|yaml)|text\/|[^;]+\+(json|xml)|application\/xml)/i.test(got.type ?? "");
    if (!readable)
      return {
        miss: {
          url,
          status,
          contentType: got.type,
          message: `${url} has the content type ${got.type}, which is not text`,
        },
      };
    const page = readPage(answered, got.type, text);
    const miss = { url, status, message: `${url} returned status ${status}`, text: shortened(page.markdown, 2000) };
    if (status < 200 || status > 299) return { miss };
    const provenance = /\/llms(-full)?\.txt$/i.test(path) ? "llms.txt" : "link";
    for (const link of page.links) learn(link.url, { provenance, foundOn: answered });
    if (provenance === "llms.txt") {
      const addresses = page.links.map((link) => link.url);
      call.tell(pagesListed(provenance, plain(url), addresses));
    }
    library.add(page);
    return { page, status };
  }

  const tools = {
    fetch_page: spec({
      description: `Read a page of the docs as Markdown, at most ${pageChars} characters per call; set from to continue in a longer page.`,
      input: z.object({ url: z.string(), from: z.number().int().min(0).optional() }),
      async run({ url, from = 0 }, call): Promise<Result> {
        const known = from > 0 ? library.get(plain(url)) : null;
        const opened = known ? { page: known, status: 200 } : await open(url, call);
        if (!opened.page) return { ok: false, output: opened.miss };
        const { page } = opened;
        const chars = page.markdown.length;
        const next = from + pageChars < chars ? { next: from + pageChars } : {};
        const answeredBy = page.url === plain(url) ? {} : { answeredBy: page.url };
        const text = page.markdown.slice(from, from + pageChars);
        if (!known && page.problem === null)
          call.tell({
            type: "milestone",
            name: "page_read",
            detail: { url: plain(url), chars, form: page.form, title: page.title.slice(0, 200) },
          });
        const problem = page.problem ? { problem: page.problem } : {};
        return {
          ok: page.problem === null,
          output: { url, ...answeredBy, title: page.title.slice(0, 200), chars, ...next, ...problem, text },
        };
      },
    }),
    search_docs: spec({
      description:
        "Search the pages read so far, and the pages listed in the llms.txt of the docs, by keywords. Returns sections with their URLs.",
      input: z.object({ query: z.string() }),
      async run({ query }, call): Promise<Result> {
        for (const origin of new Set(task.startUrls.map((url) => new URL(url).origin))) {
          const url = `${origin}/llms.txt`;
          if (library.asked(url)) continue;
          const { page } = await open(url, call);
          for (const { url: address, text } of page?.links ?? []) library.list(address, text);
        }
        const found = library.search(query);
        for (const { url } of found) learn(url, { provenance: "search", foundOn: null });
        return { ok: true, output: { found } };
      },
    }),
    http_request: spec({
      description: `Send an HTTP request to the product, such as its API. Returns status, headers and up to ${bodyChars} characters of the body. Redirects are not followed.`,
      input: z.object({
        url: z.string(),
        method: z.enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]).default("GET"),
        headers: z.record(z.string(), z.string()).optional(),
        body: z.string().optional(),
      }),
      async run({ url, method, headers = {}, body }, call): Promise<Result> {
        const objection = objectionTo(headers);
        if (objection !== null) return { ok: false, output: { url, message: objection } };
        const got = await ask(url, { method, headers, body, ...{ followRedirects: false } }, call);
        if (!got.ok) return { ok: false, output: { url, error: got.kind, message: got.message } };
        const { status } = got.response;
        const shown = {
          status,
          headers: Object.fromEntries([...got.response.headers].slice(0, 40)),
          body: shortened(guard.text(got.response), bodyChars),
        };
        return {
          ok: status < 400,
          output: status < 400 ? shown : { message: `${method} ${url} returned status ${status}`, ...shown },
        };
      },
    }),
  };
  return tools;
}
