import type { Command } from "commander";
import type { Config } from "../config/config.ts";
import { AppError, badRequest, ConfigError } from "../errors.ts";
import { createCredential, listCredentials, revokeCredential, toListed } from "../workers/credentials.ts";
import { toWorker } from "../workers/workers.ts";
import { withData } from "./data-directory.ts";
import { print, say, table, toJson } from "./terminal.ts";

/**
 * Adds the commands about workers. `workers add`, `credentials` and `revoke` need the data directory. `list`, `drain` and `remove` need access to
 * Redis. `add` also checks the Redis server, if it can be reached.
 */
export function addWorkers(program: Command, configOf: () => Config): void {
  const workers = program.command("workers").description("Manage the workers of a service");
  const addJson = (command: Command) => command.option("--json", "Print the result as JSON");
  const urlOf = ({ workers: { redisUrl } }: Config): string => {
    if (redisUrl === null)
      throw new ConfigError("No Redis server is given. Set EVALD_REDIS_URL to that of the service.");
    return redisUrl;
  };

  addJson(workers.command("add <name>"))
    .description("Create the credential of a worker and print its EVALD_REDIS_URL to stdout; it is shown only once")
    .addHelpText("after", "\nExample:\n  evald workers add worker-1")
    .action(async (name: string, { json }: { json?: boolean }) => {
      const config = configOf();
      const redisUrl = urlOf(config);
      await checkUsersAllowed(redisUrl);
      const created = withData(config, ({ ctx }) => createCredential(ctx, redisUrl, name));
      say(`Created the credential ${name}. Set EVALD_REDIS_URL of the worker to this URL: it will not be shown again.`);
      print(json ? toJson(created) : created.url);
    });

  addJson(workers.command("credentials"))
    .description("List the credentials of workers by name, without their passwords")
    .addHelpText("after", "\nExample:\n  evald workers credentials")
    .action(({ json }: { json?: boolean }) => {
      const all = withData(configOf(), ({ ctx }) => listCredentials(ctx.db)).map(toListed);
      const rows = all.map(({ name, createdAt }) => [name, createdAt]);
      print(json ? toJson(all) : table([["NAME", "CREATED"], ...rows]));
    });

  addJson(workers.command("revoke <name>"))
    .description("Revoke the credential of a worker: it loses its sessions and can't connect any more")
    .addHelpText("after", "\nExample:\n  evald workers revoke worker-1")
    .action((name: string, { json }: { json?: boolean }) => {
      const revoked = withData(configOf(), ({ ctx }) => revokeCredential(ctx, name));
      say(`Revoked the credential ${name}.`);
      print(json ? toJson(revoked) : revoked.name);
    });

  addJson(workers.command("list").description("List connected workers"))
    .addHelpText("after", "\nExample:\n  evald workers list")
    .action(({ json }: { json?: boolean }) => printWorkers(urlOf(configOf()), json === true));

  for (const [action, description] of [
    ["drain", "Drain a worker: it finishes its sessions and exits; by ID or name"],
    ["remove", "Stop a worker now; its sessions restart on others; by ID or name"],
  ] as const)
    addJson(workers.command(`${action} <worker>`).description(description))
      .addHelpText("after", `\nExample:\n  evald workers ${action} worker-1`)
      .action((idOrName: string, { json }: { json?: boolean }) =>
        dismiss(urlOf(configOf()), action, idOrName, json === true),
      );
}

/**
 * Throws ConfigError if users can't be created on the Redis server. A server that can't be reached is only reported, because the service creates the
 * users later.
 */
async function checkUsersAllowed(url: string): Promise<void> {
  // Loaded only here, because most commands need no Redis.
  const { withRedis } = await import("../places/control.ts");
  const { canCreateUsers } = await import("../places/redis-users.ts");
  const isAllowed = await withRedis(url, canCreateUsers).catch((error) => {
    if (!(error instanceof AppError)) throw error;
    say(`${error.detail} The credential works once the service can connect to it.`);
    return true;
  });
  if (!isAllowed)
    throw new ConfigError(
      `The Redis server ${new URL(url).host} refuses ACL SETUSER, so workers can't have credentials. Use a server that allows it, or start the workers with the EVALD_REDIS_URL of the service.`,
    );
}

async function printWorkers(url: string, json: boolean): Promise<void> {
  // Loaded only here, because most commands need no Redis.
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
