import type { Action } from "./actions/action.ts";
import { minIntentSimilarity, similarityOf } from "./actions/alignment.ts";
import { intentsOf } from "./actions/call.ts";
import { actionsDuring } from "./actions/session-actions.ts";
import type { EventOf } from "./events.ts";
import type { Facts } from "./facts.ts";
import type { Failure } from "./failures.ts";
import type { standardMethodology } from "./methodology.ts";
import { textsIn } from "./text.ts";

/** How an error was resolved: by the next try, after reading the docs, after more failed tries, or not at all. */
export type Resolution = keyof typeof standardMethodology.recovery;

type Call = EventOf<"tool_call">;

/** `fix`: the call that succeeded with the same goal, the most similar one. `message`: what the product or the shell said. */
export type Recovery = {
  failure: Failure;
  resolution: Resolution;
  call: Call | null;
  fix: Call | null;
  message: string;
};

/** A call with the actions that it was made for. `isUnknown`: nobody knows whether it failed. */
type IntendedCall = { call: Call; intents: Action[]; hasFailed: boolean; isUnknown: boolean };

/** Every error that the agent has to fix. Missing pages are excluded, because they count under the docs. */
export function recoveriesOf(facts: Facts): Recovery[] {
  const { calls, results, failures } = facts;
  const failedIds = new Set(failures.map(({ id }) => id));
  const unknownIds = new Set(results.filter(({ ok }) => ok === null).map(({ id }) => id));
  const intendedCalls = calls.map((call): IntendedCall => {
    const hasFailed = failedIds.has(call.id);
    const isUnknown = !hasFailed && unknownIds.has(call.id);
    return { call, intents: intentsOf(actionsDuring(call, facts)), hasFailed, isUnknown };
  });
  return failures
    .filter(({ target }) => target !== "docs")
    .flatMap((failure) => findRecovery(failure, intendedCalls, facts) ?? []);
}

/** How a failure was resolved; null if nobody knows whether it was. */
function findRecovery(failure: Failure, intendedCalls: IntendedCall[], facts: Facts): Recovery | null {
  const firstSeq = failure.seqs[0]!;
  const failedCall = intendedCalls.find(({ call }) => call.id === failure.id);
  const message = messageOf(failure, facts);
  const retries = failedCall ? retriesOf(failedCall, intendedCalls, message) : [];
  const successes = retries.filter((each) => !each.hasFailed && !each.isUnknown);
  // The first success ended the error, but the most similar one shows what was wrong.
  const endSeq = failedCall ? successes[0]?.call.seq : findLaterAnswer(failure, facts)?.seq;
  const [fix] = successes.toSorted((a, b) => b.similarity - a.similarity);
  if (endSeq === undefined && retries.some(({ isUnknown }) => isUnknown)) return null;
  const resolutionOf = (): Resolution => {
    if (endSeq === undefined) return "notAtAll";
    if (retries.some((each) => each.hasFailed && each.call.seq < endSeq)) return "later";
    return facts.pages.some(({ seq }) => seq > firstSeq && seq < endSeq) ? "afterDocs" : "fromMessage";
  };
  return { failure, resolution: resolutionOf(), call: failedCall?.call ?? null, fix: fix?.call ?? null, message };
}

/** The first successful request for the URL of a failure, after it. */
const findLaterAnswer = ({ seqs, url }: Failure, { taskRequests }: Facts) =>
  taskRequests.find((http) => http.seq > seqs[0]! && http.url === url && http.status !== null && http.status < 400);

/** The later calls that try again what a failed one tried, each with how similar it is. */
const retriesOf = (failed: IntendedCall, calls: IntendedCall[], message: string) =>
  calls
    .filter(({ call }) => call.seq > failed.call.seq)
    .map((each) => ({ ...each, similarity: callSimilarity(failed, each, message) }))
    .filter(({ similarity }) => similarity >= minIntentSimilarity);

/** 0 to 1: whether a call tries the same thing again as an earlier call. A call of another tool does if it has the same target. */
function callSimilarity(failed: IntendedCall, later: IntendedCall, message: string): number {
  if (failed.intents.length > 0)
    return Math.max(
      0,
      ...failed.intents.flatMap((intent) => later.intents.map((other) => similarityOf(intent, other, message))),
    );
  const targetOf = ({ call: { input } }: IntendedCall) => input?.path ?? input?.ref;
  return failed.call.tool === later.call.tool && targetOf(failed) === targetOf(later) ? 1 : 0;
}

/** All that was said about a failure. */
function messageOf({ id, seqs, message }: Failure, { results, taskRequests }: Facts): string {
  const outputs = results.filter((each) => each.id === id).map(({ output }) => output);
  const bodies = taskRequests.filter(({ seq }) => seqs.includes(seq)).map(({ body }) => body);
  return textsIn([message, outputs, bodies]).join("\n");
}
