import { describe, expect, spyOn, test } from "bun:test";
import type { AgentEvent, SessionEvent } from "../../src/agents/agent.ts";
import { updateOrg } from "../../src/auth/orgs.ts";
import type { Answer } from "../../src/grading/judge/rubric.ts";
import { gradeSession } from "../../src/grading/score.ts";
import { readSession } from "../../src/reports/session-events.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { answer, installation, judgedApps, modelSession, part, rows, says } from "../support/judged.ts";

const { judged, runOnce } = judgedApps();
const dimension = (report: { dimensions: { name: string; score: number; desc: string }[] }, name: string) =>
  report.dimensions.find((each) => each.name === name);

test("a goal is reached if events prove every part", async () => {
  const { report, attempts, trace } = await runOnce(answer());
  expect(report).toMatchObject({
    outcome: "succeeded",
    keyFinding: "The docs name the wrong package.",
    methodology: { id: "3", judge: "openai-compatible/judge" },
    judge: {
      model: "openai-compatible/judge",
      costUsd: 0.002,
      inputTokens: 1000,
      outputTokens: 100,
      calls: 1,
      confidence: 0.9,
      parts: [
        { text: "The SDK was installed.", met: "yes", events: [10], quote: installation, why: "part 1" },
        { text: "Its three rows were printed.", met: "yes", events: [10], quote: rows, why: "part 2" },
      ],
      dropped: [],
      notice: null,
    },
  });
  expect(dimension(report, "Goal achievement")).toMatchObject({
    weight: "30%",
    score: 100,
    parts: [{ name: "Goal parts", score: 100, counts: { parts: 2, met: 2, missed: 0, unclear: 0 } }],
  });
  expect(report.verdict).toEndWith(
    "The goal was reached: every part is proven. The judge: It works in the end. The first command of the docs does not.",
  );
  expect(report.summary.whatWorked).toEndWith("The judge: The query.");
  // The agent's own usage is unknown; the attempt paid for its judge.
  expect(report.metrics).toMatchObject({ cost: "unknown", costUsd: null, timeSeconds: expect.any(Number) });
  expect(attempts).toMatchObject([{ outcome: "done", costUsd: 0.002 }]);
  expect(trace.slice(14).map(({ type, name, source }: Record<string, string>) => name ?? `${type} ${source}`)).toEqual([
    "judging",
    "usage runner",
    "judged",
  ]);
});

test("friction that only a judge can find is included, with evidence and a recommended fix", async () => {
  const { report } = await runOnce(answer());
  const friction = report.frictionPoints.find(({ category }: { category: string }) => category === "misleading_docs");
  expect(friction).toMatchObject({
    severity: "high",
    quote: "npm i acme",
    url: "https://docs.acme.dev/",
    events: expect.arrayContaining([4, 7]),
    description: expect.stringContaining("The judge: The first install failed with E404."),
  });
  // Findings of rules and judge with the same cause have one fix.
  expect(report.recommendations).toMatchObject([
    { frictionIds: [friction.id], evidence: { line: 1, found: "npm i acme", expected: "npm i @acme/sdk" } },
  ]);
});

test("a judge changes the severity of a finding by at most one step, with its own explanation", async () => {
  const plain = await runOnce(answer({ frictions: [] }));
  const [found] = plain.report.frictionPoints;
  expect(found).toMatchObject({ severity: "medium", events: [4, 7] });
  const [about] = answer().frictions as [Answer["frictions"][number]];
  const moved = await runOnce(
    answer({
      frictions: [{ ...about, finding: found.fingerprint, severity: "critical", events: [7], quote: "E404 acme" }],
    }),
  );
  expect(moved.report.frictionPoints).toMatchObject([
    { fingerprint: found.fingerprint, severity: "high", title: found.title, events: [4, 7] },
  ]);
  expect(moved.report.frictionPoints[0].description).toEndWith("The judge: The first install failed with E404.");
});

test.each([
  ["anthropic/judge", "ANTHROPIC"],
  ["openai/judge", "OPENAI"],
  ["google/judge", "GOOGLE_GENERATIVE_AI"],
] as const)("%s judges over its own protocol", async (judge, name) => {
  const app = judged({ turns: [says(answer())], judge, own: name });
  const { report } = await app.run();
  expect(report).toMatchObject({ outcome: "succeeded", judge: { model: judge, calls: 1, inputTokens: 1000 } });
  expect(app.model.requests).toHaveLength(1);
});

describe("the judge of a run", () => {
  const key = "sk-judge-key-0123456789";
  const every = { ANTHROPIC_API_KEY: key, OPENAI_API_KEY: key, GOOGLE_GENERATIVE_AI_API_KEY: key };

  test.each<[string, { agent: string; own?: string[]; env?: object }, string]>([
    ["the first of a different model family than the agent", { agent: "anthropic/claude-x" }, "openai/judge"],
    ["the first in the list if the agent's family differs", { agent: "google/gemini-x" }, "anthropic/judge"],
    [
      "the first that can be called",
      { agent: "anthropic/claude-x", env: { OPENAI_API_KEY: "", GOOGLE_GENERATIVE_AI_API_KEY: "" } },
      "anthropic/judge",
    ],
    ["the organization's own", { agent: "anthropic/claude-x", own: ["google/judge"] }, "google/judge"],
    [
      "the organization's own of a different family",
      { agent: "google/gemini-x", own: ["google/judge", "openai/judge"] },
      "openai/judge",
    ],
  ])("is %s", async (_, { agent, own, env }, judge) => {
    const model = serveFakeModel({ scenarios: { judge: { turns: [says(answer())] } } });
    const { anthropic, openai, google } = model.baseUrls;
    const urls = { ANTHROPIC_BASE_URL: anthropic, OPENAI_BASE_URL: openai, GOOGLE_GENERATIVE_AI_BASE_URL: google };
    const { service, a, run } = judged({
      turns: [says(answer())],
      judge: "anthropic/judge, openai/judge,google/judge",
      env: {
        ...every,
        ...urls,
        EVALD_AGENT_MODEL: agent,
        EVALD_MODEL_PRICES: `{"${agent}": {"in": 1, "out": 1}}`,
        ...env,
      },
    });
    if (own) updateOrg(service.ctx, a.org, { judgeModels: own });
    const { report } = await run();
    expect(report).toMatchObject({ outcome: "succeeded", judge: { model: judge }, methodology: { judge } });
    model.stop();
  });

  test("can't have an invalid model name", () => {
    const { service, a } = judged({ turns: [says(answer())] });
    expect(() => updateOrg(service.ctx, a.org, { judgeModels: ["gpt-5"] })).toThrow('Invalid model "gpt-5"');
  });
});

test("a judge spends what is left of the run's budget, and is not called if nothing is left", async () => {
  const app = judged({ turns: [says(answer())] });
  updateOrg(app.service.ctx, app.a.org, { maxUsdAMonth: 0.001 });
  const { report } = await app.run();
  // One call is made while something is left; the next run finds the budget spent.
  expect(report).toMatchObject({ outcome: "succeeded", judge: { costUsd: 0.002, calls: 1 } });
  await expect(app.run()).rejects.toThrow("has spent $0.00 of its monthly budget of $0.001");
});

test.each([
  ["One thing is true", ["One thing is true"]],
  [
    "- A file is there\n- It holds 3 rows, e.g. Ada.\n2) Its log is empty; nothing runs.",
    ["A file is there", "It holds 3 rows, e.g. Ada.", "Its log is empty", "nothing runs."],
  ],
  [
    "See https://a.example/b.c?d=e. Version 2.1 is there! Is it?",
    ["See https://a.example/b.c?d=e.", "Version 2.1 is there!", "Is it?"],
  ],
  [
    Array.from({ length: 20 }, (_, i) => `Part ${i}.`).join(" "),
    [...Array.from({ length: 11 }, (_, i) => `Part ${i}.`), expect.stringContaining("Part 19.")],
  ],
])("the parts of the goal are its lines and sentences: %s", async (endGoal, parts) => {
  const { report } = await judged({ turns: [says(answer({ parts: [] }))] }).run({ endGoal });
  expect(report.judge.parts.map(({ text }: { text: string }) => text)).toEqual(parts);
  expect(report.judge.dropped).toHaveLength(parts.length);
});

describe("the outcome", () => {
  test.each<[string, Answer["parts"], string, number | undefined]>([
    [
      "a part that is proven not met",
      [part(1, "yes", [10], installation), part(2, "no", [7], "E404 acme")],
      "goal_not_met",
      50,
    ],
    [
      "a missed part and an unclear one",
      [part(1, "unclear", [], ""), part(2, "no", [10], "TypeError: query is not")],
      "goal_not_met",
      0,
    ],
    ["an unclear part", [part(1, "yes", [7], "E404"), part(2, "unclear", [], "")], "not_judged", undefined],
  ])("is decided by the parts, if the judge finds %s", async (_, parts, outcome, goal) => {
    const { report } = await runOnce(answer({ parts }), modelSession({ works: goal === 50 }));
    expect(report.outcome).toBe(outcome);
    expect(dimension(report, "Goal achievement")?.score).toBe(goal as number);
    if (outcome === "goal_not_met") expect(report.score).toBeLessThanOrEqual(55);
  });

  test("is not judged without a judge, whatever the agent claims, and everything else is graded", async () => {
    const app = judged({ turns: [says(answer())], judge: null });
    const { report, trace } = await app.run();
    expect(report).toMatchObject({ outcome: "not_judged", judge: null, methodology: { judge: null }, coverage: 0.55 });
    expect(report.score).toBeGreaterThan(0);
    expect(app.model.requests).toEqual([]);
    expect(trace).toHaveLength(14);
  });

  test.each([
    ["pass", "succeeded", 100, [part(1, "no", [7], "E404 acme"), part(2, "no", [7], "E404 acme")]],
    ["fail", "goal_not_met", 0, answer().parts],
  ] as const)("follows a success check that says %s, whatever the judge says", async (status, outcome, goal, parts) => {
    const check = {
      id: "declared",
      group: "declared",
      subject: "x",
      url: "https://api.acme.dev/",
      line: null,
    } as const;
    const made = {
      ...check,
      status,
      share: status === "pass" ? 1 : 0,
      weight: 10,
      message: "m",
      fix: null,
      quote: null,
    };
    const before = { ...made, status: "fail", share: 0 } as const;
    const more: AgentEvent[] = [
      {
        type: "tool_result",
        id: "c",
        tool: "check_declared",
        ok: true,
        output: { when: "before" },
        checks: [before],
      },
      { type: "tool_result", id: "d", tool: "check_declared", ok: true, output: {}, checks: [made] },
    ];
    const { report } = await runOnce(answer({ parts: [...parts] }), modelSession({ more }));
    expect(report.outcome).toBe(outcome);
    expect(dimension(report, "Goal achievement")?.score).toBe(goal);
  });

  test("is not judged for a rule-based agent", async () => {
    const app = judged({ turns: [says(answer())], kind: "rules" });
    expect((await app.run()).report).toMatchObject({ outcome: "not_judged", judge: null });
    expect(app.model.requests).toEqual([]);
  });

  test.each(["no_creds", "excluded"] as const)("is not judged if the session ended with %s", async (outcome) => {
    const app = judged({ turns: [says(answer())], sessions: [modelSession({ outcome })] });
    const { report } = await app.run();
    expect(report).toMatchObject({ outcome, score: null, judge: null });
    expect(app.model.requests).toEqual([]);
  });

  test("is judged by the task itself if there is no end goal", async () => {
    const said = answer({ parts: [part(1, "yes", [10], rows)] });
    const { report } = await judged({ turns: [says(said)] }).run({
      endGoal: null,
      text: "Query it with the docs of https://docs.acme.dev/",
    });
    expect(report).toMatchObject({ outcome: "succeeded", judge: { parts: [{ met: "yes" }] } });
  });
});

describe("the response of the judge", () => {
  const odd: AgentEvent[] = [
    {
      type: "tool_result",
      id: "t9",
      tool: "run_command",
      ok: true,
      output: { exitCode: 1, stdout: "printed at last" },
    },
  ];
  const cases: [string, [number[], string], string][] = [
    ["an event that doesn't exist", [[99], rows], "it cites events that do not exist"],
    ["one event that exists and one that doesn't", [[10, 99], rows], "it cites events that do not exist"],
    ["an event of the judging itself", [[15], "openai-compatible"], "it cites events that do not exist"],
    ["a quote that is nowhere", [[10], "4 rows"], "none of its events contains the quote"],
    ["a quote of another event", [[7], rows], "none of its events contains the quote"],
    ["no quote", [[10], ""], "its quote is too short"],
    ["the agent's own thought", [[1], rows], "the quote is only in events that prove nothing"],
    ["the agent's own words at the end", [[11, 14], rows], "the quote is only in events that prove nothing"],
    ["a page as its proof", [[4], "Install it"], "the quote is only in events that prove nothing"],
    ["a failure as its proof", [[7], "E404 acme"], "the quote is only in events that prove nothing"],
    [
      "a command that exited with 1, although the agent says it worked",
      [[13], "printed at last"],
      "the quote is only in events that prove nothing",
    ],
    ["text that the agent printed itself", [[10], "all went well"], "the quote is only in events that prove nothing"],
  ];
  test.each(cases)("loses a claim after one retry: %s", async (_, [events, quote], why) => {
    const claims = [part(1, "yes", [10], installation), part(2, "yes", events, quote)];
    const app = judged({ turns: [says(answer({ parts: claims }))], sessions: [modelSession({ more: odd })] });
    const { report } = await app.run();
    expect(report).toMatchObject({
      outcome: "not_judged",
      judge: {
        calls: 2,
        costUsd: 0.004,
        dropped: [`part 2, yes: ${why}`],
        parts: [{ met: "yes" }, { met: "unclear", events: [] }],
      },
    });
    // The explanation of a judge with unproven claims is dropped.
    expect(JSON.stringify([report.keyFinding, report.verdict, report.summary])).not.toContain("The judge:");
    expect(JSON.stringify(app.model.requests[1]?.body)).toContain(why);
  });

  test("is accepted with a corrected claim", async () => {
    const wrong = answer({ parts: [part(1, "yes", [99], "x"), part(2, "yes", [10], rows)] });
    const { report } = await judged({ turns: [says(wrong), says(answer())] }).run();
    expect(report).toMatchObject({ outcome: "succeeded", judge: { calls: 2, dropped: [] } });
  });

  test.each([
    ["in a fence", "```json\n$\n```\nThat is all."],
    ["after its thoughts", "<think>Is {this} the answer? No.</think>\n$"],
  ])("is understood %s on its first try, even if no schema can be enforced", async (_, around) => {
    const { report } = await runOnce(around.replace("$", () => JSON.stringify(answer())));
    expect(report).toMatchObject({ outcome: "succeeded", judge: { calls: 1, confidence: 0.9, dropped: [] } });
  });

  test("can't prove by a page that a part was missed", async () => {
    const parts = [part(1, "no", [4], "Install it"), part(2, "yes", [10], rows)];
    const { report } = await runOnce(answer({ parts }));
    expect(report).toMatchObject({ outcome: "not_judged", judge: { parts: [{ met: "unclear" }, { met: "yes" }] } });
  });

  test("has no verdict on a part if it has two", async () => {
    const parts = [...answer().parts, part(2, "no", [7], "E404 acme")];
    const { report } = await runOnce(answer({ parts }));
    expect(report).toMatchObject({
      outcome: "not_judged",
      judge: { dropped: ["part 2: it has two different verdicts"] },
    });
  });

  test("loses a friction point without evidence, which is counted", async () => {
    const [said] = answer().frictions as [Answer["frictions"][number]];
    const { report } = await runOnce(
      answer({
        frictions: [
          { ...said, events: [40] },
          { ...said, quote: "never said" },
        ],
      }),
    );
    expect(report.outcome).toBe("succeeded");
    expect(report.judge.dropped).toHaveLength(2);
    expect(JSON.stringify(report.frictionPoints)).not.toContain("The judge:");
  });
});

describe("the input of the judge", () => {
  const promptOf = (app: ReturnType<typeof judged>) =>
    JSON.stringify((app.model.requests[0] as { body: { messages: unknown } }).body.messages);

  test("contains the task, the parts of the goal, the findings of the rules and the schema, but no tools or key", async () => {
    const app = judged({ turns: [says(answer())] });
    await app.run();
    const prompt = promptOf(app);
    for (const words of [
      "Query it.",
      "1. ",
      "The SDK was installed.",
      "2. ",
      "Its three rows were printed.",
      "E404",
      "additionalProperties",
    ])
      expect(prompt).toContain(words);
    expect(app.model.requests[0]?.body).not.toHaveProperty("tools");
    expect(prompt).not.toContain("sk-judge-key");
  });

  test("contains no secret", async () => {
    const key = `evals_${"A".repeat(36)}`;
    const page = `Use ${key} and Authorization: Bearer abcdefghijklmnop and sk-judge-key-0123456789`;
    const app = judged({ turns: [says(answer())], sessions: [modelSession({ page })] });
    await app.run({ text: `Use ${key} with sk-judge-key-0123456789. Docs: https://docs.acme.dev/` });
    expect(promptOf(app)).not.toMatch(/evals_A|abcdefghijklmnop|sk-judge-key/);
  });

  test("is limited, and contains what matters", async () => {
    const long = "x".repeat(8_000);
    const more = Array.from({ length: 400 }, (_, i): AgentEvent[] => [
      { type: "thought", text: `thought ${i} ${long}`, by: "model" },
      { type: "tool_result", id: `p${i}`, tool: "fetch_page", ok: true, output: { text: `page ${i} ${long}` } },
    ]).flat();
    const begun = modelSession();
    const session = [...begun.slice(0, 6), ...more, ...begun.slice(6)];
    const parts = [part(1, "yes", [810], installation), part(2, "yes", [810], rows)];
    const app = judged({ turns: [says(answer({ parts, frictions: [] }))], sessions: [session] });
    const { report } = await app.run();
    expect(report.outcome).toBe("succeeded");
    const prompt = promptOf(app);
    expect(prompt.length).toBeLessThan(130_000);
    for (const words of [rows, "E404 acme", "events omitted", "characters omitted"]) expect(prompt).toContain(words);
  });
});

test("stored events give the same report to the bit, without another call", async () => {
  const app = judged({ turns: [says(answer())] });
  const { run, report } = await app.run();
  const stored = readSession(app.db, { orgId: app.a.org, runId: run.runId, attempt: 1 });
  const [one, two] = [gradeSession(stored), gradeSession(stored.toReversed())];
  expect(JSON.stringify(one)).toBe(JSON.stringify(two));
  for (const name of ["score", "outcome", "scope", "keyFinding", "verdict", "summary", "judge", "methodology"] as const)
    expect(one[name]).toEqual(report[name]);
  expect(app.model.requests).toHaveLength(1);
});

test("a session is read once for all URLs of a judge, of which at most a hundred are checked", async () => {
  const addresses = Array.from({ length: 240 }, (_, i) => `${i}.io/`);
  const text = (from: number) => addresses.slice(from, from + 80).join(" ");
  const summary = { whatWorked: text(0), whatDidnt: text(80) };
  const page = `Install it: npm i acme. ${addresses.join(" ")}`;
  const app = judged({ turns: [says(answer({ summary }))], sessions: [modelSession({ page })] });
  const { run, report } = await app.run();
  expect(report.summary.whatWorked).toContain(text(0));
  expect(report.summary.whatDidnt.match(/URL removed/g).length).toBeGreaterThan(40);

  const stored = readSession(app.db, { orgId: app.a.org, runId: run.runId, attempt: 1 });
  const normalize = spyOn(String.prototype, "normalize");
  gradeSession(stored);
  const calls = normalize.mock.calls.length;
  normalize.mockRestore();
  expect(calls).toBeLessThan(1000);
});

test("another judge, or none, is another methodology, and no agent can claim that it was judged", async () => {
  const app = judged({ turns: [says(answer())] });
  const { run } = await app.run();
  const stored = readSession(app.db, { orgId: app.a.org, runId: run.runId, attempt: 1 });
  const changed = (field: string) =>
    stored.map((event) =>
      event.source === "runner" && event.type === "milestone" && event.name !== null
        ? ({ ...event, detail: { ...event.detail, [field]: "other" } } as SessionEvent)
        : event,
    );
  const plain = gradeSession(stored.slice(0, 14)).methodology;
  const hashes = [stored, changed("model"), changed("rubric")].map((events) => gradeSession(events).methodology.hash);
  expect(new Set([...hashes, plain.hash]).size).toBe(4);
  expect(plain).toEqual(gradeSession([]).methodology);
  const forged = stored.map((event) => ({ ...event, source: "agent" as const }));
  const { methodology, ...numbers } = gradeSession(stored.slice(0, 14));
  expect(gradeSession(forged.slice(0, 14).toSpliced(1, 1, { ...forged[14]!, seq: 1 }))).toMatchObject({
    outcome: "not_judged",
    judge: null,
    score: numbers.score,
    frictions: numbers.frictions,
  });
  expect(gradeSession(forged)).toMatchObject({ outcome: "not_judged", judge: null, methodology });
});

test.each([
  ["openai-compatible/judge", null],
  ["openai-compatible/claude-haiku", "same model family"],
])("a judge of the agent's own model family is reported: %s", async (model, words) => {
  const app = judged({ turns: [says(answer())] });
  const { run } = await app.run();
  const stored = readSession(app.db, { orgId: app.a.org, runId: run.runId, attempt: 1 });
  const events = stored.map((event) =>
    event.source === "runner" && event.type === "milestone" && event.name !== null
      ? ({ ...event, detail: { ...event.detail, model } } as SessionEvent)
      : event,
  );
  const { judge } = gradeSession(events);
  if (words === null) expect(judge?.notice).toBeNull();
  else expect(judge?.notice).toContain(words);
});
