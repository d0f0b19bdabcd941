import { describe, expect, test } from "bun:test";
import type { AgentEvent } from "../../src/agents/agent.ts";
import type { Task } from "../../src/agents/task.ts";
import type { Verdict } from "../../src/comparisons/evidence.ts";
import { decideVerdict, type Side } from "../../src/comparisons/verdict.ts";
import { getGate } from "../../src/gates/gates.ts";
import { advanceGates } from "../../src/gates/progress.ts";
import { requestGate } from "../../src/gates/requests.ts";
import { levelAt, nextStep } from "../../src/gates/steps.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import type { SideRun } from "../../src/stats/repeats.ts";
import { answer, judgedApp, modelSession, says } from "../support/judged.ts";
import { normal, randomOf } from "../support/random.ts";
import { changes, designs, measureFalseFails, measurePower } from "../truth/gates.ts";

const pairs = 10_000;

/** A run of which only the score matters. */
const scored = (score: number): SideRun => ({
  failureCause: null,
  report: { outcome: "not_judged", score, seconds: null, costUsd: null },
  prompt: "one",
  pairKey: "one",
  isDeterministic: false,
  provenShare: null,
  dimensions: [],
  metrics: null,
});

/** Two sides of runs with this difference in points and this standard deviation. */
function sides(random: () => number, sd: number, change = 0) {
  const [before, after]: [Side, Side] = [
    { name: "before", unfinished: 0, runs: [] },
    { name: "after", unfinished: 0, runs: [] },
  ];
  return (n: number) => {
    while (before.runs.length < n) {
      before.runs.push(scored(normal(random, 70, sd)));
      after.runs.push(scored(normal(random, 70 + change, sd)));
    }
    return [before, after] as const;
  };
}

/** The result of an adaptive gate, by its steps. */
function adaptive(grown: ReturnType<typeof sides>): Verdict | null {
  let verdict: Verdict | null = null;
  for (let done = 3; ; ) {
    ({ verdict } = decideVerdict(...grown(done), [], levelAt(done, true)));
    const next = nextStep({ runs: 12, adaptive: true, budgetUsd: null, done, spentUsd: 0, verdict });
    if (typeof next !== "number") return verdict;
    done = next;
  }
}

/** Gates of each design; `bun run truth --gates` makes more. */
const gates = 200;

test.each(designs.map((design) => [design.name, design] as const))(
  "at most 5 %% of gates of %s fail without a change",
  (_, design) => {
    // Prompts that each change by chance don't count as one change per run.
    const { failed } = measureFalseFails(design, gates, design.prompts > 1 && design.args > 1 ? 6 : 0);
    expect(failed / gates).toBeLessThan(0.05 + 3 * Math.sqrt((0.05 * 0.95) / gates));
  },
  600_000,
);

test.each(changes.filter(({ points = 99 }) => points > 10).map((change) => [change.name, change] as const))(
  "most gates with 12 runs fail for %s",
  (_, change) => {
    const design = { name: "", prompts: 1, args: 1, runs: 12 };
    for (const each of [design, { ...design, adaptive: true as const }]) {
      const { failed, passed } = measurePower(each, change, 60);
      expect(failed / 60).toBeGreaterThan(0.6);
      expect(passed / 60).toBeLessThan(0.3);
    }
  },
  600_000,
);

const countOf = (verdicts: (Verdict | null)[], wanted: Verdict) => verdicts.filter((each) => each === wanted).length;

describe("without a change", () => {
  test.each([4, 8])("at most 5 %% of pairs of five runs per side are called worse (standard deviation %d)", (sd) => {
    const random = randomOf(sd);
    const verdicts = Array.from({ length: pairs }, () => decideVerdict(...sides(random, sd)(5), []).verdict);
    const [worse, better] = [countOf(verdicts, "regressed"), countOf(verdicts, "improved")];
    // Each is half of 5 % if a change of 5 points is common, and both together are the rate for any change.
    expect((worse + better) / pairs).toBeLessThan(0.05);
    expect(worse / pairs).toBeWithin(sd === 4 ? 0.003 : 0.015, 0.03);
  });

  test("at most 5 % of adaptive gates, which test four times, call a side worse or better", () => {
    const random = randomOf(11);
    // At this spread, 5 points are nothing. Only the levels limit the rate, up to three standard errors.
    const count = 3_000;
    const verdicts = Array.from({ length: count }, () => adaptive(sides(random, 10)));
    const [worse, better] = [countOf(verdicts, "regressed"), countOf(verdicts, "improved")];
    expect((worse + better) / count).toBeLessThan(0.05 + 3 * Math.sqrt((0.05 * 0.95) / count));
    expect(worse / count).toBeWithin(0.01, 0.03);
  }, 300_000);
});

test("an adaptive gate finds clear regressions in few runs, and finds most others", () => {
  const random = randomOf(5);
  const ends = (change: number) => Array.from({ length: 300 }, () => adaptive(sides(random, 6, change)));
  expect(countOf(ends(-20), "regressed")).toBe(300);
  // 12 runs per side detect 10 points at this spread in 97 of 100; interim evaluations cost little of that.
  expect(countOf(ends(-10), "regressed") / 300).toBeGreaterThan(0.9);
});

const docs = { good: "Install it: npm i @acme/sdk", worse: "Install it: npm i acme" };

/**
 * An agent that reads the page linked by its run, and fails and asks as often as that page makes it, by chance: each side has its own, so
 * that the result does not depend on the order in which runs start.
 */
function noisy(seed: number, pageAt: (task: Task) => string) {
  const [ofBase, ofHead] = [randomOf(seed), randomOf(seed + 100)];
  return (task: Task): AgentEvent[] => {
    const page = pageAt(task);
    const random = Object.keys(task.urlMap).length > 0 ? ofHead : ofBase;
    const worse = page === docs.worse ? 1 + Math.floor(random() * 3) : 0;
    const [failures, questions] = [Math.floor(random() * 3) + worse, Math.floor(random() * 1.4) + worse];
    const more = Array.from({ length: failures }, (_, i): AgentEvent[] => {
      const id = `e${i}`;
      return [
        { type: "tool_call", id, tool: "run_command", input: { command: `npm i acme@${i}` } },
        {
          type: "tool_result",
          id,
          tool: "run_command",
          ok: false,
          output: { message: "exit code 1: E404", exitCode: 1 },
        },
      ];
    });
    const asked = Array.from(
      { length: questions },
      (): AgentEvent => ({ type: "interruption", question: "Which package?", url: null }),
    );
    return modelSession({ page, more: [...more.flat(), ...asked] });
  };
}

describe("for a model agent that varies, judged by a model", () => {
  async function gates(seed: number, preview: string, rounds: number) {
    const pages: Record<string, string> = { "https://preview.acme.dev": preview };
    const site = (task: Task) => pages[task.urlMap["docs.acme.dev"] ?? ""] ?? docs.good;
    const app = judgedApp({
      turns: [says(answer())],
      id: "llm",
      sessions: noisy(seed, site),
      env: { EVALD_CONCURRENCY: "8" },
    });
    const { service, a, runJobs } = app;
    const prompt = createPrompt(service.ctx, a.org, {
      text: "Query it. Docs: https://docs.acme.dev/",
      endGoal: "The SDK was installed. Its three rows were printed.",
      agent: "llm",
    });
    const urlMap = { "docs.acme.dev": "https://preview.acme.dev" };
    const ended = [];
    for (let round = 0; round < rounds; round++) {
      const { id } = await requestGate(service.ctx, a.org, { promptId: prompt.id, urlMap });
      await runJobs();
      await advanceGates(service.ctx);
      ended.push(getGate(service.ctx, a.org, id));
    }
    await app.stop();
    return ended;
  }

  test("a gate finds worse docs", async () => {
    const [gate] = await gates(1, docs.worse, 1);
    expect([gate?.status, gate?.comparison?.verdict, gate?.head.n]).toEqual(["failed", "regressed", 5]);
  });

  test("twenty gates find nothing if nothing changed", async () => {
    const ended = await gates(2, docs.good, 20);
    expect(ended.map(({ status }) => status)).toEqual(Array(20).fill("passed"));
    // Runs do differ, so there is something to find.
    expect(new Set(ended.map(({ head }) => head.score?.mean)).size).toBeGreaterThan(5);
  });
});
