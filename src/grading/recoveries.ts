import { type Attempt, attemptOf, isSameAttempt } from "./attempts.ts";
import type { EventOf } from "./events.ts";
import type { Facts } from "./facts.ts";
import type { Failure } from "./failures.ts";
import type { table } from "./methodology.ts";

/** How an error ended: fixed by the next try of the same, after a look in the docs, after more tries that failed, or never. */
export type Fate = keyof typeof table.recovery;

/** `fix`: the call that worked when the same was tried again. */
export type Recovery = {
  failure: Failure;
  fate: Fate;
  call: EventOf<"tool_call"> | null;
  fix: EventOf<"tool_call"> | null;
};

/** What a call tried, with the requests that were seen to come from it. */
export const triedBy = (call: EventOf<"tool_call">, { way }: Pick<Facts, "way">): Attempt =>
  attemptOf(
    call,
    way.filter(({ id }) => id === call.id),
  );

const nothing: Attempt = { tool: "", requests: [], commands: [], target: null };

/** Each error that is the agent's to fix. A page that was not there is none: the docs are charged for it. */
export function recoveriesOf(facts: Facts): Recovery[] {
  const { calls, failures, way, pages } = facts;
  const lost = new Set(failures.map(({ id }) => id));
  const tries = calls.map((call) => ({ call, attempt: triedBy(call, facts), hasFailed: lost.has(call.id) }));
  return failures
    .filter(({ target }) => target !== "docs")
    .map((failure): Recovery => {
      const at = failure.seqs[0]!;
      const own = tries.find(({ call }) => call.id === failure.id);
      const attempt = own?.attempt ?? { ...nothing, tool: failure.tool ?? "" };
      const again = tries.filter(({ call, attempt: later }) => {
        return call.seq > (own?.call.seq ?? at) && isSameAttempt(attempt, later);
      });
      const fix = again.find((each) => !each.hasFailed)?.call ?? null;
      const isAnswered = ({ status }: { status: number | null }) => status !== null && status < 400;
      const answered = own
        ? undefined
        : way.find((http) => http.seq > at && http.url === failure.url && isAnswered(http));
      const fixed = fix?.seq ?? answered?.seq;
      const fateOf = (): Fate => {
        if (fixed === undefined) return "notAtAll";
        if (again.some((each) => each.hasFailed && each.call.seq < fixed)) return "later";
        return pages.some(({ seq }) => seq > at && seq < fixed) ? "afterDocs" : "fromMessage";
      };
      return { failure, fate: fateOf(), call: own?.call ?? null, fix };
    });
}
