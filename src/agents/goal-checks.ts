import type { AgentContext, AgentEvent, Outcome } from "./agent.ts";
import type { EndingName } from "./endings.ts";
import { createFetcher } from "./explorer/fetching.ts";
import { runSuccessChecks } from "./explorer/success-checks.ts";
import type { Task } from "./task.ts";

/** `ending`: how the session ended; left out for a result of success checks alone. */
export type Ending = { outcome: Outcome; reason: string; ending?: EndingName };

/** A session of an agent with a model. */
export type AgentSession = {
  task: Task;
  context: AgentContext;
  nextId: () => string;
  report: (event: AgentEvent) => void;
};

/** Runs the success checks of a task, `before` the agent works or `after`. Returns the ending that they decide; null if there are none. */
export async function checkGoal(
  { task, context, nextId, report }: AgentSession,
  when: "before" | "after",
): Promise<Ending | null> {
  if (task.declaredChecks.length === 0) return null;
  const steps = runSuccessChecks({ task, context, fetcher: createFetcher(task, context), nextId }, when);
  for (;;) {
    const { done, value } = await steps.next();
    if (done) return value;
    report(value);
  }
}

/** The ending of a session. Success checks take precedence over what the model claims. */
export async function decideEnding(claim: Ending, session: AgentSession): Promise<Ending> {
  const result = await checkGoal(session, "after");
  if (result === null || result.outcome === "not_judged") return claim;
  const { ending } = claim;
  if (result.outcome === "goal_not_met")
    return { ...result, reason: `${result.reason} ${claim.reason}`, ...(ending && { ending }) };
  return claim.outcome === "succeeded" ? { ...result, ...(ending && { ending }) } : claim;
}
