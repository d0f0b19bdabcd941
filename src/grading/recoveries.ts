import { actionsOf, type CallActions, isRetry } from "./call-actions.ts";
import type { EventOf } from "./events.ts";
import type { Facts } from "./facts.ts";
import type { Failure } from "./failures.ts";
import type { standardMethodology } from "./methodology.ts";

/** How an error was resolved: by the next try, after reading the docs, after more failed tries, or not at all. */
export type Resolution = keyof typeof standardMethodology.recovery;

/** `fix`: the call that succeeded with the same goal. */
export type Recovery = {
  failure: Failure;
  resolution: Resolution;
  call: EventOf<"tool_call"> | null;
  fix: EventOf<"tool_call"> | null;
};

/** What a call tried, with the requests observed during it. */
export const actionsDuring = (call: EventOf<"tool_call">, { taskRequests }: Facts): CallActions =>
  actionsOf(
    call,
    taskRequests.filter(({ id }) => id === call.id),
  );

const noActions: CallActions = { tool: "", requests: [], commands: [], target: null };

/** Every error that the agent has to fix. Missing pages are excluded, because they count under the docs. */
export function recoveriesOf(facts: Facts): Recovery[] {
  const { calls, failures, taskRequests, pages } = facts;
  const failedIds = new Set(failures.map(({ id }) => id));
  const callTries = calls.map((call) => ({
    call,
    actions: actionsDuring(call, facts),
    hasFailed: failedIds.has(call.id),
  }));
  return failures
    .filter(({ target }) => target !== "docs")
    .map((failure): Recovery => {
      const firstSeq = failure.seqs[0]!;
      const failedTry = callTries.find(({ call }) => call.id === failure.id);
      const actions = failedTry?.actions ?? { ...noActions, tool: failure.tool ?? "" };
      const retries = callTries.filter(({ call, actions: later }) => {
        return call.seq > (failedTry?.call.seq ?? firstSeq) && isRetry(actions, later);
      });
      const fix = retries.find((each) => !each.hasFailed)?.call ?? null;
      const isAnswered = ({ status }: { status: number | null }) => status !== null && status < 400;
      const answer = failedTry
        ? undefined
        : taskRequests.find((http) => http.seq > firstSeq && http.url === failure.url && isAnswered(http));
      const fixedSeq = fix?.seq ?? answer?.seq;
      const resolutionOf = (): Resolution => {
        if (fixedSeq === undefined) return "notAtAll";
        if (retries.some((each) => each.hasFailed && each.call.seq < fixedSeq)) return "later";
        return pages.some(({ seq }) => seq > firstSeq && seq < fixedSeq) ? "afterDocs" : "fromMessage";
      };
      return { failure, resolution: resolutionOf(), call: failedTry?.call ?? null, fix };
    });
}
