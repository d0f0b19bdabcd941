import { Database } from "bun:sqlite";
import pino, { type Logger } from "pino";
import type { Agent, AgentEvent } from "../../src/agents/agent.ts";
import { createApp } from "../../src/app.tsx";
import { createKey } from "../../src/auth/keys.ts";
import { createOrg } from "../../src/auth/orgs.ts";
import { readConfig } from "../../src/config/config.ts";
import { configureWriter, openDb } from "../../src/db/open.ts";
import type { Surface } from "../../src/mcp/endpoint.ts";
import type { WorkerExecutor } from "../../src/places/worker-executor.ts";
import { createService } from "../../src/service.ts";
import { checkDescribed } from "./described.ts";
import { countUnfinishedJobs } from "./queue.ts";

/** An agent with scripted events, for sessions whose content doesn't matter or must be exact. */
export function scriptedAgent(script: (signal: AbortSignal) => AsyncIterable<AgentEvent>): Agent {
  return {
    describe: () => ({ id: "explorer", version: "test", model: null, kind: "rules" }),
    preflight: () => [],
    run: (_task, { signal }) => script(signal),
  };
}

/** Ends immediately, with the shortest session that can be graded. */
export const instantAgent = scriptedAgent(async function* () {
  yield { type: "thought", text: "nothing to do", by: "rule" };
  yield { type: "end", outcome: "not_judged", reason: "scripted" };
});

/** An agent that isn't deterministic, so that its runs are compared by statistics. */
export const noisy = {
  noisy: {
    ...instantAgent,
    describe: () => ({ id: "noisy", version: "test", model: null, kind: "rules" }) as const,
  } satisfies Agent,
};

// Elysia collects garbage, without force, for each app that it builds: a third of the time of `testApp`.
const collectGarbage = Bun.gc;
Bun.gc = (force) => (force ? collectGarbage(true) : undefined);

// A hash takes 160 ms of CPU time at the default cost.
const { hash } = Bun.password;
const cheap = { algorithm: "argon2id", memoryCost: 8, timeCost: 1 } as const;
Bun.password.hash = (password, options = cheap) => hash(password, options);

let migrated: Uint8Array | undefined;

/** A new database in memory. It is a copy of a migrated one, because migrating takes a third of the time of `testApp`. */
export function emptyDb() {
  migrated ??= openDb(":memory:").$client.serialize();
  return configureWriter(Database.deserialize(migrated));
}

type Options = {
  agent?: Agent;
  /** Further agents by ID. */
  agents?: Record<string, Agent>;
  env?: Record<string, string>;
  dataDir?: string;
  log?: Logger;
  now?: () => number;
  monotonicNow?: () => number;
  surface?: Surface;
  deliveryTimeoutMs?: number;
  /** Where the agents run. Default: in this process. */
  workers?: (agents: Record<string, Agent>) => WorkerExecutor;
};

/** A whole service on a real database, used through its front door; two organizations, each with a key. */
export function testApp({
  agent = instantAgent,
  agents = {},
  env = {},
  dataDir = ":memory:",
  log = pino({ level: "silent" }),
  now,
  monotonicNow,
  surface,
  deliveryTimeoutMs,
  workers,
}: Options = {}) {
  const config = readConfig({ EVALD_LOG_LEVEL: "silent", ...env });
  const db = dataDir === ":memory:" ? emptyDb() : openDb(dataDir);
  const baseUrl = config.baseUrl ?? "http://localhost:3000";
  const own = { explorer: agent, ...agents };
  const executor = workers?.(own);
  const service = createService({
    db,
    config,
    log,
    agents: executor?.agents ?? own,
    ...(executor && { workers: executor }),
    baseUrl: () => baseUrl,
    now,
    monotonicNow,
    backoffMs: () => 1,
    deliveryTimeoutMs,
  });
  const app = createApp(service, { surface });
  const member = (name: string) => {
    const org = createOrg(service.ctx, name).id;
    return { org, ...createKey(service.ctx, org, "test") };
  };
  const a = member("A");
  const b = member("B");

  /** Sends a request with A's key unless `headers` override it; a `body` other than text or bytes is sent as JSON. */
  async function send(
    method: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ) {
    const response = await app.handle(
      new Request(new URL(path, baseUrl), {
        method,
        headers: {
          authorization: `Bearer ${a.key}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        body:
          body === undefined || typeof body === "string" || body instanceof Uint8Array
            ? (body as BodyInit | undefined)
            : JSON.stringify(body),
      }),
    );
    const text = await response.text();
    const isJson = text !== "" && response.headers.get("content-type")?.startsWith("application/json");
    const answer = { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
    if (isJson)
      await checkDescribed(app.loadRoutes, config.basePath, {
        method,
        path: new URL(path, baseUrl).pathname,
        ...answer,
      });
    return answer;
  }

  /** Runs every queued job to its end. */
  async function runJobs(): Promise<void> {
    await service.runner.start();
    // Most runs end immediately. Those that wait leave the processor to other tests.
    for (let ms = 1; countUnfinishedJobs(service.ctx, "runs") > 0; ms = Math.min(ms * 1.2, 20)) await Bun.sleep(ms);
    await service.runner.stop(0);
  }

  return { service, app, a, b, send, runJobs, baseUrl, db };
}
