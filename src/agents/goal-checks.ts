import type { AgentContext, AgentEvent, Outcome } from "./agent.ts";
import { checkDeclared } from "./explorer/declared.ts";
import { createFetching } from "./explorer/fetching.ts";
import type { Task } from "./task.ts";

export type Ending = { outcome: Outcome; reason: string };

type Checking = {
  task: Task;
  context: AgentContext;
  nextId: () => string;
  tell: (event: AgentEvent) => void;
};

/** Runs the success checks; null if there are none. */
export async function checkGoal(
  { task, context, nextId, tell }: Checking,
  when: "before" | "after",
): Promise<Ending | null> {
  if (task.declaredChecks.length === 0) return null;
  const steps = checkDeclared({ task, context, fetching: createFetching(task, context), nextId }, when);
  for (;;) {
    const { done, value } = await steps.next();
    if (done) return value;
    tell(value);
  }
}

/** The end of a session: success checks take precedence over the model's claim. */
export async function decideEnding(claimed: Ending, checking: Checking): Promise<Ending> {
  const said = await checkGoal(checking, "after");
  if (said === null || said.outcome === "not_judged") return claimed;
  if (said.outcome === "goal_not_met") return { ...said, reason: `${said.reason} ${claimed.reason}` };
  return claimed.outcome === "succeeded" ? said : claimed;
}
