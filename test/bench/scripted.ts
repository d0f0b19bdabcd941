import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Turn } from "../support/fake-model.ts";
import { serveSite } from "../support/site.ts";
import type { SessionBench } from "./load.ts";

/**
 * A model and a site for sessions of the model agent that all do the same: read a page, write a file, run it and finish. `env`: settings of
 * their service; `paceMs`: pause before each block of an answer.
 */
export async function startScripted({ start, folder }: Pick<SessionBench, "start" | "folder">, paceMs = 0) {
  const docs = serveSite({ "/": { body: "<title>Acme</title><h1>Acme</h1><p>Print the word acme.</p>" } });
  const use = (name: string, input: Record<string, unknown>): Turn => ({ paceMs, toolCalls: [{ name, input }] });
  const turns = [
    use("fetch_page", { url: docs.url }),
    use("write_file", { path: "acme.sh", text: "echo acme" }),
    use("run_command", { command: "sh acme.sh" }),
    use("finish", { outcome: "succeeded", summary: "It was printed." }),
  ];
  const scenarios = join(folder(), "scenarios.json");
  writeFileSync(scenarios, JSON.stringify({ acme: { turns } }));
  // A model in the process that asks would count its own work as the service's.
  const model = await start(["bun", join(import.meta.dir, "../support/fake-model.ts"), scenarios], {});
  return {
    docs: docs.url,
    model: model.url,
    env: {
      EVALD_ALLOW_PRIVATE: "127.0.0.1",
      EVALD_AGENT_MODEL: "openai-compatible/acme",
      OPENAI_COMPATIBLE_BASE_URL: `${model.url}/v1`,
    },
    async stop(): Promise<void> {
      await model.stop();
      docs.stop();
    },
  };
}
