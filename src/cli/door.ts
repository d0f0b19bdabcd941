import type { Agent } from "../agents/agent.ts";
import type { Config } from "../config.ts";
import { closeDb, type DataLock, lockData, openDb } from "../db/open.ts";
import { AppError, badRequest, conflict, type ErrorCode, errorStatus, unavailable } from "../errors.ts";
import type { Gate, GateRequest } from "../gates/schema.ts";
import { createLog } from "../log.ts";
import { secretsIn } from "../modelsettings.ts";
import { httpUrl } from "../schema.ts";
import { createService } from "../service.ts";
import { orgOf, toOwnUrl, toPlace } from "./terminal.ts";

/** A way to the service for a command that waits for it. */
export type Door = {
  prompts(): Promise<{ id: string; title: string | null }[]>;
  request(input: GateRequest): Promise<Gate>;
  get(id: string): Promise<Gate>;
  close(): Promise<void>;
};

/** More prompts than this are not looked through for a title. */
const maxPrompts = 1000;

/** A folder that nobody held twice, so far apart, is left: a service that is restarted is away for less. */
const leftMs = 2_000;

/**
 * Through the data folder. Where no service holds it, this process does the work of one as long as the door is open, and its runs may reach
 * `places` too; else the service that does is waited for, and this process takes its place if it goes away.
 */
export async function openLocal(
  config: Config,
  agents: Record<string, Agent>,
  { org: name, places }: { org?: string; places: string[] },
): Promise<Door> {
  let lock = findLock(config.dataDir);
  const db = openDb(config.dataDir, () => {
    if (!lock)
      throw conflict("the service that runs is of an older version than this command; restart the service first");
  });
  const service = createService({
    db,
    config,
    log: createLog(config.logLevel === "info" ? "silent" : config.logLevel, secretsIn(config.modelPlaces)),
    agents,
    baseUrl: () => config.baseUrl ?? toOwnUrl(config),
    alsoAllow: () => places.filter((place) => httpUrl(place)).map(toPlace),
  });
  const close = async () => {
    if (lock) await service.stop(0);
    closeDb(db);
    lock?.release();
  };
  const work = async () => {
    await service.runner.start();
    service.gates.start();
  };
  let [wasLeft, lookedAt] = [false, performance.now()];
  /** Goes on where whoever did the work is gone: nobody else would, and one would wait for ever. */
  async function takePlace(): Promise<void> {
    if (lock || performance.now() - lookedAt < leftMs) return;
    lookedAt = performance.now();
    const found = findLock(config.dataDir);
    if (found && wasLeft) {
      lock = found;
      await work();
    } else found?.release();
    wasLeft = found !== null;
  }
  try {
    const org = orgOf(service, name);
    if (lock) await work();
    return {
      prompts: async () =>
        service.prompts.listPrompts(org, { limit: maxPrompts, offset: 0, includeArchived: false }).items,
      request: (input) => service.gates.requestGate(org, { ...input, trigger: "cli" }),
      async get(id) {
        await takePlace();
        return service.gates.getGate(org, id);
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The lock of a data folder; null while a service holds it. */
function findLock(dataDir: string): DataLock | null {
  try {
    return lockData(dataDir, { pid: process.pid, since: new Date().toISOString() });
  } catch (error) {
    if (error instanceof AppError && error.code === "conflict") return null;
    throw error;
  }
}

/** A service may be restarted, or a proxy before it, while one waits: so many failures in a row, so far apart. The first question gets one chance. */
const maxFailures = 30;
const pauseMs = 2_000;

/** Over REST, with an API key. */
export function openRemote(url: string, key: string | undefined): Door {
  if (!httpUrl(url)) throw badRequest(`--url: ${JSON.stringify(url)} must be an http or https address`);
  if (!key) throw badRequest("an API key is needed in EVALD_KEY; evald key create makes one where the service is");
  const base = url.replace(/\/+$/, "");
  const idempotencyKey = crypto.randomUUID();

  async function ask<T>(method: string, path: string, body?: unknown, most = maxFailures): Promise<T> {
    for (let failures = 1; ; failures++) {
      try {
        return await askOnce<T>(method, path, body);
      } catch (error) {
        const isPassing =
          !(error instanceof AppError) || ["unavailable", "internal", "rate_limited"].includes(error.code);
        if (!isPassing || failures >= most)
          throw error instanceof AppError
            ? error
            : unavailable(`${base} cannot be reached: ${error instanceof Error ? error.message : error}`);
        await Bun.sleep(
          error instanceof AppError && error.retryAfterSeconds ? error.retryAfterSeconds * 1000 : pauseMs,
        );
      }
    }
  }

  async function askOnce<T>(method: string, path: string, body: unknown): Promise<T> {
    const response = await fetch(`${base}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { "content-type": "application/json", "idempotency-key": idempotencyKey }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    const answer = parsed(text);
    if (response.ok && answer !== null) return answer as T;
    const { error, detail } = (answer ?? {}) as { error?: string; detail?: string };
    const code: ErrorCode = error !== undefined && error in errorStatus ? (error as ErrorCode) : "unavailable";
    throw new AppError(
      code,
      detail ?? `${base} answers ${response.status}, and not as evald does`,
      Number(response.headers.get("retry-after")) || undefined,
    );
  }

  return {
    prompts: () => ask("GET", `/prompts?limit=${maxPrompts}`, undefined, 1),
    request: (input) => ask("POST", "/gates", input),
    get: (id) => ask("GET", `/gates/${id}`),
    close: async () => {},
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
