// Workers that repeat one recorded session in place of an agent: `bun test/bench/light-workers.ts STEPS_FILE COUNT SLOTS`.
import { createServer } from "node:net";
import pino from "pino";
import { version } from "../../package.json" with { type: "json" };
import type { AgentEvent } from "../../src/agents/agent.ts";
import type { Executor } from "../../src/places/executor.ts";
import { openWorker } from "../../src/places/worker.ts";
import { instantAgent } from "../support/app.ts";

/** What an agent did, in order: events with the time since the step before, and requests to its model. */
export type Step = { event: AgentEvent; source: "agent" | "egress"; afterMs: number } | { call: unknown };

const [file = "", count = "1", slots = "1"] = process.argv.slice(2);
const steps: Step[] = await Bun.file(file).json();
const { EVALD_REDIS_URL: url = "", EVALD_GATEWAY_URL: gatewayUrl = "" } = process.env;
const agent = { ...instantAgent, describe: () => ({ id: "llm", version, model: null, kind: "model" }) as const };

const executor: Executor = {
  async *run({ model }, { onEgress, signal }) {
    for (const step of steps) {
      if ("afterMs" in step) await Bun.sleep(step.afterMs);
      if ("call" in step) {
        const answer = await fetch(`http://gateway/${model?.provider}/v1/chat/completions`, {
          unix: model?.socketPath,
          method: "POST",
          headers: { authorization: `Bearer ${model?.token}` },
          body: JSON.stringify(step.call),
          signal,
        });
        if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
        await answer.arrayBuffer();
      } else if (step.source === "agent") yield step.event;
      else onEgress(step.event);
    }
  },
};

const options = { url, gatewayUrl, version, slots: Number(slots), agents: { llm: agent }, executor };
const workers: Awaited<ReturnType<typeof openWorker>>[] = [];
for (let i = 0; i < Number(count); i++) workers.push(await openWorker({ ...options, log: pino({ level: "silent" }) }));
process.on("SIGTERM", async () => {
  await Promise.all(workers.map((worker) => worker.stop(0)));
  process.exit(0);
});
const ready = createServer().listen(0, "127.0.0.1", () => {
  const address = ready.address();
  // The line that the benchmark waits for.
  process.stderr.write(`listening on http://127.0.0.1:${typeof address === "object" ? address?.port : ""}\n`);
});
