import type { Command } from "commander";
import type { Agent } from "../agents/agent.ts";
import { createApp } from "../app.tsx";
import { listOrgs } from "../auth/orgs.ts";
import { toAllowRule } from "../config/allow-rules.ts";
import type { Config } from "../config/config.ts";
import { secretsIn } from "../config/model-settings.ts";
import { closeDb, type DataLock, lockData } from "../db/open.ts";
import { AppError, badRequest } from "../errors.ts";
import { createCommandLog } from "../log.ts";
import { httpUrl, toIso } from "../schema.ts";
import { createService, type Service } from "../service.ts";
import { type Api, createApi, overNetwork } from "./api.ts";
import { openData, operatorName } from "./data-directory.ts";
import { getKey } from "./id-token.ts";
import { findRunningService } from "./running.ts";
import { linkBase, orgOf } from "./terminal.ts";

/** Where the service is: at a URL, or on the data directory, where `org` names the organization. */
export type ServiceAddress = { url?: string; org?: string };
/** The options of `addApiOptions`. */
export type ApiOptions = ServiceAddress & { json?: boolean };

/**
 * `execute`: if no service runs, this process executes the runs, and they may also reach `allowUrls`. `isForAllOrgs`: the command concerns all
 * organizations, so any of them can be used.
 */
type LocalOptions = { execute?: { allowUrls: string[] }; isForAllOrgs?: boolean };
/** For commands that request runs: if no service runs, this process executes them. */
export const withExecution: LocalOptions = { execute: { allowUrls: [] } };
/** Does the work of a command with the API of its service. */
export type UseApi = <T>(address: ServiceAddress, work: (api: Api) => Promise<T>, options?: LocalOptions) => Promise<T>;

/** What a command needs to find the service. */
export type Connection = {
  configOf: () => Config;
  agents: Record<string, Agent>;
  env: Record<string, string | undefined>;
  /** Whether `--data` was given. */
  hasData: () => boolean;
};

const addUrlOption = (command: Command): Command =>
  command.option(
    "--url <url>",
    "URL of an evald server, with the API key in EVALD_KEY (default: EVALD_URL, else the data directory)",
  );

/** Adds the options that choose the service. */
export const addServiceOptions = (command: Command): Command =>
  addUrlOption(command).option(
    "--org <name>",
    "Organization, when the data directory is used (required if there are several)",
  );

const addJsonOption = (command: Command, json: string, example: string): Command =>
  command.option("--json", json).addHelpText("after", `\nExample:\n  evald ${example}`);

/** Adds the options of a command that prints what the service returns, and an example. */
export const addApiOptions = (command: Command, json: string, example: string): Command =>
  addServiceOptions(addJsonOption(command, json, example));

/** Adds the options of a command that concerns all organizations and prints what the service returns, and an example. */
export const addOperatorOptions = (command: Command, json: string, example: string): Command =>
  addUrlOption(addJsonOption(command, json, example));

/**
 * The base URL of the service that a command uses, without a trailing slash; null: the service on the data directory. Options take precedence over
 * EVALD_URL. Throws bad_request.
 */
export function toServiceUrl({ url, org }: ServiceAddress, { env, hasData }: Connection): string | null {
  if (url !== undefined) return toBaseUrl("--url", url);
  if (hasData() || org !== undefined) return null;
  return env.EVALD_URL ? toBaseUrl("EVALD_URL", env.EVALD_URL) : null;
}

/**
 * Does the work of a command with the API of its service. The command or the environment may name its URL. Otherwise it is the service on the data
 * directory.
 */
export const createUseApi =
  (connection: Connection): UseApi =>
  async (address, work, options = {}) => {
    const config = connection.configOf();
    const url = toServiceUrl(address, connection);
    if (url !== null && address.org !== undefined)
      throw badRequest("--org cannot be combined with --url: the API key determines the organization.");
    if (url !== null) return await work(createApi(url, await getKey(url, connection.env), overNetwork(url)));
    const { api, close } = await openLocal(config, connection.agents, address.org, options);
    try {
      return await work(api);
    } finally {
      await close();
    }
  };

function toBaseUrl(name: string, url: string): string {
  if (!httpUrl(url)) throw badRequest(`Invalid ${name} ${JSON.stringify(url)}: must be an http or https URL.`);
  return url.replace(/\/+$/, "");
}

/** A data directory counts as abandoned if two checks, this far apart, find it unlocked. A service that restarts locks it again sooner. */
const abandonedMs = 2_000;

/** A data directory in use. */
type LocalService = {
  service: Service;
  dataDir: string;
  /** Held while this process acts as the service of the directory; null otherwise. */
  lock: DataLock | null;
  /** Whether the directory was unlocked at the last check. */
  wasUnlocked: boolean;
  /** The time of that check, by the monotonic clock. */
  checkedAt: number;
};

/**
 * Uses the data directory, whether or not a service runs on it. With `execute`, this process acts as the service until `close` if no service holds
 * the lock. It also takes over if that service goes away.
 */
async function openLocal(
  ownConfig: Config,
  agents: Record<string, Agent>,
  name: string | undefined,
  { execute, isForAllOrgs }: LocalOptions,
): Promise<{ api: Api; close: () => Promise<void> }> {
  const { dataDir } = ownConfig;
  const lock = execute ? tryLock(dataDir) : null;
  const config = lock ? ownConfig : withSettingsOfService(ownConfig);
  const db = openData(dataDir, { locksUpgrade: lock === null });
  const service = createService({
    db,
    config,
    log: createCommandLog(config, secretsIn(config.modelEndpoints)),
    agents,
    baseUrl: () => linkBase(config),
    operator: operatorName(),
    alsoAllow: () => execute?.allowUrls.filter((url) => httpUrl(url)).map(toAllowRule) ?? [],
  });
  const local: LocalService = { service, dataDir, lock, wasUnlocked: false, checkedAt: performance.now() };
  try {
    // Every call of the API needs an organization, even if the command concerns all of them.
    const anyOrg = isForAllOrgs ? listOrgs(service.ctx)[0]?.name : undefined;
    const org = orgOf(service, name ?? anyOrg);
    if (lock) await startWork(service);
    const caller = {
      org,
      keyId: "",
      name: "evald",
      scopes: null,
      createdBy: null,
      trustId: null,
      usesCompatibilityMode: false,
    };
    // Access to the data directory is enough: no key is needed.
    const app = createApp(service, { authenticate: () => caller });
    const api = createApi(
      linkBase(config),
      "evald",
      async (request) => {
        if (execute) await takeOver(local);
        return await app.handle(request);
      },
      // Whether this process executes the runs. If so, they end with it.
      () => local.lock !== null,
    );
    return { api, close: () => closeLocal(local) };
  } catch (error) {
    await closeLocal(local);
    throw error;
  }
}

/** The settings of the service decide which hosts its runs may reach. They may be in a file that this command doesn't read. */
function withSettingsOfService(config: Config): Config {
  const running = findRunningService(config.dataDir);
  return running === null ? config : { ...config, allowPrivate: running.allowPrivate };
}

async function startWork({ runner, requestLoops }: Service): Promise<void> {
  await runner.start();
  for (const loop of requestLoops) loop.start();
}

/** Takes over from a service that is gone, because nobody else would finish the work. */
async function takeOver(local: LocalService): Promise<void> {
  if (local.lock || performance.now() - local.checkedAt < abandonedMs) return;
  local.checkedAt = performance.now();
  const lock = tryLock(local.dataDir);
  if (lock && local.wasUnlocked) {
    local.lock = lock;
    await startWork(local.service);
    return;
  }
  lock?.release();
  local.wasUnlocked = lock !== null;
}

async function closeLocal({ service, lock }: LocalService): Promise<void> {
  if (lock) await service.stop(0);
  closeDb(service.ctx.db);
  lock?.release();
}

/** Locks a data directory; null while a service holds the lock. */
function tryLock(dataDir: string): DataLock | null {
  try {
    return lockData(dataDir, { pid: process.pid, since: toIso(Date.now()) });
  } catch (error) {
    if (error instanceof AppError && error.code === "conflict") return null;
    throw error;
  }
}
