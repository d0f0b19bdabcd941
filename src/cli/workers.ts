import type { Command } from "commander";
import type { Config } from "../config/config.ts";
import { badRequest, ConfigError } from "../errors.ts";
import { toWorker } from "../workers/workers.ts";
import { print, say, table, toJson } from "./terminal.ts";

type Options = { redis?: string; json?: boolean };

/** Adds `workers list`, `drain` and `remove`. They need access to Redis, as workers do, and no API key. */
export function addWorkers(program: Command, configOf: (settings: Record<string, string>) => Config): void {
  const workers = program.command("workers").description("Manage the workers of a service");
  const addOptions = (command: Command) =>
    command
      .option("--redis <url>", "Redis of the service (default: EVALD_REDIS_URL)")
      .option("--json", "Print the result as JSON");
  const urlOf = ({ redis }: Options): string => {
    const url = configOf(redis === undefined ? {} : { EVALD_REDIS_URL: redis }).workers.redisUrl;
    if (url === null) throw new ConfigError("No Redis server is given. Set EVALD_REDIS_URL or use --redis.");
    return url;
  };

  addOptions(workers.command("list").description("List connected workers"))
    .addHelpText("after", "\nExample:\n  evald workers list")
    .action((options: Options) => printWorkers(urlOf(options), options.json === true));

  for (const [action, description] of [
    ["drain", "Drain a worker: it finishes its sessions and exits"],
    ["remove", "Take back the sessions of a worker and stop it"],
  ] as const)
    addOptions(workers.command(`${action} <worker>`).description(`${description}; by ID or host name`))
      .addHelpText("after", `\nExample:\n  evald workers ${action} worker-1`)
      .action((idOrName: string, options: Options) => dismiss(urlOf(options), action, idOrName, options.json === true));
}

async function printWorkers(url: string, json: boolean): Promise<void> {
  // Loaded only here: most commands need no Redis.
  const { readWorkerList, withRedis } = await import("../places/control.ts");
  const list = (await withRedis(url, readWorkerList)).map((each) => toWorker(each, Date.now()));
  const rows = list.map(({ id, name, state, version, runIds, slots, agents, labels, lastSeenAt }) => [
    id,
    name,
    state,
    version,
    `${runIds.length}/${slots}`,
    agents.map((agent) => agent.id).join(" "),
    labels.join(" "),
    lastSeenAt,
  ]);
  const heads = ["ID", "NAME", "STATE", "VERSION", "SESSIONS", "AGENTS", "LABELS", "LAST SEEN"];
  print(json ? toJson(list) : table([heads, ...rows]));
}

async function dismiss(url: string, action: "drain" | "remove", idOrName: string, json: boolean): Promise<void> {
  const { readWorkerList, requestDismissal, withRedis } = await import("../places/control.ts");
  const worker = await withRedis(url, async (redis) => {
    const matches = (await readWorkerList(redis)).filter(({ id, name }) => id === idOrName || name === idOrName);
    const [first] = matches;
    if (!first) throw badRequest(`No worker has the ID or name ${idOrName}. List workers with evald workers list.`);
    if (matches.length > 1)
      throw badRequest(
        `${matches.length} workers have the name ${idOrName}. Use an ID: ${matches.map(({ id }) => id).join(", ")}.`,
      );
    await requestDismissal(redis, action, first.id);
    return first;
  });
  say(`${action === "drain" ? "Draining" : "Removed"} worker ${worker.name}.`);
  print(json ? toJson(toWorker(worker, Date.now())) : worker.id);
}
