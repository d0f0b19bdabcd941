import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { emptyFolder, instant } from "./executable.ts";
import { serveFakeModel } from "./fake-model.ts";
import { createNetwork, serveTls } from "./network.ts";
import { freePort, startRedis } from "./redis.ts";

const model = "openai-compatible/scripted";

type Options = {
  machines: number;
  /** Maximum concurrent sessions of each worker. */
  slots: number;
  /** Time in which the model answers one call. */
  answerMs: number;
  /** Silence after which a worker counts as gone. */
  goneMs: number;
  file?: string;
};

/** Redis with a password, a scripted model, and machines for workers that reach both only over their own network. */
export async function createFleet({ machines, slots, answerMs, goneMs, file = instant }: Options) {
  const network = createNetwork(machines);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const proxy = await serveTls(network.address, port);
  const redis = await startRedis({ address: network.address, password: "a-password-of-redis" });
  // An answer has two parts, each sent after the pause.
  const fake = serveFakeModel({ scenarios: { scripted: { turns: [{ text: "An answer.", paceMs: answerMs / 2 }] } } });
  const log = emptyFolder();
  const workers = new Set<ReturnType<typeof startWorker>>();
  let started = 0;

  /** `evald worker` on a machine. */
  function startWorker(machine: (typeof network.machines)[number]) {
    const said = join(log, `worker-${++started}`);
    const child = Bun.spawn([...machine.command, file, "worker", "--slots", String(slots)], {
      env: {
        PATH: process.env.PATH ?? "",
        TMPDIR: machine.tmp,
        NODE_EXTRA_CA_CERTS: proxy.cert,
        EVALD_REDIS_URL: redis.url,
        EVALD_GATEWAY_URL: `${proxy.url}/gateway`,
        EVALD_LOG_FORMAT: "json",
      },
      stdin: "ignore",
      stdout: "ignore",
      stderr: Bun.file(said),
    });
    const count = (text: string) => readFileSync(said, "utf8").split(text).length - 1;
    const worker = {
      machine,
      pid: child.pid,
      said: () => readFileSync(said, "utf8"),
      /** Whether it has started and has no session. */
      isIdle: () => count("is waiting for sessions") > 0 && worker.active() === 0,
      /** Sessions that it has started and not ended. */
      active: () => count('"session started"') - count('"session ended"'),
      signal: (signal: NodeJS.Signals) => child.kill(signal),
      /** Sends a signal and waits for the end; returns the exit code. */
      async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number> {
        child.kill(signal);
        workers.delete(worker);
        await child.exited;
        return child.exitCode ?? 128;
      },
    };
    workers.add(worker);
    return worker;
  }

  return {
    network,
    redis,
    fake,
    workers,
    /** URL of the service, which keeps its port over restarts. */
    url,
    proxy,
    startWorker,
    /** Settings of the service. */
    env: {
      EVALD_PORT: String(port),
      EVALD_REDIS_URL: redis.url,
      EVALD_AGENT_MODEL: model,
      EVALD_MODEL_PRICES: `{"${model}": {"in": 10, "out": 100, "cached": 1}}`,
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      OPENAI_COMPATIBLE_API_KEY: "sk-the-real-key-0123456789",
      GONE_MS: String(goneMs),
    },
    /** Ends Redis as a crash would, and starts it again with what it had stored. */
    async crashRedis(): Promise<void> {
      await redis.kill();
      await redis.restart();
    },
    /** Stops every worker; returns what each one leaves behind: its exit code, processes and temporary files. */
    stopWorkers: () =>
      Promise.all(
        [...workers].map(async (worker) => {
          const { machine } = worker;
          return [await worker.stop(), machine.pids(), readdirSync(machine.tmp)] as const;
        }),
      ),
    async close(): Promise<void> {
      for (const worker of workers) await worker.stop("SIGKILL");
      network.close();
      fake.stop();
      proxy.stop();
      await redis.kill();
    },
  };
}
