import type { Agent } from "../../src/agents/agent.ts";
import { runProgram } from "../../src/cli/program.ts";

/**
 * Works as long as its task says (`for 300 ms`) with an event each 20 ms, or ends at once. It ignores the abort signal,
 * but reports it on stderr with the name in its task (`as one`).
 */
const pacedAgent: Agent = {
  describe: () => ({ id: "explorer", version: "test", model: null, kind: "rules" }),
  preflight: () => [],
  async *run({ text }, { signal }) {
    const name = /\bas (\S+)/.exec(text)?.[1];
    if (name) signal.addEventListener("abort", () => process.stderr.write(`${name} was told to stop\n`));
    const until = performance.now() + Number(/\bfor (\d+) ms/.exec(text)?.[1] ?? 0);
    do {
      yield { type: "thought", text: "nothing to do", by: "rule" };
      if (performance.now() < until) await Bun.sleep(20);
    } while (performance.now() < until);
    yield { type: "end", outcome: "not_judged", reason: "scripted" };
  },
};

// The executable, except for its agent and for a lease that a test can outlive.
const { LEASE_MS, ...env } = process.env;
const parts = { agents: { explorer: pacedAgent }, leaseMs: LEASE_MS === undefined ? undefined : Number(LEASE_MS) };
const code = await runProgram(process.argv.slice(2), env, parts);
if (code !== 0) process.exit(code);
