import { rmSync } from "node:fs";
import { createReader } from "../reader.ts";
import { openRelay } from "../relay/relay.ts";
import { runSandboxed } from "../sandbox/sandbox.ts";
import { openWorkspace } from "../sandbox/workspace.ts";
import { createTemporaryFolder } from "../sockets.ts";
import type { Task } from "../task.ts";
import { startRecord } from "./record.ts";

const mib = 1024 * 1024;

/** A task that no agent gets. */
const task: Task = {
  ...{
    text: "",
    endGoal: null,
    startUrls: ["https://docs.invalid/"],
    productUrl: null,
    urlMap: {},
    declaredChecks: [],
  },
  limits: {
    ...{ wallClockMs: 0, idleMs: 0, maxPages: 0, maxRequests: 0, maxToolCalls: 0, maxBytesOut: 0 },
    ...{ memoryBytes: 256 * mib, workspaceBytes: mib },
    model: { calls: 0, tokens: 0, costUsd: 0 },
  },
};

/**
 * Runs a command in a sandbox that has everything that the sandbox of a coding agent has, in a process that waits for a run. Code that runs for the
 * first time takes about 15 ms longer, and the start of the agent would have to wait for it. If something doesn't work, throws what a session would
 * report.
 */
export async function rehearseStart(): Promise<void> {
  const { folder, socketPath } = createTemporaryFolder("gateway");
  const record = startRecord(socketPath, { onCall() {}, onResult() {}, onRequest() {} });
  try {
    await using workspace = await openWorkspace(folder, task.limits.workspaceBytes);
    const egress = { path: socketPath, token: "" };
    const reader = createReader(task);
    await using relay = await openRelay({ folder, egress, task, reader, report() {}, now: () => 0 });
    const sockets = { gateway: record.socketPath, egress: relay.toProxy() };
    await runSandboxed({ argv: ["true"], workspace, limits: task.limits, sockets }).ended;
  } finally {
    await record.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
