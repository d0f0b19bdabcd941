import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import { resolve } from "node:path";
import type { Command } from "commander";
import type { Logger } from "pino";
import { version } from "../../package.json" with { type: "json" };
import { joinServiceGroup } from "../agents/sandbox/cpu-groups.ts";
import { createApp } from "../app.tsx";
import { flushLastUsed } from "../auth/keys.ts";
import type { AllowRule } from "../config/allow-rules.ts";
import { storeSecrets } from "../config/backup-settings.ts";
import type { Config } from "../config/config.ts";
import { secretsIn } from "../config/model-settings.ts";
import type { Address } from "../config/telemetry-settings.ts";
import { redisSecrets } from "../config/worker-settings.ts";
import type { Context } from "../context.ts";
import { closeDb, type Db, lockData, releaseCache } from "../db/open.ts";
import { isLocked } from "../db/write-lock.ts";
import { ConfigError } from "../errors.ts";
import type { Peer } from "../http/address.ts";
import { maxRequestBodySize } from "../http/body.ts";
import { pathBelow, pathOf } from "../http/responses.ts";
import { enableThreads } from "../jobs/thread.ts";
import { createLog, flushLog } from "../log.ts";
import type { KnownWorker } from "../places/messages.ts";
import { toIso } from "../schema.ts";
import { createService } from "../service.ts";
import { type Metrics, respondToScrape } from "../telemetry/metrics.ts";
import { listCredentials } from "../workers/credentials.ts";
import { listKnownWorkers, storeKnownWorkers } from "../workers/known-workers.ts";
import { openData } from "./data-directory.ts";
import { releaseMemoryWhenIdle } from "./idle-memory.ts";
import { publishService } from "./running.ts";
import { notifySupervisor, startWatchdog } from "./supervisor.ts";
import { say, toMessage, toOwnUrl } from "./terminal.ts";
import { welcome } from "./welcome.ts";

/** Adds `serve`: runs the service in this process until SIGTERM or SIGINT. */
export function addServe(program: Command, configOf: ConfigOf, overrides: ServeOverrides): void {
  program
    .command("serve")
    .description("Run the service: API, web pages and job runner")
    .option("--port <n>", "Port to listen on; 0 picks a free one (default: EVALD_PORT, else 3000)")
    .option("--host <address>", "Address to listen on (default: EVALD_HOST, else 127.0.0.1)")
    .addHelpText("after", "\nExamples:\n  evald serve\n  evald serve --port 8080 --data /var/lib/evald")
    .action(({ port, host }: { port?: string; host?: string }) =>
      serve(
        configOf({
          ...(port !== undefined && { EVALD_PORT: port }),
          ...(host !== undefined && { EVALD_HOST: host }),
        }),
        overrides,
      ),
    );
}

type ConfigOf = (settings?: Record<string, string>) => Config;

/** EX_IOERR of sysexits.h. */
const exitBrokenDisk = 74;
/** The code that shells use for a command that Ctrl-C ended. */
const exitInterrupted = 130;

/** The names of the settings for the host and the port of a server, for errors. */
type AddressSettings = { host: string; port: string };
const serviceSettings: AddressSettings = { host: "--host or EVALD_HOST", port: "--port or EVALD_PORT" };
const metricsSettings: AddressSettings = { host: "EVALD_METRICS_ADDRESS", port: "EVALD_METRICS_ADDRESS" };

/** The parts that a test build replaces. */
export type ServeOverrides = Pick<
  Parameters<typeof createService>[0],
  "agents" | "standby" | "leaseMs" | "backupEnv"
> & {
  /** After this many ms of silence, a worker counts as gone, and so does the service for a worker. */
  goneMs?: number;
  /** The program that threads run. Without it, the main thread does their work. */
  threadFile?: string | null;
};

async function serve(config: Config, { threadFile = null, ...overrides }: ServeOverrides): Promise<void> {
  // Only this command starts threads. Other commands would have to wait until the threads are idle.
  enableThreads(threadFile);
  const addresses = await resolveHost(config.host, serviceSettings);
  if (config.telemetry.metrics) await resolveHost(config.telemetry.metrics.host, metricsSettings);
  const lock = lockData(config.dataDir, { pid: process.pid, since: toIso(Date.now()) });
  const db = openData(config.dataDir);
  const log = createLog(config, [
    ...secretsIn(config.modelEndpoints),
    ...redisSecrets(config.workers),
    ...storeSecrets(config.backups),
  ]);
  let ownUrl = "";
  let ownRules: AllowRule[] = [];
  const baseUrl = () => config.baseUrl ?? ownUrl;
  const workers = await connectWorkers(config, db, log, overrides);
  const service = createService({
    db,
    config,
    log,
    ...overrides,
    ...(workers && { workers, agents: workers.agents, standby: undefined }),
    baseUrl,
    env: process.env,
    alsoAllow: () => ownRules,
    onBroken() {
      // Lets responses in progress finish.
      log.flush();
      setTimeout(() => process.exit(exitBrokenDisk), 500);
    },
  });
  const { handle } = createApp(service);
  const server = listen(handle, config, workers && service.answerModelCall);
  const publicServer = listenForRuns(handle, config);
  ownUrl = toOwnUrl({ host: config.host, port: server.port ?? 0 });
  ownRules = toOwnRules(addresses, { port: server.port ?? 0, publicPort: publicServer.port ?? 0 });
  const metricsServer =
    service.telemetry.metrics &&
    config.telemetry.metrics &&
    listenForMetrics(service.telemetry.metrics, config.telemetry.metrics);
  const removePublishedService = publishService(config.dataDir, {
    url: baseUrl(),
    ownUrl,
    allowPrivate: config.allowPrivate,
  });

  const lastUsedTimer = setInterval(() => {
    if (!isLocked(db)) storeLastUsed(service.ctx, { isStopping: false });
  }, 60_000);
  await service.start();
  const idleTimer = releaseMemoryWhenIdle(() => releaseCache(db));

  // Only reads, because a full disk doesn't need a restart.
  const stopWatchdog = startWatchdog(() => db.$client.query("select 1 from orgs").get());

  let isStopping = false;
  const stop = async (signal: string) => {
    // A second signal stops immediately.
    if (isStopping) process.exit(exitInterrupted);
    isStopping = true;
    log.info({ signal, graceMs: config.drainMs }, "stopping");
    notifySupervisor("STOPPING=1");
    stopWatchdog();
    clearInterval(lastUsedTimer);
    clearInterval(idleTimer);
    await Promise.all([service.healthChecks.stop(), service.upkeep.stop(), service.stop(config.drainMs)]);
    await Promise.all([server.stop(true), publicServer.stop(true), metricsServer?.stop(true)]);
    storeLastUsed(service.ctx, { isStopping: true });
    removePublishedService();
    closeDb(db);
    lock.release();
    await flushLog(log);
    process.exit(0);
  };
  process.on("SIGTERM", () => stop("SIGTERM"));
  process.on("SIGINT", () => stop("SIGINT"));

  // This comes after the signal handlers, because a supervisor that waits for this line may send a signal immediately.
  say(`listening on ${ownUrl}`);
  notifySupervisor("READY=1");
  if (baseUrl() !== ownUrl) say(`public URL ${baseUrl()}`);
  if (metricsServer) say(`metrics on ${new URL("/metrics", metricsServer.url)}`);

  // Requests that have already arrived are answered first, because the work that follows would delay them by 20 ms.
  await Bun.sleep(5);
  service.upkeep.start();
  service.prepare();
  service.healthChecks.start();
  // Not awaited, because the kernel may be slow.
  void joinServiceGroup();
  if (config.welcome) await welcome(service, ownUrl);
}

/** Stores when each API key was last used. A disk error is only logged. */
function storeLastUsed(ctx: Context, { isStopping }: { isStopping: boolean }): void {
  try {
    flushLastUsed(ctx, { isStopping });
  } catch (error) {
    ctx.disk.onError(error);
    ctx.log.error({ err: error }, "could not store when API keys were last used");
  }
}

/**
 * Connects the service with its workers; null: agents run on this machine. The code for Redis is loaded only if it is needed. Throws ConfigError if
 * another service uses the Redis server. A Redis server that can't be reached is checked later.
 */
async function connectWorkers({ workers, dataDir }: Config, db: Db, log: Logger, { agents, goneMs }: ServeOverrides) {
  const { redisUrl: url, waitMs } = workers;
  if (url === null) return null;
  const { openWorkerExecutor } = await import("../places/worker-executor.ts");
  const { serviceOwnerOf, waitUntilUnclaimed } = await import("../places/service-claim.ts");
  const { withRedis } = await import("../places/control.ts");
  const owner = serviceOwnerOf(resolve(dataDir));
  await withRedis(url, (redis) => waitUntilUnclaimed(redis, owner)).catch((error: unknown) => {
    if (error instanceof ConfigError) throw error;
  });
  const credentials = () => listCredentials(db);
  const known = {
    list: () => listKnownWorkers(db, Date.now()),
    store: (knownWorkers: KnownWorker[]) => storeKnownWorkers(db, Date.now(), knownWorkers),
  };
  return openWorkerExecutor(url, version, agents, waitMs, log, { credentials, known, owner, goneMs });
}

type Handle = (request: Request, peer?: Peer) => Response | Promise<Response>;

/** Maximum size of a model call. */
const maxCallBytes = 32 * 1024 * 1024;

/** `answerModelCall`: answers the model calls of workers. */
function listen(
  handle: Handle,
  { host, port, basePath }: Config,
  answerModelCall: ((request: Request) => Promise<Response>) | null,
) {
  const gatewayPath = `${basePath}/gateway/`;
  // Faster than parsing the URL of each request: the path begins at the first slash after `https://`.
  const isModelCall = ({ url }: Request) => url.startsWith(gatewayPath, url.indexOf("/", "https://".length));
  const answer = (request: Request, server: Server) => {
    if (!answerModelCall || !isModelCall(request)) return handle(request, () => server.requestIP(request)?.address);
    // A model may be silent for a long time.
    server.timeout(request, 0);
    const url = new URL(request.url);
    url.pathname = url.pathname.slice(gatewayPath.length - 1);
    return answerModelCall(new Request(url, request));
  };
  return startServer(
    { hostname: host, port, fetch: answer, maxRequestBodySize: answerModelCall ? maxCallBytes : maxRequestBodySize },
    serviceSettings,
  );
}

const listenForMetrics = (metrics: Metrics, { host, port }: Address) =>
  startServer(
    { hostname: host, port, fetch: (request) => respondToScrape(metrics, request), maxRequestBodySize },
    metricsSettings,
  );

/** Paths that the built-in example and docs link to, and the files at the root that lead to them. */
const publicFiles = ["/", "/openapi.json", "/llms.txt", "/robots.txt", "/sitemap.xml"];

/** Whether runs may read a path, without the base path: a path of the example or the docs, or one of `publicFiles`. */
const isPublicPath = (path: string): boolean =>
  publicFiles.includes(path) || /^\/(?:docs|example)(?:\.md|\/.*)?$/.test(path);

/** Headers of a run's request that choose the format of a page. */
const publicHeaders = ["host", "accept", "if-none-match", "user-agent"];

/**
 * Serves the public pages to runs, on a loopback port of its own. Connections of runs to the service lead to this port. On loopback, the service
 * would take them for connections of its own proxy or of people on this machine.
 */
const listenForRuns = (handle: Handle, { basePath }: Config) =>
  startServer(
    {
      hostname: "127.0.0.1",
      port: 0,
      maxRequestBodySize,
      fetch(request) {
        const { url, method } = request;
        const isRead = method === "GET" || method === "HEAD";
        if (!isRead || !isPublicPath(pathBelow(pathOf(request), basePath)))
          return new Response("Runs may read only the docs and the example of this service.\n", {
            // Docs that are tested must answer with 404 for a page that doesn't exist.
            status: isRead ? 404 : 403,
          });
        const headers = [...request.headers].filter(([name]) => publicHeaders.includes(name));
        return handle(new Request(url, { method, headers }));
      },
    },
    serviceSettings,
  );

/** The rules by which runs reach the service at the addresses that it listens on. */
function toOwnRules(addresses: string[], ports: { port: number; publicPort: number }): AllowRule[] {
  const isEveryAddress = addresses.some((address) => address === "0.0.0.0" || address === "::");
  const machineAddresses = Object.values(networkInterfaces()).flatMap((each = []) =>
    each.map(({ address }) => address),
  );
  return (isEveryAddress ? ["127.0.0.0/8", "::1", ...machineAddresses] : addresses).map((host) => ({ host, ...ports }));
}

type ServerOptions = {
  hostname: string;
  port: number;
  fetch: (request: Request, server: Server) => ReturnType<Handle>;
  maxRequestBodySize: number;
};
type Server = Bun.Server<undefined>;

/** Starts a server. Throws ConfigError that names the setting of the host or the port. */
function startServer(options: ServerOptions, settings: AddressSettings) {
  const { hostname, port } = options;
  try {
    return Bun.serve({ ...options, reusePort: false, idleTimeout: 60 });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EADDRINUSE")
      throw new ConfigError(
        `Port ${port} of ${hostname} is in use. Set ${settings.port} to a free port, or to 0 to pick one.`,
      );
    if (code === "EACCES")
      throw new ConfigError(`This user may not listen on port ${port}. Set ${settings.port} to a port above 1023.`);
    throw badHost(hostname, toMessage(error), settings);
  }
}

/** Resolves a host to its addresses. Throws if the name doesn't resolve, because the errors of Bun.serve for that differ between machines. */
async function resolveHost(host: string, settings: AddressSettings): Promise<string[]> {
  try {
    const addresses = await lookup(host.replace(/^\[|\]$/g, ""), { all: true });
    return addresses.map(({ address }) => address);
  } catch {
    throw badHost(host, "the name does not resolve", settings);
  }
}

const badHost = (host: string, reason: string, settings: AddressSettings) =>
  new ConfigError(
    `Cannot listen on ${JSON.stringify(host)}: ${reason}. Set ${settings.host} to 127.0.0.1, or to 0.0.0.0 for all addresses of this machine.`,
  );
