import { and, asc, inArray, sql } from "drizzle-orm";
import type { Provenance, SessionEvent } from "../agents/agent.ts";
import type { Context } from "../context.ts";
import { sessionEvents } from "../db/tables/runs.ts";
import { uselessPages } from "../grading/dimensions/useless-pages.ts";
import { type Http, hasFailed, isProbe } from "../grading/events.ts";
import { factsOf } from "../grading/facts.ts";
import { pageKey } from "../net/page-key.ts";
import { toSessionEvent } from "./session-events.ts";
import type { StoredSession } from "./trace.ts";

/** The role of a page: it answered the goal, it helped, it was a dead end, or it didn't exist. */
export type StepKind = "goal" | "read" | "dead-end" | "missed";

/** A page that an agent requested. Each page is listed once, at its first visit. */
export type Step = {
  url: string;
  title: string | null;
  kind: StepKind;
  /** Sequence number of the request in the session. */
  seq: number;
  status: number | null;
  ms: number;
  bytes: number;
  visits: number;
  provenance: Provenance;
  /** Position of the step whose page links to this page; null: there is none. */
  parent: number | null;
  /** Number of pages between this page and the start. */
  depth: number;
};

/** `unlisted`: the number of further pages, which are not listed. */
export type PagesVisited = { steps: Step[]; unlisted: number };

const maxEvents = 3000;
const maxSteps = 120;

/** The pages that the agent of a report requested, in order, with how it found each page and which pages were dead ends. */
export function getPagesVisited({ db }: Context, { whereEvents }: StoredSession): PagesVisited {
  const rows = db
    .select()
    .from(sessionEvents)
    .where(
      and(
        whereEvents,
        inArray(sessionEvents.type, ["http", "milestone"]),
        sql`coalesce(json_extract(${sessionEvents.data}, '$.purpose'), 'task') = 'task'`,
      ),
    )
    .orderBy(asc(sessionEvents.seq))
    .limit(maxEvents)
    .all();
  return toPagesVisited(rows.map(toSessionEvent));
}

function toPagesVisited(events: SessionEvent[]): PagesVisited {
  const facts = factsOf(events);
  const titles = new Map(facts.pages.map(({ url, title }) => [pageKey(url), title]));
  const uselessKeys = new Set(uselessPages(facts));
  const answerSections = facts.goalAnswer?.state === "likely" ? facts.goalAnswer.sections : [];
  const answerKeys = new Set(answerSections.flatMap(({ url }) => (url === null ? [] : pageKey(url))));
  const kindOf = (http: Http, page: string): StepKind => {
    if (hasFailed(http)) return "missed";
    if (answerKeys.has(page)) return "goal";
    return uselessKeys.has(page) ? "dead-end" : "read";
  };
  const requests = facts.taskRequests.filter((http) => !(isProbe(http) && hasFailed(http)));
  const visits = Map.groupBy(requests, (http) => pageKey(http.url));
  const steps: Step[] = [];
  const positions = new Map<string, number>();
  for (const [page, [first, ...repeatVisits]] of [...visits].slice(0, maxSteps)) {
    if (first === undefined) continue;
    const { seq, url, status, ms, bytes, provenance, foundOn } = first;
    const parent = (foundOn === null ? undefined : positions.get(pageKey(foundOn))) ?? null;
    const depth = parent === null ? 0 : (steps[parent]?.depth ?? 0) + 1;
    positions.set(page, steps.length);
    steps.push({
      url,
      title: titles.get(page) ?? null,
      kind: kindOf(first, page),
      seq,
      status,
      ms,
      bytes,
      visits: 1 + repeatVisits.length,
      provenance,
      parent,
      depth,
    });
  }
  return { steps, unlisted: visits.size - steps.length };
}
