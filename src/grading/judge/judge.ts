import { Value } from "@sinclair/typebox/value";
import type { SessionEvent } from "../../agents/agent.ts";
import { invalidInput } from "../../schema.ts";
import { milestonesOf } from "../events.ts";
import type { JudgedPart } from "../grade.ts";
import { normalizedLine, oneLine, textsIn } from "../text.ts";
import { gatherText, minQuoteChars, partsOf, textOf, textSourceOf } from "./evidence.ts";
import { type Proof, proofFinder } from "./proof.ts";
import { Answer, truncateAnswer } from "./rubric.ts";

/** A judge's answer after every claim was checked against the session. */
export type Verdict = {
  parts: JudgedPart[];
  frictions: Answer["frictions"];
  /** null: a claim about the goal wasn't proven, so the judge's explanation is dropped too. */
  texts: { keyFinding: string; verdict: string; summary: Answer["summary"] } | null;
  confidence: number;
  /** Claims that no event proves, as sentences. */
  dropped: string[];
};

/** A session and its judgment. `verdict` null: there was no usable one, see `reason`. */
export type Judgment = {
  model: string;
  rubric: string;
  usage: Extract<SessionEvent, { type: "usage" }>[];
  verdict: Verdict | null;
  reason: string | null;
};

/** The events of a session and the events of its judging. The latter start with the service's own event. */
export function splitJudging(storedEvents: SessionEvent[]): { session: SessionEvent[]; judging: SessionEvent[] } {
  const events = storedEvents.toSorted((a, b) => a.seq - b.seq);
  const judgingIndex = events.findIndex(isStartOfJudging);
  return judgingIndex < 0
    ? { session: events, judging: [] }
    : { session: events.slice(0, judgingIndex), judging: events.slice(judgingIndex) };
}

const isStartOfJudging = (event: SessionEvent) =>
  event.source === "runner" && event.type === "milestone" && event.name === "judging";

/** The stored judgment, checked against the session; null if there is none. */
export function readJudgment(judging: SessionEvent[], session: SessionEvent[]): Judgment | null {
  const events = judging.filter(({ source }) => source === "runner");
  const conclusion =
    events.findLast((e) => e.type === "milestone" && (e.name === "judged" || e.name === "not_judged")) ??
    milestonesOf(events, "judging").at(-1);
  if (conclusion === undefined) return null;
  const { model, rubric, goal } = conclusion.detail;
  const usage = events.filter((event) => event.type === "usage");
  const answer =
    conclusion.name === "judged" && Value.Check(Answer, conclusion.detail.answer) ? conclusion.detail.answer : null;
  const givenReason = conclusion.name === "not_judged" ? oneLine(conclusion.detail.reason) : "";
  return {
    model,
    rubric,
    usage,
    verdict: answer && checkAnswer(answer, partsOf(goal), session),
    reason: answer ? null : givenReason || "the judge did not finish",
  };
}

/**
 * The JSON object in a text. Models that aren't forced to follow a schema may write text before it, or wrap it in a
 * fence. undefined: there is none.
 */
export function parseJsonObject(text: string): unknown {
  const reply = text.split("</think>").at(-1) ?? "";
  try {
    return JSON.parse(reply.slice(reply.indexOf("{"), reply.lastIndexOf("}") + 1));
  } catch {
    return undefined;
  }
}

/** A model's answer (null: it is unusable), and what to tell the model about its mistakes (null: it made none). `output` undefined: no JSON. */
export function readAnswer(output: unknown, goal: string, session: SessionEvent[]) {
  if (output === undefined)
    return { answer: null, objection: "the response was not a complete JSON object that matches the schema" };
  const error = Value.Errors(Answer, output).First();
  if (error) return { answer: null, objection: invalidInput(error, "answer").detail };
  const answer = truncateAnswer(output as Answer);
  const { dropped } = checkParts(answer, partsOf(goal), session, addressFilter(session, answer));
  return { answer, objection: dropped.length > 0 ? dropped.join("; ") : null };
}

/** The verdict of an answer, without the claims that no event proves. */
function checkAnswer(rawAnswer: Answer, goal: string[], session: SessionEvent[]): Verdict {
  const answer = truncateAnswer(rawAnswer);
  const removeUnknownUrls = addressFilter(session, answer);
  const { parts, dropped: droppedParts } = checkParts(answer, goal, session, removeUnknownUrls);
  const { frictions, dropped: droppedFrictions } = checkFrictions(answer, session, removeUnknownUrls);
  const { whatWorked, whatDidnt } = answer.summary;
  const texts = {
    keyFinding: removeUnknownUrls(answer.keyFinding),
    verdict: removeUnknownUrls(answer.verdict),
    summary: { whatWorked: removeUnknownUrls(whatWorked), whatDidnt: removeUnknownUrls(whatDidnt) },
  };
  return {
    parts,
    frictions,
    texts: droppedParts.length === 0 ? texts : null,
    confidence: answer.confidence,
    dropped: [...droppedParts, ...droppedFrictions],
  };
}

type EventsBySeq = ReadonlyMap<number, SessionEvent>;
const toEventsBySeq = (session: SessionEvent[]): EventsBySeq => new Map(session.map((event) => [event.seq, event]));
/** The cited events of a claim, the event with the quote first, and what that event proves. */
type Citation<P> = { quote: string; events: number[]; proof: P };

/**
 * Finds what proves a claim. The claim's events must exist, and one of them must contain its quote and be of a kind that proves the claim. Otherwise,
 * returns an objection, which continues a sentence about the claim.
 */
function findCitation<P>(
  bySeq: EventsBySeq,
  claim: { events: number[]; quote: string },
  toProof: (event: SessionEvent, quote: string) => P | null,
): Citation<P> | { objection: string } {
  const events = claim.events.flatMap((seq) => bySeq.get(seq) ?? []);
  const quote = normalizedLine(claim.quote.replace(/^["“]|["”]$/g, ""));
  if (events.length === 0 || events.length < claim.events.length)
    return { objection: "it cites events that do not exist" };
  if ([...quote].length < minQuoteChars) return { objection: "its quote is too short" };
  const quotingEvents = events.filter((event) => textOf(event).includes(quote));
  if (quotingEvents.length === 0) return { objection: "none of its events contains the quote" };
  for (const event of quotingEvents) {
    const proof = toProof(event, quote);
    if (proof === null) continue;
    const others = events.map(({ seq }) => seq).filter((seq) => seq !== event.seq);
    return { quote: oneLine(quote), events: [event.seq, ...others], proof };
  }
  return { objection: "the quote is only in events that prove nothing" };
}

/** What proves that a part of the goal wasn't met. Several parts may share it, unlike the proof of a part that was met. */
type FailureProof = { grade: Proof["grade"]; isShareable: true };
/** A response proves more than the agent's machine. */
const toFailureProof = (event: SessionEvent): FailureProof => ({
  grade: event.type === "http" ? "verified" : "observed",
  isShareable: true,
});

/** What proves that a part of the goal was met, with the judge's quote. */
type QuotedProof = { quote: string; proof: Proof };

/** Whether a proof shows nothing more than another one: it has the same quote, or only values that the other one has from the same call. */
const showsNothingMore = ({ quote, proof }: QuotedProof, than: QuotedProof) =>
  quote === than.quote ||
  (proof.call === than.proof.call && proof.values.every((value) => than.proof.values.includes(value)));

/** Checks the claims about the parts of the goal, in their order. Two parts can't be met by the same proof. */
function checkParts(
  answer: Answer,
  goal: string[],
  session: SessionEvent[],
  removeUnknownUrls: (text: string) => string,
): { parts: JudgedPart[]; dropped: string[] } {
  const bySeq = toEventsBySeq(session);
  const toolByCall = new Map(session.flatMap((event) => (event.type === "tool_call" ? [[event.id, event.tool]] : [])));
  const proofOf = proofFinder(session);
  const usedProofs: QuotedProof[] = [];
  const proveSuccess = (event: SessionEvent, quote: string): Proof | null => {
    const proof = proofOf(event, quote);
    return proof !== null && !usedProofs.some((used) => showsNothingMore({ quote, proof }, used)) ? proof : null;
  };
  const proveFailure = (event: SessionEvent): FailureProof | null =>
    textSourceOf(event, (id) => toolByCall.get(id)) === "page" ? null : toFailureProof(event);
  const dropped: string[] = [];
  const parts = goal.map((text, i): JudgedPart => {
    const unclear: JudgedPart = { text, met: "unclear", evidence: null, events: [], quote: null, why: "" };
    const claims = answer.parts.filter(({ part }) => part === i + 1);
    const [claim] = claims;
    if (!claim || claims.some(({ met }) => met !== claim.met)) {
      dropped.push(`part ${i + 1}: ${claim ? "it has two different verdicts" : "it has no verdict"}`);
      return unclear;
    }
    const why = removeUnknownUrls(claim.why);
    if (claim.met === "unclear") return { ...unclear, why };
    const citation =
      claim.met === "yes" ? findCitation(bySeq, claim, proveSuccess) : findCitation(bySeq, claim, proveFailure);
    if ("objection" in citation) {
      dropped.push(`part ${i + 1}, ${claim.met}: ${citation.objection}`);
      // That the part was met is now only the judge's word.
      return { ...unclear, evidence: claim.met === "yes" ? "judged" : null };
    }
    const { quote, events, proof } = citation;
    if (!("isShareable" in proof)) usedProofs.push({ quote, proof });
    return { text, met: claim.met, evidence: proof.grade, quote, events, why };
  });
  return { parts, dropped };
}

/** Checks the friction that the judge found. Any event with the quote proves it. */
function checkFrictions(answer: Answer, session: SessionEvent[], removeUnknownUrls: (text: string) => string) {
  const bySeq = toEventsBySeq(session);
  const dropped: string[] = [];
  const frictions = answer.frictions.flatMap((friction) => {
    const citation = findCitation(bySeq, friction, () => true);
    if ("objection" in citation) {
      dropped.push(`friction ${JSON.stringify(friction.title)}: ${citation.objection}`);
      return [];
    }
    const { events, quote } = citation;
    const title = removeUnknownUrls(friction.title);
    const why = removeUnknownUrls(friction.why);
    return [{ ...friction, events, quote, title, why, advice: removeUnknownUrls(friction.advice) }];
  });
  return { frictions, dropped };
}

/** `https://host/path`, `www.host`, `mailto:a@b`. */
const addressWithScheme = String.raw`(?:[a-z][a-z0-9+.-]*:\/\/|www\.|(?:javascript|data|mailto|file):)\S+`;
const hostName = String.raw`(?:[\w-]+\.)+[a-z]{2,}`;
const ipAddress = String.raw`(?:\d{1,3}\.){3}\d{1,3}`;
/** Without a scheme, only a path after a host shows that it is an address. */
const hostWithPath = String.raw`(?<![\w.-])(?:${hostName}|${ipAddress})(?::\d+)?[/?#]\S*`;
const address = new RegExp(`${addressWithScheme}|${hostWithPath}`, "giu");

/** Addresses that one session is searched for. Honest texts of a model have a handful. */
const maxAddresses = 100;

/**
 * Removes URLs that don't occur in a session, and all URLs after the first hundred different ones, from a model's texts. `texts`: a value with all
 * of these texts, such as an answer. Their URLs are looked up in one pass, since the texts of a large session take several times its memory.
 */
export function addressFilter(session: SessionEvent[], texts: unknown): (text: string) => string {
  const urls = textsIn(texts).flatMap((text) => text.normalize("NFKC").match(address) ?? []);
  const missing = new Set([...new Set(urls.map(trimUrl))].slice(0, maxAddresses));
  const occurring = new Set<string>();
  for (const event of session) {
    if (missing.size === 0) break;
    const eventText = gatherText(event);
    for (const url of missing)
      if (eventText.includes(url)) {
        missing.delete(url);
        occurring.add(url);
      }
  }
  return (text) =>
    text.normalize("NFKC").replace(address, (url) => {
      const trimmedUrl = trimUrl(url);
      return occurring.has(trimmedUrl) ? url : `[URL removed]${url.slice(trimmedUrl.length)}`;
    });
}

/** A URL without the punctuation of its sentence. */
const trimUrl = (url: string) => url.replace(/[)\]}>"'`.,;:!?*_]+$/, "");

/** The outcome according to a verdict: one unmet part decides; an unclear one leaves it open. */
export function outcomeOf({ parts }: Verdict): "succeeded" | "goal_not_met" | "not_judged" {
  if (parts.some(({ met }) => met === "no")) return "goal_not_met";
  return parts.length > 0 && parts.every(({ met }) => met === "yes") ? "succeeded" : "not_judged";
}

const modelFamilies = /claude|gemini|gemma|llama|qwen|mistral|mixtral|deepseek|gpt|grok|phi|command|kimi|glm/i;
/** The vendors of model families that don't have their vendor's name. */
const vendors: Record<string, string> = {
  gpt: "openai",
  claude: "anthropic",
  gemini: "google",
  gemma: "google",
  mixtral: "mistral",
};

/** The vendor of a model such as `openai/gpt-5`, or else its family: models of one vendor judge each other too kindly. */
export function vendorOf(model: string): string {
  const [provider, name] = model.split(/\/(.*)/s);
  if (provider !== undefined && name !== undefined && provider !== "openai-compatible") return provider;
  const family = modelFamilies.exec(name ?? model)?.[0]?.toLowerCase() ?? model;
  return vendors[family] ?? family;
}
