import { pageKey } from "../../net/page-key.ts";
import { readRetryAfter } from "../../net/retry-after.ts";
import { readerAccept } from "../../net/user-agent.ts";
import { type AgentEvent, maxPageTextChars, type Provenance } from "../agent.ts";
import { basisIn } from "../basis.ts";
import type { Milestone } from "../milestones.ts";
import type { PageProblem } from "../page-problem.ts";
import { type FetchFailureKind, findRefusal } from "./fetching.ts";
import { fetchPage, toReadPage } from "./page-fetching.ts";
import { findResponseFault } from "./page-health.ts";
import { cut, errorEvent, type ReadPage, type Session, type Steps, useTool } from "./session.ts";

/** Result of opening a URL. `page` is set if there was something to read, even with problems; `fetchFailure` if there was no response. */
export type OpenResult =
  | { page: ReadPage; status: number; fetchFailure: null }
  | { page: null; status: number; fetchFailure: null; message: string; retryAfterMs?: number | null }
  | { page: null; status: null; fetchFailure: FetchFailureKind; message: string; address: string };

const excerptLength = 2000;
/** For these reasons, the explorer itself decides not to request a URL, so the docs are not to blame. */
const skipKinds = new Set<FetchFailureKind>(["cut", "disallowed", "refused"]);
const transientKinds = new Set<FetchFailureKind>(["dns", "unreachable", "timeout", "tls", "protocol"]);

/** Opens a URL like an agent: prefers Markdown and accepts HTML. Adds pages to `session.pages`. */
export async function* openPage(
  session: Session,
  request: { url: string; provenance: Provenance; foundOn: string | null },
): Steps<OpenResult> {
  const { url, provenance } = request;
  return yield* useTool<OpenResult>(session, "fetch_page", { url }, async (log) => {
    const { fetcher } = session;
    const refusal = provenance === "given" ? null : await findRefusal(fetcher, url, log);
    const fetchResult =
      refusal ?? (await fetchPage(session, { ...request, accept: readerAccept, purpose: "task" }, log));
    if (!fetchResult.ok) {
      const { kind, message, address, rule } = fetchResult;
      const laterEvents = skipKinds.has(kind) ? [] : [errorEvent("fetch_page", message, url, transientKinds.has(kind))];
      return {
        ok: false,
        output: { url, error: kind, message, ...(rule && { rule }) },
        laterEvents,
        value: { page: null, status: null, fetchFailure: kind, message, address },
      };
    }
    const { status } = fetchResult.response;
    if (status < 200 || status > 299) {
      const message = `${url} returned status ${status}`;
      const retryAfterMs = readRetryAfter(fetchResult.response.headers.get("retry-after"), session.context.now());
      const laterEvents: AgentEvent[] = [errorEvent("fetch_page", message, url, status === 429 || status >= 500)];
      if (status === 401 || status === 403)
        laterEvents.push({
          type: "interruption",
          question: `The page requires sign-in or blocks programs (status ${status})`,
          url,
        });
      const isChallenge = findResponseFault(url, fetchResult)?.id === "challenge";
      return {
        ok: false,
        output: { url, status, ...(isChallenge && { problem: "challenge" }) },
        laterEvents,
        value: { page: null, status, fetchFailure: null, message, retryAfterMs },
      };
    }
    const page = toReadPage(session, url, fetchResult);
    if (page === null) {
      const message = `${url} is ${fetchResult.contentType}, which is not a page`;
      return {
        ok: false,
        output: { url, status, contentType: fetchResult.contentType },
        value: { page: null, status, fetchFailure: null, message },
      };
    }
    session.pages.push(page);
    return {
      ok: page.problem === null,
      ...describePage(session, url, page),
      value: { page, status, fetchFailure: null },
    };
  });
}

const problemMessages: Record<PageProblem, (page: ReadPage) => string> = {
  empty: () => "The page has no text",
  empty_shell: () => "The page has no text until its scripts have run, so readers without a browser see nothing",
  soft_404: ({ title }) =>
    `The page ("${cut(title, 100)}") is what the host shows for a missing page, but its status indicates success`,
  missing: () => "The page says that it does not exist, and suggests others",
  sign_in: () => "The page shows a sign-in form instead of its content",
  challenge: () => "The page tests the reader's browser instead of showing its content",
};

function describePage(
  session: Session,
  url: string,
  page: ReadPage,
): { output: Record<string, unknown>; laterEvents: AgentEvent[] } {
  const output = {
    url,
    ...(page.url !== url && { answeredBy: page.url }),
    title: cut(page.title, 200),
    form: page.form,
    chars: page.markdown.length,
    links: page.links.length,
    samples: page.samples.length,
    headings: page.headings.slice(0, 12).map(({ text }) => cut(text, 100)),
    excerpt: cut(page.markdown.trim(), excerptLength),
    ...(page.problem && { problem: page.problem }),
  };
  if (page.problem !== null) {
    const message = problemMessages[page.problem](page);
    const error = errorEvent("fetch_page", message, url, false);
    const needsPerson = page.problem === "sign_in" || page.problem === "challenge";
    return {
      output,
      laterEvents: [error, ...(needsPerson ? [{ type: "interruption" as const, question: message, url }] : [])],
    };
  }
  const pageText = page.markdown.slice(0, maxPageTextChars);
  return { output, laterEvents: [{ ...toPageRead(session, url, page), pageText }] };
}

/** The milestone of a page that was read at a URL. */
export function toPageRead({ task }: Session, url: string, page: ReadPage): Milestone<"page_read"> {
  const { form, markdown, title } = page;
  const detail = { url, chars: markdown.length, form, title: cut(title, 200), ...basisIn(task.basis, page) };
  return { type: "milestone", name: "page_read", detail };
}

/** Whether a page with the same text was read under another URL. */
export function wasReadBefore(session: Session, page: ReadPage): boolean {
  const key = pageKey(page.url);
  return session.pages.some(
    (other) =>
      other !== page && (pageKey(other.url) === key || (other.markdown === page.markdown && page.markdown !== "")),
  );
}
