// What the gateway adds to a call of a model: `bun test/bench/gateway.ts`, or one line of bench.ts: `await gateway(row)`.
import { join } from "node:path";
import { createGateway } from "../../src/agents/gateway/gateway.ts";
import { median } from "./load.ts";

const calls = 400;
const repeats = 5;

/** Calls the fake model, a process of its own, by turns straight and through the gateway, and tells what the way through costs. */
export async function gateway(row: (what: string, ours: string, floor: string, ratio: string, aim: string) => void) {
  const fake = Bun.spawn([process.execPath, join(import.meta.dir, "..", "support", "fake-model.ts")], {
    stderr: "pipe",
  });
  const { value } = await fake.stderr.getReader().read();
  const url = /listening on (\S+)/.exec(new TextDecoder().decode(value))?.[1] ?? "";
  const gate = createGateway({ now: Date.now });
  const session = gate.openSession({
    model: {
      id: "openai/text",
      provider: "openai",
      name: "text",
      baseUrl: `${url}/v1`,
      key: "k",
      prices: {},
      allow: null,
    },
    limits: { calls: 1e9, tokens: 1e12, costUsd: null },
    onEvent() {},
    onFailure(failure) {
      throw failure;
    },
  });
  const headers = { authorization: `Bearer ${session.token}` };
  // As long as a session that has read some pages.
  const messages = [{ role: "user", content: "word ".repeat(20_000) }];

  async function call(through: boolean, stream: boolean): Promise<number> {
    const body = JSON.stringify({ model: "text", messages, stream });
    const begun = performance.now();
    const answer = through
      ? await fetch("http://gateway/openai/v1/chat/completions", {
          unix: session.socketPath,
          method: "POST",
          headers,
          body,
        })
      : await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
    await answer.text();
    if (!answer.ok) throw new Error(`the call was answered with ${answer.status}`);
    return performance.now() - begun;
  }

  for (const stream of [false, true]) {
    const times = { straight: [] as number[], through: [] as number[] };
    for (let i = 0; i < calls * repeats; i++) {
      times.straight.push(await call(false, stream));
      times.through.push(await call(true, stream));
    }
    const [ours, floor] = [median(times.through), median(times.straight)];
    row(
      `Model call, ${stream ? "streamed" : "not streamed"}, 100 KB of context: time that the gateway adds`,
      `${(ours - floor).toFixed(2)} ms`,
      `${floor.toFixed(2)} ms without it`,
      "",
      "< 2 ms",
    );
  }
  await session.close();
  await gate.close();
  fake.kill();
}

if (import.meta.main) await gateway((...cells) => process.stdout.write(`| ${cells.join(" | ")} |\n`));
