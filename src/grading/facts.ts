import type { Check, Outcome, SessionEvent } from "../agents/agent.ts";
import { hasWorked } from "./evidence.ts";
import { type Judgement, outcomeOf } from "./judge.ts";
import { clamp } from "./methodology.ts";
import { line, lineOrNull, sameAddress, samePage } from "./words.ts";

export type EventOf<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>;
export type Http = EventOf<"http">;
/** A check as it stood last, with the event that holds it. */
export type SeenCheck = Check & { key: string; seq: number; toolId: string };
type PageRead = { seq: number; url: string; title: string | null };

/** Something that failed for the agent, counted once however many events tell of it. */
export type Failure = {
  what: "request" | "tool" | "error";
  seqs: number[];
  id: string | null;
  /** The tool, or where an error came from. */
  tool: string | null;
  url: string | null;
  /** A word of the agent for the kind of failure, where it has one: "disallowed", "timeout". */
  code: string | null;
  message: string;
};

export type GoalFound =
  | {
      state: "covered";
      seq: number;
      tMs: number;
      /** The sections that cover it together, the main one first. */
      sections: { url: string | null; heading: string | null }[];
      pages: number;
    }
  | {
      state: "missed";
      seq: number;
      /** Words of the goal that the best section held, that it lacked, that stood on no page. */
      covered: string[];
      missing: string[];
      unseen: string[];
      pages: number;
      noOverlap: boolean;
      /** The best section held the words, but nothing to copy. */
      noSample: boolean;
      best: { url: string; heading: string } | null;
    };

/** What the events say, each thing once: the only thing that the rest of the grading looks at. */
export type Facts = {
  kind: "rules" | "model" | null;
  model: string | null;
  goal: string | null;
  starts: string[];
  /** Tools that the agent did not have, and why. */
  missing: string[];
  outcome: Outcome;
  judgement: Judgement | null;
  endReason: string | null;
  endSeq: number | null;
  elapsedMs: number | null;
  checks: SeenCheck[];
  /** Requests on the way, without the hops of redirects and the tunnels that stood: those last as long as a program wants. */
  way: Http[];
  tests: Http[];
  pages: PageRead[];
  goalTerms: string[];
  /** Pages, by their one spelling, with words of the goal on them. */
  pagesWithTerms: Set<string>;
  goalFound: GoalFound | null;
  failures: Failure[];
  calls: EventOf<"tool_call">[];
  results: EventOf<"tool_result">[];
  usage: EventOf<"usage">[];
  interruptions: EventOf<"interruption">[];
  limits: EventOf<"limit">[];
};

export const failed = (http: Http) => http.status === null || http.status >= 400;

const isHop = ({ status }: Http) => status !== null && status >= 300 && status < 400;

/** Looking whether the site keeps a convention; the discovery checks grade the answer, so the miss costs nothing more. */
export function isProbe(http: Http): boolean {
  const path = URL.parse(http.url)?.pathname ?? "";
  return http.provenance === "guessed" && /\/(llms(-full)?|robots)\.txt$|\/sitemap[^/]*\.xml$|\.mdx?$/i.test(path);
}

const strings = (value: unknown) => (Array.isArray(value) ? value.filter((each) => typeof each === "string") : []);
const stringOrNull = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
const numberOr = (value: unknown, otherwise: number) => (typeof value === "number" ? value : otherwise);

/** A place that this service may not reach was not asked: that says nothing about the target. */
const isRefusal = (event: SessionEvent): boolean =>
  event.type === "http"
    ? event.error?.kind === "refused"
    : event.type === "tool_result" && !event.ok && event.output?.error === "refused";

/** What the events of a session say; `judgement` is what a model made of it. */
export function factsOf(unordered: SessionEvent[], judgement: Judgement | null = null): Facts {
  const ordered = unordered.filter((event) => !isRefusal(event)).toSorted((a, b) => a.seq - b.seq);
  const isModel = ordered.some((e) => e.type === "milestone" && e.name === "started" && e.detail.kind === "model");
  const events = isModel
    ? ordered.map((event) => (event.type === "tool_result" ? { ...event, ok: hasWorked(event) } : event))
    : ordered;
  const of = <T extends SessionEvent["type"]>(type: T) => events.filter((e): e is EventOf<T> => e.type === type);
  const milestones = of("milestone");
  const milestone = (name: string) => milestones.findLast((each) => each.name === name);
  const started = milestone("started")?.detail ?? {};
  const end = of("end").at(-1);
  const http = of("http");
  const checks = lastChecks(of("tool_result"));
  const pages = milestones
    .filter((each) => each.name === "page_read" && typeof each.detail.url === "string")
    .map(({ seq, detail }) => ({ seq, url: String(detail.url), title: lineOrNull(detail.title, 60) }));
  const kind = started.kind === "rules" || started.kind === "model" ? started.kind : null;
  return {
    kind,
    model: stringOrNull(started.model),
    goal: stringOrNull(started.goal),
    starts: strings(started.starts),
    missing: strings(started.missing),
    outcome: honestOutcome(end?.outcome ?? "excluded", kind, checks, judgement),
    judgement,
    endReason: end === undefined ? "The session has no end" : lineOrNull(end.reason),
    endSeq: (end ?? events.at(-1))?.seq ?? null,
    elapsedMs: events.length === 0 ? null : Math.max(...events.map((each) => each.tMs)),
    checks,
    way: http.filter((e) => e.purpose === "way" && !isHop(e) && (e.method !== "CONNECT" || failed(e))),
    tests: http.filter((e) => e.purpose === "check"),
    pages,
    goalTerms: strings(milestone("goal_terms")?.detail.terms),
    pagesWithTerms: new Set(
      milestones
        .filter(
          (e) => e.name === "goal_covered" || (e.name === "section_matched" && strings(e.detail.terms).length > 0),
        )
        .flatMap((e) => [e.detail, ...sectionsOf(e.detail)])
        .map(({ url }) => samePage(String(url))),
    ),
    goalFound: goalOf(milestone("goal_covered") ?? milestone("goal_not_covered"), pages.length),
    failures: failuresOf(events),
    calls: of("tool_call"),
    results: of("tool_result"),
    usage: of("usage"),
    interruptions: of("interruption"),
    limits: of("limit").filter(({ near }) => !near),
  };
}

/**
 * What an agent claims counts against it alone. That a goal was met takes proof: checks that a person declared, which go before everything
 * else, or a judge whose claims events bear out. An agent by rules makes the declared checks itself.
 */
function honestOutcome(
  claimed: Outcome,
  kind: Facts["kind"],
  checks: SeenCheck[],
  judgement: Judgement | null,
): Outcome {
  if (claimed === "no_creds" || claimed === "excluded" || claimed === "scoring_failed") return claimed;
  const declared = checks.filter((check) => check.group === "declared");
  const made = declared.filter((check) => check.status !== "skip");
  if (kind !== "model")
    return claimed === "succeeded" && !made.some(({ status }) => status === "pass") ? "not_judged" : claimed;
  if (made.some(({ status }) => status !== "pass")) return "goal_not_met";
  if (made.length > 0 && made.length === declared.length) return "succeeded";
  if (judgement) return judgement.verdict ? outcomeOf(judgement.verdict) : "scoring_failed";
  return claimed === "succeeded" ? "not_judged" : claimed;
}

/** Headings come as a path, "Guide > Install > npm"; the last names the section. */
const lastHeading = (path: unknown) =>
  lineOrNull(
    String(path ?? "")
      .split(" > ")
      .at(-1),
    80,
  );

/** What a milestone lists beside the main section, which stands in it first again. */
const sectionsOf = ({ sections }: Record<string, unknown>): Record<string, unknown>[] =>
  Array.isArray(sections) ? sections.filter((each) => typeof each === "object" && each !== null) : [];

function goalOf(said: EventOf<"milestone"> | undefined, pagesRead: number): GoalFound | null {
  if (said === undefined) return null;
  const { seq, tMs, detail } = said;
  const pages = numberOr(detail.pages, pagesRead);
  if (said.name === "goal_covered") {
    const [, ...more] = sectionsOf(detail);
    const sections = [detail, ...more].map(({ url, heading }) => ({
      url: stringOrNull(url),
      heading: lastHeading(heading),
    }));
    return { state: "covered", seq, tMs, sections, pages };
  }
  const best = (detail.bestSection ?? {}) as Record<string, unknown>;
  return {
    state: "missed",
    seq,
    covered: strings(detail.covered),
    missing: strings(detail.missing),
    unseen: strings(detail.unseen),
    pages,
    noOverlap: detail.noOverlap === true,
    noSample: detail.noSample === true,
    best: typeof best.url === "string" ? { url: best.url, heading: lastHeading(best.heading) ?? "" } : null,
  };
}

function lastChecks(results: EventOf<"tool_result">[]): SeenCheck[] {
  const byKey = new Map<string, SeenCheck>();
  for (const result of results) {
    for (const check of Array.isArray(result.checks) ? result.checks : []) {
      const key = `${check.group}\n${check.id}\n${check.subject}`;
      const share = clamp(numberOr(check.share, check.status === "pass" ? 1 : 0), 0, 1);
      const weight = Math.max(0, numberOr(check.weight, 1));
      byKey.set(key, { ...check, share, weight, key, seq: result.seq, toolId: result.id });
    }
  }
  return [...byKey.values()];
}

/** A failed request, the failed result of its call and the error event about its address are one failure. */
function failuresOf(events: SessionEvent[]): Failure[] {
  const failures: Failure[] = [];
  const calls = new Map<string, { seq: number; url: string | null }>();
  // A call that tests the docs has not failed when the docs fail the test. Asking robots.txt first tests nothing.
  const testing = new Set(
    events.flatMap((e) => (e.type === "http" && e.purpose === "check" && !isProbe(e) ? [e.id] : [])),
  );
  const address = (url: string | null) => (url === null ? null : sameAddress(url));
  for (const event of events) {
    if (event.type === "tool_call") calls.set(event.id, { seq: event.seq, url: stringOrNull(event.input?.url) });
    // What a tool looks for by itself and does not find has kept nobody from anything; where the agent asked for it, its result says so.
    if (event.type === "http" && event.purpose === "way" && failed(event) && !isProbe(event)) {
      const { id, url, status, error } = event;
      const message = line(error?.message) || (status === null ? "no answer came" : `the answer was status ${status}`);
      failures.push({ what: "request", seqs: [event.seq], id, tool: null, url, code: error?.kind ?? null, message });
    }
    if (event.type === "tool_result" && !event.ok) {
      const { seq, id, tool, output } = event;
      const call = calls.get(id);
      const known = failures.findLast(
        (each) => each.id === id || (call?.url && address(each.url) === address(call.url) && each.seqs[0]! > call.seq),
      );
      const type = stringOrNull(output?.contentType);
      const message =
        line(output?.message) || line(output?.error) || line(output?.problem) || (type ? `the answer was ${type}` : "");
      const code = stringOrNull(output?.error) ?? stringOrNull(output?.problem);
      if (known) known.seqs.push(seq);
      else if (!testing.has(id))
        failures.push({ what: "tool", seqs: [seq], id, tool, url: call?.url ?? null, code, message });
    }
    // What fails between us and a model is no fault of the target.
    if (event.type === "error" && event.source !== "gateway") {
      const { seq, where, url } = event;
      const message = line(event.message);
      const known = url && failures.findLast((each) => address(each.url) === address(url));
      if (known) {
        known.seqs.push(seq);
        if (known.what === "tool") known.message = message;
      } else failures.push({ what: "error", seqs: [seq], id: null, tool: where, url, code: null, message });
    }
  }
  return failures;
}
