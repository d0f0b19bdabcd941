import type { Command } from "commander";
import { version } from "../../package.json" with { type: "json" };
import { joinServiceGroup } from "../agents/sandbox/cpu-groups.ts";
import type { Config } from "../config/config.ts";
import { redisSecrets } from "../config/worker-settings.ts";
import { ConfigError } from "../errors.ts";
import { createLog, flushLog } from "../log.ts";
import { createLocalExecutor, sweepWorkspaces } from "../places/local.ts";
import { releaseMemoryWhenIdle } from "./idle-memory.ts";
import type { ServeOverrides } from "./serve.ts";
import { say } from "./terminal.ts";

type WorkerOptions = { gateway?: string; slots?: string; labels?: string };

/** Adds `worker`: runs agents for a service on another machine until SIGTERM or SIGINT. */
export function addWorker(
  program: Command,
  configOf: (settings: Record<string, string>) => Config,
  overrides: ServeOverrides,
): void {
  program
    .command("worker")
    .description("Run agents for a service on another machine")
    .option("--gateway <url>", "Model gateway of the service (default: EVALD_GATEWAY_URL)")
    .option("--labels <list>", "Labels that prompts can require, such as gpu,eu (default: EVALD_WORKER_LABELS)")
    .option("--slots <number>", "Maximum concurrent sessions (default: EVALD_CONCURRENCY)")
    .addHelpText(
      "after",
      "\nEVALD_REDIS_URL is the URL that evald workers add printed. The command line would show its password to everyone on this machine.\n\nExample:\n  evald worker --gateway https://evald.example.com/gateway --slots 4",
    )
    .action(({ gateway, slots, labels }: WorkerOptions) =>
      runWorker(
        configOf({
          ...(gateway !== undefined && { EVALD_GATEWAY_URL: gateway }),
          ...(slots !== undefined && { EVALD_CONCURRENCY: slots }),
          ...(labels !== undefined && { EVALD_WORKER_LABELS: labels }),
        }),
        overrides,
      ),
    );
}

async function runWorker(config: Config, { agents, standby, goneMs }: ServeOverrides): Promise<void> {
  const { concurrency: slots, egressAllow: operatorHosts } = config;
  const { redisUrl: url, gatewayUrl, labels } = config.workers;
  if (url === null)
    throw new ConfigError("No Redis server is given. Set EVALD_REDIS_URL to the URL that evald workers add printed.");
  if (gatewayUrl === null)
    throw new ConfigError(
      "No model gateway is given. Set EVALD_GATEWAY_URL, or use --gateway, to the public URL of the service with /gateway.",
    );
  // Loaded only here, because most commands need no Redis.
  const { openWorker } = await import("../places/worker.ts");
  const log = createLog(config, redisSecrets(config.workers));
  // A worker has no data directory, so workspaces are in the temporary folder.
  const workspaces = null;
  const executor = createLocalExecutor(agents, Date.now, workspaces, operatorHosts);
  await sweepWorkspaces(workspaces);
  joinServiceGroup();
  // Prepares everything that the first session would otherwise wait for.
  standby?.start(executor, slots);
  executor.prepare();
  const worker = await openWorker({ url, gatewayUrl, version, slots, labels, agents, executor, log, goneMs });
  let isStopping = false;
  const stop = async ({ drainMs, code }: { drainMs: number; code: number }) => {
    // A second signal stops immediately, with the exit code that shells use for Ctrl-C.
    if (isStopping) process.exit(130);
    isStopping = true;
    await worker.stop(drainMs);
    await standby?.stop();
    await executor.close();
    await flushLog(log);
    process.exit(code);
  };
  process.on("SIGTERM", () => stop({ drainMs: config.drainMs, code: 0 }));
  process.on("SIGINT", () => stop({ drainMs: config.drainMs, code: 0 }));
  worker.drained.then(async () => {
    say("drained by the service: finishing the active sessions");
    await worker.drain();
    if (!isStopping) await stop({ drainMs: 0, code: 0 });
  });
  worker.removed.then(() => {
    say("removed by the service");
    if (!isStopping) stop({ drainMs: 0, code: 0 });
  });
  worker.refused.catch((error: Error) => {
    say(`error: ${error.message}`);
    stop({ drainMs: 0, code: 2 });
  });
  releaseMemoryWhenIdle();
  say(`worker ${worker.id} is waiting for sessions`);
}
