import { lookup } from "node:dns/promises";
import type { Command } from "commander";
import { createApp } from "../app.tsx";
import type { Peer } from "../auth/address.ts";
import type { Config } from "../config/config.ts";
import { secretsIn } from "../config/model-settings.ts";
import { closeDb, lockData, openDb } from "../db/open.ts";
import { maxRequestBodySize } from "../http/body.ts";
import { createLog, flushed } from "../log.ts";
import { toIso } from "../schema.ts";
import { createService } from "../service.ts";
import { say, toAllowRule, toMessage, toOwnUrl, upgradeProgress } from "./terminal.ts";
import { welcome } from "./welcome.ts";

/** Adds `serve`: runs the service in this process until SIGTERM or SIGINT. */
export function addServe(program: Command, configOf: () => Config, parts: ServeParts): void {
  program
    .command("serve")
    .description("Run the service: API, web pages and job runner")
    .addHelpText("after", "\nExamples:\n  evald serve\n  EVALD_PORT=8080 evald serve --data /var/lib/evald")
    .action(() => serve(configOf(), parts));
}

/** EX_IOERR of sysexits.h. */
const exitBrokenDisk = 74;

/** Parts that a test build replaces. */
export type ServeParts = Pick<Parameters<typeof createService>[0], "agents" | "leaseMs" | "gradeWith">;

async function serve(config: Config, parts: ServeParts): Promise<void> {
  await checkHost(config.host);
  const lock = lockData(config.dataDir, { pid: process.pid, since: toIso(Date.now()) });
  const db = openDb(config.dataDir, { onProgress: upgradeProgress() });
  const log = createLog(config, secretsIn(config.modelPlaces));
  let ownUrl = "";
  const baseUrl = () => config.baseUrl ?? ownUrl;
  const service = createService({
    db,
    config,
    log,
    ...parts,
    baseUrl,
    // Runs may read the service's public pages. They hold no API key, so everything else stays closed to them.
    alsoAllow: () => [toAllowRule(ownUrl)],
    onBroken() {
      // Lets responses in progress finish.
      log.flush();
      setTimeout(() => process.exit(exitBrokenDisk), 500);
    },
  });
  const server = listen(createApp(service).handle, config);
  ownUrl = toOwnUrl({ host: config.host, port: server.port ?? 0 });

  const flushLastUsed = (all: boolean) => {
    try {
      service.keys.flushLastUsed(all);
    } catch (error) {
      service.onError(error);
      log.error({ err: error }, "could not store when API keys were last used");
    }
  };
  const flush = setInterval(() => flushLastUsed(false), 60_000);
  await service.start();
  service.upkeep.start();

  let stopping = false;
  const stop = async (signal: string) => {
    // A second signal stops at once.
    if (stopping) process.exit(130);
    stopping = true;
    log.info({ signal, graceMs: config.drainMs }, "stopping");
    clearInterval(flush);
    await Promise.all([service.upkeep.stop(), service.stop(config.drainMs)]);
    await server.stop(true);
    flushLastUsed(true);
    closeDb(db);
    lock.release();
    await flushed(log);
    process.exit(0);
  };
  process.on("SIGTERM", () => stop("SIGTERM"));
  process.on("SIGINT", () => stop("SIGINT"));

  // After the handlers: a supervisor that waits for this line may send a signal at once.
  say(`listening on ${ownUrl}`);
  if (baseUrl() !== ownUrl) say(`public URL ${baseUrl()}`);

  if (config.welcome) await welcome(service, ownUrl);
}

type Handle = (request: Request, peer?: Peer) => Response | Promise<Response>;

function listen(handle: Handle, { host, port }: Config) {
  try {
    return Bun.serve({
      hostname: host,
      port,
      fetch: (request, server) => handle(request, () => server.requestIP(request)?.address),
      maxRequestBodySize,
      reusePort: false,
      idleTimeout: 60,
    });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EADDRINUSE")
      throw new Error(`Port ${port} of ${host} is in use. Set EVALD_PORT to a free port, or to 0 to pick one.`);
    if (code === "EACCES")
      throw new Error(`This user may not listen on port ${port}. Set EVALD_PORT to a port above 1023.`);
    throw badHost(host, toMessage(error));
  }
}

/** Throws if a host name does not resolve. Bun.serve reports that with errors that differ between machines. */
async function checkHost(host: string): Promise<void> {
  try {
    await lookup(host.replace(/^\[|\]$/g, ""));
  } catch {
    throw badHost(host, "the name does not resolve");
  }
}

const badHost = (host: string, reason: string) =>
  new Error(
    `Cannot listen on EVALD_HOST ${JSON.stringify(host)}: ${reason}. Use 127.0.0.1, or 0.0.0.0 for all addresses of this machine.`,
  );
