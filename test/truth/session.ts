import type { SessionEvent } from "../../src/agents/agent.ts";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import type { Task } from "../../src/agents/task.ts";
import { gradeSession } from "../../src/grading/score.ts";
import { wideLimits } from "../support/limits.ts";
import { clock } from "./clock.ts";

export type Explored = { events: SessionEvent[]; grade: ReturnType<typeof gradeSession>; ms: number };

const explorer = createExplorer({ version: "0.0.0" });

/** One session of the explorer, graded as the service grades it. */
export async function explore(start: string, goal: string, limits: Partial<Task["limits"]> = {}): Promise<Explored> {
  const startedAt = clock.now();
  const beganMs = Date.now();
  const task: Task = {
    text: goal,
    endGoal: goal,
    startUrls: [start],
    productUrl: null,
    urlMap: {},
    declaredChecks: [],
    limits: { ...wideLimits, ...limits },
  };
  const said = await Array.fromAsync(
    explorer.run(task, {
      signal: new AbortController().signal,
      now: clock.now,
      startedAt,
      allow: [{ host: "127.0.0.1", port: null }],
      resources: null,
    }),
  );
  const events = said.map((event, seq): SessionEvent => ({ ...event, seq, at: startedAt, tMs: seq, source: "agent" }));
  return { events, grade: gradeSession(events), ms: Date.now() - beganMs };
}
