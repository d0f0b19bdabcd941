import type { Agent } from "../agents/agent.ts";
import type { Config } from "../config/config.ts";
import { secretsIn } from "../config/model-settings.ts";
import { closeDb, type DataLock, lockData, openDb } from "../db/open.ts";
import { AppError, badRequest, conflict, type ErrorCode, errorStatus, unavailable } from "../errors.ts";
import type { Gate, GateRequest } from "../gates/schema.ts";
import { createCommandLog } from "../log.ts";
import { httpUrl, toIso } from "../schema.ts";
import { createService } from "../service.ts";
import { orgOf, outdatedService, toAllowRule, toOwnUrl, upgradeProgress } from "./terminal.ts";

/** Gates as the CLI uses them: in this process, or over REST. */
export type GateClient = {
  prompts(): Promise<{ id: string; title: string | null }[]>;
  request(input: GateRequest): Promise<Gate>;
  get(id: string): Promise<Gate>;
  close(): Promise<void>;
};

/** How many prompts are searched for a title. */
const maxPrompts = 1000;

/** A data directory found unlocked twice, this far apart, is abandoned: a service that restarts is back sooner. */
const abandonedMs = 2_000;

/**
 * Uses the data directory. If no service holds its lock, this process acts as the service until `close`, and its runs may also reach
 * `allowUrls`. Otherwise the running service does the work, and this process takes over if that service goes away.
 */
export async function openLocal(
  config: Config,
  agents: Record<string, Agent>,
  { org: name, allowUrls }: { org?: string; allowUrls: string[] },
): Promise<GateClient> {
  let lock = findLock(config.dataDir);
  const db = openDb(config.dataDir, {
    mayMigrate() {
      if (!lock) throw conflict(outdatedService);
    },
    onProgress: upgradeProgress(),
  });
  const service = createService({
    db,
    config,
    log: createCommandLog(config, secretsIn(config.modelPlaces)),
    agents,
    baseUrl: () => config.baseUrl ?? toOwnUrl(config),
    alsoAllow: () => allowUrls.filter((url) => httpUrl(url)).map(toAllowRule),
  });
  const close = async () => {
    if (lock) await service.stop(0);
    closeDb(db);
    lock?.release();
  };
  const startWork = async () => {
    await service.runner.start();
    service.gates.start();
  };
  let [wasUnlocked, checkedAt] = [false, performance.now()];
  /** Takes over from a service that is gone: nobody else would finish the gate. */
  async function takeOver(): Promise<void> {
    if (lock || performance.now() - checkedAt < abandonedMs) return;
    checkedAt = performance.now();
    const found = findLock(config.dataDir);
    if (found && wasUnlocked) {
      lock = found;
      await startWork();
    } else found?.release();
    wasUnlocked = found !== null;
  }
  try {
    const org = orgOf(service, name);
    if (lock) await startWork();
    return {
      prompts: async () =>
        service.prompts.listPrompts(org, { limit: maxPrompts, offset: 0, includeArchived: false }).items,
      request: (input) => service.gates.requestGate(org, { ...input, trigger: "cli" }),
      async get(id) {
        await takeOver();
        return service.gates.getGate(org, id);
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Locks a data directory; null while a service holds the lock. */
function findLock(dataDir: string): DataLock | null {
  try {
    return lockData(dataDir, { pid: process.pid, since: toIso(Date.now()) });
  } catch (error) {
    if (error instanceof AppError && error.code === "conflict") return null;
    throw error;
  }
}

/** The service or its proxy may restart while we wait, so polling retries this often, with this pause. The first request is not retried. */
const maxFailures = 30;
const pauseMs = 2_000;

/** Uses the REST API with an API key. */
export function openRemote(url: string, key: string | undefined): GateClient {
  if (!httpUrl(url)) throw badRequest(`Invalid value for --url: ${JSON.stringify(url)} is not an http or https URL.`);
  if (!key)
    throw badRequest(
      "EVALD_KEY is not set. Create an API key on the server with evald key create, and set EVALD_KEY to it.",
    );
  const base = url.replace(/\/+$/, "");
  const idempotencyKey = crypto.randomUUID();

  async function request<T>(method: string, path: string, body?: unknown, attempts = maxFailures): Promise<T> {
    for (let failures = 1; ; failures++) {
      try {
        return await requestOnce<T>(method, path, body);
      } catch (error) {
        const isTransient =
          !(error instanceof AppError) || ["unavailable", "internal", "rate_limited"].includes(error.code);
        if (!isTransient || failures >= attempts)
          throw error instanceof AppError
            ? error
            : unavailable(`Cannot reach ${base}: ${error instanceof Error ? error.message : error}`);
        await Bun.sleep(
          error instanceof AppError && error.retryAfterSeconds ? error.retryAfterSeconds * 1000 : pauseMs,
        );
      }
    }
  }

  async function requestOnce<T>(method: string, path: string, body: unknown): Promise<T> {
    const response = await fetch(`${base}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { "content-type": "application/json", "idempotency-key": idempotencyKey }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    const answer = parseOrNull(text);
    if (response.ok && answer !== null) return answer as T;
    const { error, detail } = (answer ?? {}) as { error?: string; detail?: string };
    const code: ErrorCode = error !== undefined && error in errorStatus ? (error as ErrorCode) : "unavailable";
    throw new AppError(
      code,
      detail ?? `${base} returned status ${response.status} without an evald response. Check the URL.`,
      { retryAfterSeconds: Number(response.headers.get("retry-after")) || undefined },
    );
  }

  return {
    prompts: () => request("GET", `/prompts?limit=${maxPrompts}`, undefined, 1),
    request: (input) => request("POST", "/gates", input),
    get: (id) => request("GET", `/gates/${id}`),
    close: async () => {},
  };
}

function parseOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
