import type { Task } from "../../src/agents/task.ts";

/** Limits of a run that no test reaches. */
export const wideLimits: Task["limits"] = {
  wallClockMs: 60_000,
  idleMs: 60_000,
  maxPages: 25,
  maxRequests: 400,
  memoryBytes: 1024 ** 3,
  maxToolCalls: 200,
  maxBytesOut: 1024 ** 3,
  workspaceBytes: 1024 ** 3,
  model: { calls: 60, tokens: 1_000_000, costUsd: null },
};
