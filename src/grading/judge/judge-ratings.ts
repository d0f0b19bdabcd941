import { requestPrecondition } from "../exposure.ts";
import type { Facts } from "../facts.ts";
import { type Finding, fingerprint, noCause, pageName } from "../findings/finding.ts";
import type { Friction, JudgeSummary } from "../grade.ts";
import { severityRank } from "../methodology.ts";
import { count, lineOrNull, lowerFirst, normalizedLine, normalizeUrl, oneLine, sentence } from "../text.ts";
import { minQuoteChars } from "./evidence.ts";
import { type Judgment, vendorOf } from "./judge.ts";

/** The judge of a report, its cost, and what remains of its answer. */
export function toJudgeSummary({ model, usage, verdict, reason }: Judgment, facts: Facts): JudgeSummary {
  const sum = (amountOf: (each: (typeof usage)[number]) => number) =>
    usage.reduce((total, each) => total + amountOf(each), 0);
  const allPriced = usage.every(({ costUsd }) => costUsd !== null);
  const agents = [facts.model, ...facts.usage.map((each) => each.model)].filter((each) => each !== null);
  const relatedAgent = agents.find((agent) => vendorOf(agent) === vendorOf(model));
  const familyNotice =
    relatedAgent === undefined
      ? null
      : `The judge and the agent (${oneLine(relatedAgent, 100)}) are from the same model family, and models tend to favor their own. Set a judge from another family in EVALD_JUDGE_MODEL.`;
  return {
    model,
    costUsd: allPriced ? Math.round(sum(({ costUsd }) => costUsd ?? 0) * 1e6) / 1e6 : null,
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    calls: usage.length,
    confidence: verdict?.confidence ?? null,
    parts: verdict?.parts ?? [],
    dropped: (verdict?.dropped ?? []).map((each) => oneLine(each, 300)),
    notice: reason ? oneLine(sentence(reason), 400) : familyNotice,
  };
}

/** The severities in the order of their ranks. */
const ranks = Object.keys(severityRank) as Friction["severity"][];

/** The findings of the rules with the judge's ratings, plus the judge's own findings. */
export function withJudgeRatings(findings: Finding[], facts: Facts): Finding[] {
  const findingsByFingerprint = new Map(findings.map((finding) => [finding.fingerprint, finding]));
  // A judge may cite the call, the request or the result of a failure.
  const citesFailure = (first: number, events: number[]): boolean => {
    const failure = facts.failures.find(({ seqs }) => seqs[0] === first);
    const calls = facts.calls.filter(({ id }) => failure?.id === id).map(({ seq }) => seq);
    return [...(failure?.seqs ?? [first]), ...calls].some((seq) => events.includes(seq));
  };
  // One cause is one finding, no matter who found it: what the agent reported for the same event, and what rules found
  // for the same failure.
  const findSameCause = (events: number[]) => {
    const all = [...findingsByFingerprint.values()];
    return (
      all.find((each) => each.foundBy === "agent" && each.events.includes(events[0] ?? -1)) ??
      all.find(({ cause }) => cause.failures.some((seq) => citesFailure(seq, events)))
    );
  };
  for (const friction of facts.judgment?.verdict?.frictions ?? []) {
    // A judge names the finding of the rules that it means, if there is one.
    const sameCause = friction.finding === "" ? findSameCause(friction.events) : undefined;
    const ownFinding = toFinding(friction, facts);
    const existing =
      sameCause ?? findingsByFingerprint.get(friction.finding) ?? findingsByFingerprint.get(ownFinding.fingerprint);
    if (sameCause && isDocsMistake(friction) && !isDocsMistake(sameCause)) {
      // A mistake in the docs is the cause of the failure that it led to, and replaces it.
      findingsByFingerprint.delete(sameCause.fingerprint);
      findingsByFingerprint.set(ownFinding.fingerprint, { ...ownFinding, cause: sameCause.cause });
    } else if (!existing) findingsByFingerprint.set(ownFinding.fingerprint, ownFinding);
    // A finding that the judge itself added before stays as it is, because this friction only repeats it.
    else if (existing.foundBy !== "judge")
      findingsByFingerprint.set(existing.fingerprint, withRating(existing, friction));
  }
  return [...findingsByFingerprint.values()];
}

const withRating = (finding: Finding, { severity, why, quote, advice }: JudgedFriction): Finding => ({
  ...finding,
  severity: oneStepToward(finding.severity, severity),
  description: oneLine(`${sentence(finding.description)} The judge: ${sentence(why)}`, 1200),
  quote: finding.quote ?? (oneLine(quote) || null),
  // If the judge names a mistake in the docs, the error isn't the agent's own.
  owner: "fixes",
  fix: finding.fix ?? advice,
});

const isDocsMistake = ({ category }: { category: string }): boolean => category === "misleading_docs";

/** A judge may change the severity of a rule's finding by one step, because the text that it read may try to influence it. */
function oneStepToward(from: Friction["severity"], to: Friction["severity"]): Friction["severity"] {
  return ranks[severityRank[from] + Math.sign(severityRank[to] - severityRank[from])] ?? from;
}

type JudgedFriction = NonNullable<Judgment["verdict"]>["frictions"][number];

/** The judge's friction as a finding. Its URL and its fingerprint come from its evidence, never from the judge. */
function toFinding(
  { severity, phase, category, title, why, advice, events, quote }: JudgedFriction,
  facts: Facts,
): Finding {
  const firstEvent = events[0];
  const result = facts.results.find(({ seq }) => seq === firstEvent);
  const call = facts.calls.find(({ seq, id }) => seq === firstEvent || id === result?.id);
  const http = facts.taskRequests.find((each) => each.seq === firstEvent || (call && each.id === call.id));
  const address = http?.url ?? (typeof call?.input?.url === "string" ? call.input.url : null);
  const requestedUrl = address !== null && /^https?:\/\//i.test(address) ? oneLine(address, 2000) : null;
  const subject =
    requestedUrl === null ? `judge ${call?.tool ?? result?.tool ?? phase}` : `judge ${normalizeUrl(requestedUrl)}`;
  const evidence = pageWith(quote, events, facts);
  // The page to change, rather than a URL that failed.
  const url = evidence?.url ?? requestedUrl;
  const findingFingerprint = fingerprint(category, subject);
  return {
    fingerprint: findingFingerprint,
    severity,
    phase,
    category,
    title: oneLine(title, 160) || `${count(events.length, "event")} affected`,
    description: oneLine(why, 800) || sentence(title),
    quote: oneLine(quote) || null,
    url,
    onPath: true,
    events,
    cause: noCause,
    foundBy: "judge",
    remedy: { key: `judge ${findingFingerprint}`, title: oneLine(`Fix: ${lowerFirst(title)}`, 160), kind: "other" },
    place: oneLine(title, 120),
    owner: "fixes",
    evidence,
    fix: oneLine(advice, 500) || null,
    preconditions: [requestedUrl === null ? "run" : requestPrecondition(requestedUrl)],
  };
}

/** The line of a page among these events that contains the quoted words. */
function pageWith(quote: string, events: number[], facts: Facts): Finding["evidence"] {
  const words = normalizedLine(quote);
  if ([...words].length < minQuoteChars) return null;
  for (const { seq, tool, output } of facts.results) {
    if (!events.includes(seq) || tool !== "fetch_page" || typeof output?.text !== "string") continue;
    const lines = output.text.split("\n");
    const index = lines.findIndex((each) => normalizedLine(each).includes(words));
    const url = typeof output.url === "string" ? oneLine(output.url, 2000) : "";
    if (index < 0 || !/^https?:\/\//i.test(url)) continue;
    const page = pageName(facts, url);
    const steps = [{ role: "read" as const, event: seq, what: page, status: null }];
    return { url, line: index + 1, found: oneLine(words), expected: null, text: lineOrNull(lines[index]), steps };
  }
  return null;
}
