import type { Command } from "commander";
import { createApp } from "../app.tsx";
import type { Peer } from "../auth/address.ts";
import { maxRequestBodySize } from "../body.ts";
import type { Config } from "../config.ts";
import { closeDb, lockData, openDb } from "../db/open.ts";
import { createLog, flushed } from "../log.ts";
import { secretsIn } from "../modelsettings.ts";
import { createService } from "../service.ts";
import { say, toOwnUrl, toPlace } from "./terminal.ts";
import { welcome } from "./welcome.ts";

/** Adds `serve`: the whole service in this process, until SIGTERM or SIGINT. */
export function addServe(program: Command, configOf: () => Config, parts: ServeParts): void {
  program
    .command("serve")
    .description("run the service: API, pages and runner, until it is told to stop")
    .addHelpText("after", "\nExamples:\n  evald serve\n  EVALD_PORT=8080 evald serve --data /var/lib/evald")
    .action(() => serve(configOf(), parts));
}

/** EX_IOERR of sysexits.h. */
const exitBrokenDisk = 74;

/** What a build for tests puts in the place of the real. */
export type ServeParts = Pick<Parameters<typeof createService>[0], "agents" | "leaseMs">;

async function serve(config: Config, parts: ServeParts): Promise<void> {
  const lock = lockData(config.dataDir, { pid: process.pid, since: new Date().toISOString() });
  const db = openDb(config.dataDir);
  const log = createLog(config.logLevel, secretsIn(config.modelPlaces));
  let ownUrl = "";
  const baseUrl = () => config.baseUrl ?? ownUrl;
  const service = createService({
    db,
    config,
    log,
    ...parts,
    baseUrl,
    // Its own public pages: what needs a key stays closed, for no run holds one.
    alsoAllow: () => [toPlace(ownUrl)],
    onBroken() {
      // What is being answered gets its moment.
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
      log.error({ err: error }, "the last use of keys could not be written");
    }
  };
  const flush = setInterval(() => flushLastUsed(false), 60_000);
  await service.start();
  service.upkeep.start();
  say(`listening on ${ownUrl}`);
  if (baseUrl() !== ownUrl) say(`known to people as ${baseUrl()}`);

  let stopping = false;
  const stop = async (signal: string) => {
    // A second signal is a person who does not want to wait.
    if (stopping) process.exit(130);
    stopping = true;
    log.info({ signal }, "stopping");
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
      throw new Error(
        `port ${port} of ${host} is taken by another program; set EVALD_PORT to a free one, or to 0 to take any`,
      );
    if (code === "EINVAL" || code === "EADDRNOTAVAIL")
      throw new Error(
        `EVALD_HOST is ${JSON.stringify(host)}, which is no address of this machine; use 127.0.0.1, or 0.0.0.0 for all of them`,
      );
    if (code === "EACCES")
      throw new Error(`port ${port} may not be opened by this user; set EVALD_PORT to one above 1023`);
    throw error;
  }
}
