import type { SessionEvent } from "../../agents/agent.ts";
import type { EventOf } from "../events.ts";
import { requestPrecondition } from "../exposure.ts";
import type { Facts } from "../facts.ts";
import type { Failure } from "../failures.ts";
import { minQuoteChars, textOf, textSourceOf } from "../judge/evidence.ts";
import { addressFilter } from "../judge/judge.ts";
import { lowerFirst, normalizedLine, normalizeUrl, oneLine, sentence } from "../text.ts";
import { type Finding, fingerprint, noCause, sortedUnique } from "./finding.ts";

/** Reports of one session that are checked. */
const maxReports = 100;

/** `quote`: the agent's quote if it is long enough to prove something, or else empty. */
type Proof = { failure: Failure; page: SessionEvent | null; quote: string };

/**
 * The findings of the rules, and the findings that the agent reported and that events prove. An earlier failure must contain the words or the URL in
 * the report. The agent's words are added to what rules found about that failure. The agent doesn't decide the severity.
 */
export function withReportedFriction(findings: Finding[], facts: Facts, session: SessionEvent[]): Finding[] {
  const all = [...findings];
  const reportedFingerprints = new Set<string>();
  const lookup = toLookup(facts, session);
  const { toolOf } = lookup;
  const eventsOfOthers = session.filter((event) => textSourceOf(event, toolOf) !== "agent");
  const reports = facts.calls.filter(({ tool }) => tool === "report_friction").slice(0, maxReports);
  for (const call of reports) {
    const proof = prove(call, facts, session, lookup);
    if (!proof) continue;
    const reportedTitle = oneLine(call.input?.title, 1000);
    const earlierEvents = eventsOfOthers.filter(({ seq }) => seq < call.seq);
    // Without addresses that nothing before the report contains.
    const title = oneLine(addressFilter(earlierEvents, reportedTitle)(reportedTitle), 160);
    if (title === "") continue;
    const { failure, page, quote } = proof;
    const existing = all.find(({ events }) => failure.seqs.some((seq) => events.includes(seq)));
    const finding = existing ?? toFinding(proof, title);
    // One cause is reported once, even if the agent repeats it.
    if (reportedFingerprints.has(finding.fingerprint)) continue;
    reportedFingerprints.add(finding.fingerprint);
    if (existing === undefined) all.push(finding);
    else
      all[all.indexOf(existing)] = {
        ...existing,
        description: oneLine(`${sentence(existing.description)} The agent reported: ${sentence(title)}`, 1200),
        quote: existing.quote ?? (oneLine(quote) || null),
        events: sortedUnique([...existing.events, ...(page ? [page.seq] : [])]),
      };
  }
  return all;
}

type EventLookup = {
  /** The tool of a call. */
  toolOf: (id: string) => string | undefined;
  bySeq: Map<number, SessionEvent>;
  /** The events that started a call. */
  callsById: Map<string, EventOf<"tool_call">[]>;
};

function toLookup(facts: Facts, session: SessionEvent[]): EventLookup {
  const calls = session.filter((event) => event.type === "tool_call");
  // If an ID occurs twice, the first call counts.
  const tools = new Map(facts.calls.toReversed().map(({ id, tool }) => [id, tool]));
  return {
    toolOf: (id) => tools.get(id),
    bySeq: new Map(session.map((event) => [event.seq, event])),
    callsById: Map.groupBy(calls, ({ id }) => id),
  };
}

/** The failure that a report is about, and the page that contains its quote; null if no event supports it. */
function prove(
  { seq, input }: EventOf<"tool_call">,
  facts: Facts,
  session: SessionEvent[],
  { toolOf, bySeq, callsById }: EventLookup,
): Proof | null {
  const earlierEvents = session.filter((event) => event.seq < seq);
  const words = normalizedLine(typeof input?.quote === "string" ? input.quote.replace(/^["“]|["”]$/g, "") : "");
  const quote = [...words].length >= minQuoteChars ? words : "";
  const hasQuote = (event: SessionEvent) => quote !== "" && textOf(event).includes(quote);
  const page = earlierEvents.find((event) => textSourceOf(event, toolOf) === "page" && hasQuote(event));
  const address = typeof input?.url === "string" && URL.canParse(input.url) ? normalizeUrl(input.url) : null;
  const failure = facts.failures.findLast(({ seqs, id, url }) => {
    if (seqs.some((each) => each >= seq)) return false;
    if (address !== null && url !== null && normalizeUrl(url) === address) return true;
    const calls = id === null ? [] : (callsById.get(id) ?? []);
    const failureEvents = [...seqs.flatMap((each) => bySeq.get(each) ?? []), ...calls];
    return failureEvents.some((event) => event.seq < seq && hasQuote(event));
  });
  return failure ? { failure, page: page ?? null, quote } : null;
}

function toFinding({ failure, page, quote }: Proof, title: string): Finding {
  const category = page ? "misleading_docs" : "other";
  const subject = failure.url === null ? `agent ${failure.tool}` : `agent ${normalizeUrl(failure.url)}`;
  const print = fingerprint(category, subject);
  return {
    fingerprint: print,
    severity: "medium",
    phase: "execution",
    category,
    title,
    description: `The agent reported: ${sentence(title)}`,
    quote: oneLine(quote) || null,
    url: failure.url === null ? null : oneLine(failure.url, 2000),
    onPath: true,
    events: sortedUnique([...failure.seqs, ...(page ? [page.seq] : [])]),
    cause: { ...noCause, failures: failure.seqs.slice(0, 1) },
    foundBy: "agent",
    remedy: { key: `agent ${print}`, title: oneLine(`Fix: ${lowerFirst(title)}`, 160), kind: "other" },
    place: oneLine(title, 120),
    owner: "fixes",
    evidence: null,
    preconditions: [failure.url === null ? `tool ${failure.tool}` : requestPrecondition(failure.url)],
    fix: null,
  };
}
