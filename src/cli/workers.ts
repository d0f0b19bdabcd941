import type { Command } from "commander";
import type { Config } from "../config/config.ts";
import { badRequest, ConfigError, unavailable } from "../errors.ts";
import { toWorker } from "../workers/workers.ts";
import { print, say, table } from "./terminal.ts";

type Options = { redis?: string; json?: boolean };

/** Adds `workers list`, `drain` and `remove`. They need access to Redis, as workers do, and no API key. */
export function addWorkers(program: Command, configOf: (settings: Record<string, string>) => Config): void {
  const workers = program.command("workers").description("Manage the workers of a service");
  const add = (command: Command) =>
    command
      .option("--redis <url>", "Redis of the service (default: EVALD_REDIS_URL)")
      .option("--json", "Print the result as JSON");
  const open = async ({ redis }: Options) => {
    const url = configOf(redis === undefined ? {} : { EVALD_REDIS_URL: redis }).workers.redisUrl;
    if (url === null) throw new ConfigError("No Redis server is given. Set EVALD_REDIS_URL or use --redis.");
    const { withControl } = await import("../places/control.ts");
    return <T>(work: Parameters<typeof withControl<T>>[1]) => withControl(url, work);
  };

  add(workers.command("list").description("List connected workers"))
    .addHelpText("after", "\nExample:\n  evald workers list")
    .action(async ({ json, ...options }: Options) => {
      const list = await (await open(options))(listOf);
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
      print(json ? JSON.stringify(list) : table([heads, ...rows]));
    });

  for (const [name, description, done] of [
    ["drain", "Drain a worker: it finishes its sessions and exits", "Draining"],
    ["remove", "Take back the sessions of a worker and stop it", "Removed"],
  ] as const)
    add(workers.command(`${name} <worker>`).description(`${description}; by ID or host name`))
      .addHelpText("after", `\nExample:\n  evald workers ${name} worker-1`)
      .action(async (idOrName: string, { json, ...options }: Options) => {
        const worker = await (await open(options))(async (control) => {
          const matches = (await listOf(control)).filter(({ id, name }) => id === idOrName || name === idOrName);
          const [first] = matches;
          if (!first)
            throw badRequest(`No worker has the ID or name ${idOrName}. List workers with evald workers list.`);
          if (matches.length > 1)
            throw badRequest(
              `${matches.length} workers have the name ${idOrName}. Use an ID: ${matches.map(({ id }) => id).join(", ")}.`,
            );
          await control.ask(name, first.id);
          return first;
        });
        say(`${done} worker ${worker.name}.`);
        print(json ? JSON.stringify(worker) : worker.id);
      });
}

type Control = Parameters<Parameters<typeof import("../places/control.ts").withControl>[1]>[0];

async function listOf(control: Control) {
  const { list } = await control.read();
  if (list === null) throw unavailable("No service is connected to this Redis server. Check EVALD_REDIS_URL.");
  return list.workers.map((each) => toWorker(each, Date.now()));
}
