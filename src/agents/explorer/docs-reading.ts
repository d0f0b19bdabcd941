import { pageKey } from "../../net/page-key.ts";
import type { AgentContext, AgentEvent } from "../agent.ts";
import type { Page } from "../page.ts";
import type { ReadingTask, Task } from "../task.ts";
import { parseDocument } from "./api-descriptions.ts";
import { openExploration } from "./exploration.ts";
import { fetchUrl, findRefusal, type Log } from "./fetching.ts";
import { createFrontier } from "./frontier.ts";
import { languageOf } from "./inferred-languages.ts";
import type { ListedTool } from "./mcp-listing.ts";
import { createSectionIndex, rarityOf } from "./sections.ts";
import { cut, type ReadPage, type Session, type Steps, useTool } from "./session.ts";
import { runSuccessChecks } from "./success-checks.ts";
import { surveySite } from "./survey.ts";
import { walk } from "./walk.ts";

/**
 * Why docs can't be read: robots.txt disallows it, a sign-in page or no text is at the start URL, or there is no API description or MCP server at its
 * URL.
 */
export type ReadingRefusal = "robots" | "sign_in" | "no_text" | "no_api_description" | "no_mcp_server";

/** A page that was read, as one event can have it. */
export type PageText = Pick<
  Page,
  "url" | "title" | "lead" | "language" | "markdown" | "headings" | "samples" | "links"
>;

/** What `readDocs` reports, each as the output of a `read_docs` call. */
export type ReadingOutput =
  | { page: PageText }
  | { apiDescription: { url: string; document: unknown } }
  | { mcpServer: { url: string; tools: ListedTool[] } }
  | { refusal: ReadingRefusal; url: string };

type Sources = Exclude<ReadingTask, "checks">;

/** The tool of the results with a `ReadingOutput`. */
const readingTool = "read_docs";

/** Maximum number of characters, or of links, that one page or API description reports. An event has at most a megabyte. */
const maxMarkdown = 60_000;
const maxCode = 4000;
const maxLinks = 300;
const maxDocument = 700_000;

/**
 * Reads docs without looking for an answer: the start URLs, pages that match the goal (if there is one), and a survey of the rest. It obeys
 * robots.txt for the start URLs too, and the limits of the task. Reports the pages with text and whatever else `reading` names, or why they can't be
 * read. For `checks`, it reports only what the success checks find.
 */
export async function* readDocs(reading: ReadingTask, task: Task, context: AgentContext, version: string): Steps {
  context.signal.throwIfAborted();
  const session = openExploration(task, context, task.endGoal ?? "");
  if (reading === "checks") yield* runSuccessChecks(session, "before");
  else yield* readAll(session, reading, version);
  yield { type: "end", outcome: "not_judged", reason: "The docs were only read." };
}

async function* readAll(session: Session, { apiUrl, mcpUrl }: Sources, version: string): Steps {
  const refusedUrl = await findRefusedStart(session);
  if (refusedUrl !== null) return yield* refuse(session, "robots", refusedUrl);
  yield* readPages(session, apiUrl);
  if (mcpUrl !== null) yield* readMcpServer(session, mcpUrl, version);
}

async function* readPages(session: Session, apiUrl: string | null): Steps {
  const index = createSectionIndex(session.terms);
  const frontier = createFrontier(session.terms, session.origins, (term) => rarityOf(term, index));
  yield* withoutPages(walk(session, frontier, index));
  yield* withoutPages(surveySite(session, frontier, index));
  const pages = [...session.pages, ...session.surveyed];
  const readable = pages.filter(({ problem, markdown }) => problem === null && markdown.trim() !== "");
  const start = session.task.startUrls[0] ?? "";
  const isStartRead = readable.some(({ addresses }) => addresses.some((each) => pageKey(each) === pageKey(start)));
  if (pages[0]?.problem === "sign_in") yield* refuse(session, "sign_in", start);
  else if (!isStartRead) yield* refuse(session, "no_text", start);
  else {
    for (const page of readable) yield* report(session, { page: toPageText(page) });
    if (apiUrl !== null) yield* readApiDescription(session, apiUrl);
  }
}

async function findRefusedStart({ fetcher, task }: Session): Promise<string | null> {
  for (const url of task.startUrls) {
    const refusal = await findRefusal(fetcher, url, { id: null, events: [] });
    if (refusal?.kind === "disallowed") return url;
  }
  return null;
}

/** Yields the requests of the steps, and limits. Pages are reported afterwards, each once and with its text. */
async function* withoutPages(steps: AsyncGenerator<AgentEvent, unknown>): Steps {
  for await (const event of steps) if (event.type === "http" || event.type === "limit") yield event;
}

async function* readApiDescription(session: Session, url: string): Steps {
  const request = { url, provenance: "given" as const, foundOn: null, purpose: "task" as const };
  const log: Log = { id: null, events: [] };
  const refusal = await findRefusal(session.fetcher, url, log);
  const isAllowed = refusal?.kind !== "disallowed";
  const answer = isAllowed ? await fetchUrl(session.fetcher, request, log) : refusal;
  yield* log.events;
  if (!isAllowed) return yield* refuse(session, "robots", url);
  const document = answer.ok && answer.response.status === 200 ? parseDocument(answer.text()) : null;
  const isDescription =
    typeof document === "object" && document !== null && ("openapi" in document || "swagger" in document);
  if (!isDescription || JSON.stringify(document).length > maxDocument)
    return yield* refuse(session, "no_api_description", url);
  yield* report(session, { apiDescription: { url, document } });
}

/** The tools of an MCP server are for agents, so robots.txt says nothing about them. The library takes long to load. */
async function* readMcpServer(session: Session, url: string, version: string): Steps {
  const { listMcpTools } = await import("./mcp-listing.ts");
  const log: Log = { id: null, events: [] };
  const tools = await listMcpTools(session.fetcher, url, version, log);
  yield* log.events;
  if (tools === null) yield* refuse(session, "no_mcp_server", url);
  else yield* report(session, { mcpServer: { url, tools } });
}

const refuse = (session: Session, refusal: ReadingRefusal, url: string): Steps => report(session, { refusal, url });

const report = (session: Session, output: ReadingOutput): Steps =>
  useTool(session, readingTool, {}, async () => ({ ok: !("refusal" in output), output, value: undefined }));

/** A long page is cut: whole lines from its start remain, with the headings and samples in them. */
function toPageText({ url, title, lead, language, markdown, headings, samples, links }: ReadPage): PageText {
  const text = markdown.length <= maxMarkdown ? markdown : markdown.slice(0, markdown.lastIndexOf("\n", maxMarkdown));
  const lines = text.split("\n").length;
  return {
    url,
    title: cut(title, 300),
    lead: cut(lead, 1000),
    language,
    markdown: text,
    headings: headings.filter(({ line }) => line <= lines),
    samples: samples
      .filter(({ line }) => line <= lines)
      .map((sample) => ({ ...sample, language: languageOf(sample) || null, code: cut(sample.code, maxCode) })),
    links: links.slice(0, maxLinks).map((link) => ({
      ...link,
      text: cut(link.text, 200),
      context: cut(link.context, 200),
      heading: cut(link.heading, 200),
    })),
  };
}
