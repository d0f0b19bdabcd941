import { validateHeaderName, validateHeaderValue } from "node:http";
import { z } from "zod";
import { createGuard, type Guard, GuardError, type GuardedRequest, type GuardedResponse } from "../../net/guarded.ts";
import { createHostList, type HostList } from "../../net/hosts.ts";
import { readerAccept } from "../../net/user-agent.ts";
import type { AgentContext, AgentResources } from "../agent.ts";
import { shorten } from "../event-size.ts";
import { addListedUrl, searchPagesRead } from "../pages-read.ts";
import { type Reader, toPageReadEvent, withoutFragment } from "../reader.ts";
import { hostUrlsOf, type Task } from "../task.ts";
import { defineTool, maxUrlChars, type ToolCall, type ToolResult } from "./tool.ts";

const pageChars = 20_000;
const bodyChars = 8_000;
const maxHeaders = 40;
const requestMs = 30_000;

type RequestOptions = {
  method?: GuardedRequest["method"];
  headers?: Record<string, string>;
  body?: string;
  followRedirects?: boolean;
};
type RequestOutcome =
  | { ok: true; response: GuardedResponse; type: string | null }
  /** `kind`: the kind of the GuardError. */
  | { ok: false; kind: string; message: string };

/** Why headers cannot be sent; null if they can. */
function objectionToHeaders(headers: Record<string, string>): string | null {
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

/** What the network tools of one run share. */
type Web = {
  task: Task;
  reader: Reader;
  guard: Guard;
  /** Hosts to which requests may go. */
  hosts: HostList;
  now: () => number;
  /** The llms.txt files that a search has requested. */
  requestedLlmsTxts: Set<string>;
};

/** The network tools. All requests go through the guard, to allowed hosts only. */
export function webTools(
  task: Task,
  { operatorHosts }: AgentResources,
  { allow, now, egress }: AgentContext,
  reader: Reader,
) {
  const web: Web = {
    task,
    reader,
    guard: createGuard({ allow, urlMap: task.urlMap, edits: task.edits, now, proxy: egress }),
    hosts: createHostList({ ...hostUrlsOf(task), operatorHosts }),
    now,
    requestedLlmsTxts: new Set(),
  };
  return { fetch_page: fetchPageTool(web), search_docs: searchDocsTool(web), http_request: httpRequestTool(web) };
}

/** Sends a request and reports it. Throws only the signal's reason. */
async function send(
  { reader, guard, hosts, now }: Web,
  url: string,
  options: RequestOptions,
  { id, signal, report }: ToolCall,
): Promise<RequestOutcome> {
  if (url.length > maxUrlChars)
    return { ok: false, kind: "refused", message: `the URL is longer than ${maxUrlChars} characters` };
  const { provenance, foundOn } = reader.sourceOf(url);
  const method = options.method ?? "GET";
  const event = {
    type: "http" as const,
    id,
    method,
    url: withoutFragment(url),
    provenance,
    foundOn,
    purpose: "task" as const,
    ...(options.body && { bytesOut: Buffer.byteLength(options.body) }),
  };
  const startedAt = now();
  try {
    const target = URL.canParse(url) ? new URL(url) : null;
    if (target && guard.findMappedUrl(url) === null && !hosts.permits(target.hostname))
      throw new GuardError("refused", url, hosts.objection(target.hostname));
    const response = await guard.request(url, { ...options, signal, timeoutMs: requestMs });
    const { mappedUrl, status, ms, body, redirects, edit } = response;
    const type = response.headers.get("content-type");
    const received = { mappedUrl, status, ms, bytes: body.length, contentType: type, error: null };
    const answeredBy = redirects.length > 0 && { answeredBy: response.url };
    report({ ...event, ...received, ...answeredBy, ...(edit && { edit }) });
    return { ok: true, response, type };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof GuardError)) throw error;
    const { kind, message } = error;
    const failure = {
      mappedUrl: guard.findMappedUrl(url),
      status: null,
      ms: now() - startedAt,
      bytes: 0,
      contentType: null,
    };
    report({ ...event, ...failure, error: { kind, message } });
    return { ok: false, kind, message };
  }
}

/** Reads a page, adds its sections to the pages that were read, and records its links. */
async function openPage(web: Web, url: string, call: ToolCall) {
  const outcome = await send(web, url, { headers: { accept: readerAccept } }, call);
  if (!outcome.ok) return { failure: { url, error: outcome.kind, message: outcome.message } };
  const { status, url: finalUrl } = outcome.response;
  const text = web.guard.text(outcome.response);
  const response = { url: withoutFragment(url), answeredBy: finalUrl, status, contentType: outcome.type, text };
  const { page, events } = web.reader.read(response);
  for (const event of events) call.report(event);
  if (!page) {
    const message = `${url} has the content type ${outcome.type}, which is not text`;
    return { failure: { url, status, contentType: outcome.type, message } };
  }
  if (status >= 200 && status <= 299) return { page, status };
  const message = `${url} returned status ${status}`;
  return { failure: { url, status, message, text: shorten(page.markdown, 2000) } };
}

const fetchPageTool = (web: Web) =>
  defineTool({
    description: `Read a page of the docs as Markdown, at most ${pageChars} characters per call; set from to continue in a longer page.`,
    input: z.object({ url: z.string(), from: z.number().int().min(0).optional() }),
    async run({ url, from = 0 }, call): Promise<ToolResult> {
      const knownPage = from > 0 ? web.reader.pagesRead.pages.get(withoutFragment(url)) : null;
      const result = knownPage ? { page: knownPage, status: 200 } : await openPage(web, url, call);
      if (!result.page) return { ok: false, output: result.failure };
      const { page } = result;
      const chars = page.markdown.length;
      const next = from + pageChars < chars ? { next: from + pageChars } : {};
      const answeredBy = page.url === withoutFragment(url) ? {} : { answeredBy: page.url };
      const text = page.markdown.slice(from, from + pageChars);
      if (!knownPage && page.problem === null) call.report(toPageReadEvent(withoutFragment(url), page, web.task.basis));
      const problem = page.problem ? { problem: page.problem } : {};
      return {
        ok: page.problem === null,
        output: { url, ...answeredBy, title: page.title.slice(0, 200), chars, ...next, ...problem, text },
      };
    },
  });

const searchDocsTool = (web: Web) =>
  defineTool({
    description:
      "Search the pages read so far, and the pages listed in the llms.txt of the docs, by keywords. Returns sections with their URLs.",
    input: z.object({ query: z.string() }),
    async run({ query }, call): Promise<ToolResult> {
      const { task, reader, requestedLlmsTxts } = web;
      for (const origin of new Set(task.startUrls.map((url) => new URL(url).origin))) {
        const url = `${origin}/llms.txt`;
        if (requestedLlmsTxts.has(url)) continue;
        requestedLlmsTxts.add(url);
        const { page } = await openPage(web, url, call);
        for (const link of page?.links ?? []) addListedUrl(reader.pagesRead, link.url, link.text);
      }
      const sections = searchPagesRead(reader.pagesRead, query);
      for (const { url } of sections) reader.learn(url, { provenance: "search", foundOn: null });
      return { ok: true, output: { found: sections } };
    },
  });

const httpRequestTool = (web: Web) =>
  defineTool({
    description: `Send an HTTP request to the product, such as its API. Returns status, headers and up to ${bodyChars} characters of the body. Redirects are not followed.`,
    input: z.object({
      url: z.string(),
      method: z.enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]).default("GET"),
      headers: z.record(z.string(), z.string()).optional(),
      body: z.string().optional(),
    }),
    async run({ url, method, headers = {}, body }, call): Promise<ToolResult> {
      const objection = objectionToHeaders(headers);
      if (objection !== null) return { ok: false, output: { url, message: objection } };
      const outcome = await send(web, url, { method, headers, body, followRedirects: false }, call);
      if (!outcome.ok) return { ok: false, output: { url, error: outcome.kind, message: outcome.message } };
      const { status } = outcome.response;
      const output = {
        status,
        headers: Object.fromEntries([...outcome.response.headers].slice(0, maxHeaders)),
        body: shorten(web.guard.text(outcome.response), bodyChars),
      };
      if (status < 400) return { ok: true, output };
      return { ok: false, output: { message: `${method} ${url} returned status ${status}`, ...output } };
    },
  });
