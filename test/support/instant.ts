import { existsSync } from "node:fs";
import { type Agent, AgentFailure, type AgentResources } from "../../src/agents/agent.ts";
import { runProgram } from "../../src/cli/program.ts";

/**
 * Works as long as its task says (`for 300 ms`, `until /a/file/exists`) with an event each 20 ms, or ends at once. `block 300 ms`: keeps the
 * event loop of the service from turning for so long. It ignores the abort signal, but reports it on stderr with the name in its task (`as one`).
 */
const pacedAgent: Agent = {
  describe: () => ({ id: "explorer", version: "test", model: null, kind: "rules" }),
  preflight: () => [],
  async *run({ text }, { signal }) {
    const name = /\bas (\S+)/.exec(text)?.[1];
    if (name) signal.addEventListener("abort", () => process.stderr.write(`${name} was told to stop\n`));
    const blockMs = Number(/\bblock (\d+) ms/.exec(text)?.[1] ?? 0);
    if (blockMs > 0) Bun.sleepSync(blockMs);
    const until = performance.now() + Number(/\bfor (\d+) ms/.exec(text)?.[1] ?? 0);
    const file = /\buntil (\S+)/.exec(text)?.[1];
    const isBusy = () => performance.now() < until || (file !== undefined && !existsSync(file));
    do {
      yield { type: "thought", text: "nothing to do", by: "rule" };
      if (isBusy()) await Bun.sleep(20);
    } while (isBusy());
    yield { type: "end", outcome: "not_judged", reason: "scripted" };
  },
};

/** Calls its model as often as its task says (`call 3 times`). Each call has an ID, which an event with the answer repeats. */
const callingAgent: Agent = {
  describe: () => ({ id: "llm", version: "test", model: null, kind: "model" }),
  preflight: () => [],
  async *run({ text }, { signal, resources }) {
    const { model } = resources as AgentResources;
    for (let left = Number(/\bcall (\d+) times/.exec(text)?.[1] ?? 1); left > 0; left--) {
      const id = crypto.randomUUID();
      const answer = await fetch(`http://gateway/${model.provider}/v1/chat/completions`, {
        unix: model.socketPath,
        method: "POST",
        headers: { authorization: `Bearer ${model.token}` },
        body: JSON.stringify({ model: model.name, messages: [{ role: "user", content: id }] }),
        signal,
      });
      if (!answer.ok)
        throw new AgentFailure("model_server_error", `call ${id}: ${answer.status}: ${await answer.text()}`, {
          retryable: true,
        });
      const { choices } = await answer.json();
      yield { type: "thought", text: `${id}: ${choices[0].message.content}`, by: "model" };
    }
    yield { type: "end", outcome: "not_judged", reason: "scripted" };
  },
};

// This is the executable except for its agents. Its lease is short enough for a test to outlive, and a worker soon counts
// as gone.
const { LEASE_MS, GONE_MS, ...env } = process.env;
const toNumber = (text: string | undefined) => (text === undefined ? undefined : Number(text));
const agents = { explorer: pacedAgent, llm: callingAgent };
const parts = { agents, leaseMs: toNumber(LEASE_MS), goneMs: toNumber(GONE_MS) };
const code = await runProgram(process.argv.slice(2), env, parts);
if (code !== 0) process.exit(code);
