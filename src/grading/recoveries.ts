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
export const triedBy = (call: EventOf<"tool_call">, { taskRequests }: Facts): CallActions =>
  actionsOf(
    call,
    taskRequests.filter(({ id }) => id === call.id),
  );

const nothing: CallActions = { tool: "", requests: [], commands: [], target: null };

/** Every error that the agent has to fix. Missing pages are excluded, because they count under the docs. */
export function recoveriesOf(facts: Facts): Recovery[] {
  const { calls, failures, taskRequests, pages } = facts;
  const lost = new Set(failures.map(({ id }) => id));
  const tries = calls.map((call) => ({ call, attempt: triedBy(call, facts), hasFailed: lost.has(call.id) }));
  return failures
    .filter(({ target }) => target !== "docs")
    .map((failure): Recovery => {
      const at = failure.seqs[0]!;
      const own = tries.find(({ call }) => call.id === failure.id);
      const attempt = own?.attempt ?? { ...nothing, tool: failure.tool ?? "" };
      const again = tries.filter(({ call, attempt: later }) => {
        return call.seq > (own?.call.seq ?? at) && isRetry(attempt, later);
      });
      const fix = again.find((each) => !each.hasFailed)?.call ?? null;
      const isAnswered = ({ status }: { status: number | null }) => status !== null && status < 400;
      const answer = own
        ? undefined
        : taskRequests.find((http) => http.seq > at && http.url === failure.url && isAnswered(http));
      const fixed = fix?.seq ?? answer?.seq;
      const fateOf = (): Resolution => {
        if (fixed === undefined) return "notAtAll";
        if (again.some((each) => each.hasFailed && each.call.seq < fixed)) return "later";
        return pages.some(({ seq }) => seq > at && seq < fixed) ? "afterDocs" : "fromMessage";
      };
      return { failure, resolution: fateOf(), call: own?.call ?? null, fix };
    });
}
