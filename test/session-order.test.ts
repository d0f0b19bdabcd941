import { describe, expect, test } from "bun:test";
import type { AgentEvent, Check } from "../src/agents/agent.ts";
import { gradeSession } from "../src/grading/score.ts";
import { api, docs, finishes, productSession, reads, runs, sends, uses } from "./fixtures/grading/product.ts";

type Steps = ((id: string) => AgentEvent[])[];
const id = "job_91f3";
const answer = `{"id":"${id}"}`;
const home = reads("/", "See [Jobs](/jobs).", { provenance: "given" });
const jobs = reads("/jobs", "Send `POST /v1/jobs` with a name.");
const create = sends("POST", `${api}/v1/jobs`, 201, answer, { body: '{"name":"nightly"}' });
const refuse = (n: number) => sends("POST", `${api}/v1/jobs`, 422, `{"error":"${n}"}`, { body: `{"nam":${n}}` });
const times = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i));

/** The sessions of each agent. The last call of an agent that claims success says so. */
const sessions = {
  success: [home, jobs, create, finishes("succeeded")],
  wrongPages: [
    home,
    ...times(20, (i) => reads(`/about/${i}`, `History of the company, part ${i}.`)),
    jobs,
    create,
    finishes("succeeded"),
  ],
  guesses: [
    home,
    ...times(8, (i) => reads(`/jobs-${i}.md`, "", { status: 404, provenance: "guessed" })),
    jobs,
    create,
    finishes("succeeded"),
  ],
  errors: [home, jobs, ...times(5, refuse), create, finishes("succeeded")],
  gaveUp: [home, jobs, refuse(1), finishes("goal_not_met")],
  gaveUpReading: [home, ...times(20, (i) => reads(`/about/${i}`, `History, part ${i}.`)), finishes("goal_not_met")],
  liar: [home, jobs, finishes("succeeded", `Created ${id}`)],
} satisfies Record<string, Steps>;
type Name = keyof typeof sessions;

const isSuccess = (name: Name) => ["success", "wrongPages", "guesses", "errors"].includes(name);
const isHonest = (name: Name) => name !== "gaveUp" && name !== "gaveUpReading";
const outcomeOf = (name: Name) => (isHonest(name) ? ("succeeded" as const) : ("goal_not_met" as const));
const graded = (name: Name, met?: "yes" | "no" | "unclear") =>
  gradeSession(productSession(sessions[name], { outcome: outcomeOf(name), ...(met && { met, claim: id }) }));

describe("the ranking of sessions", () => {
  test("by an honest judge is success, wrong pages, errors, and then missed goals", () => {
    const judged = (name: Name) => graded(name, isSuccess(name) ? "yes" : "unclear");
    const scores = Object.fromEntries((Object.keys(sessions) as Name[]).map((name) => [name, judged(name)]));
    const score = (name: Name) => scores[name]!.score ?? Number.NaN;
    expect(score("success")).toBe(100);
    // Twenty useless pages affect part of Efficiency and nothing else.
    expect(score("success") - score("wrongPages")).toBeGreaterThanOrEqual(3);
    expect(score("wrongPages")).toBeGreaterThanOrEqual(90);
    expect(score("wrongPages") - score("errors")).toBeGreaterThanOrEqual(2);
    expect(score("errors")).toBeGreaterThanOrEqual(80);
    expect(score("guesses")).toBeGreaterThanOrEqual(70);
    expect(score("guesses")).toBeLessThan(97);
    for (const name of ["gaveUp", "gaveUpReading", "liar"] as const) expect(score(name)).toBeLessThanOrEqual(55);
    for (const name of ["gaveUp", "gaveUpReading"] as const)
      expect(scores[name]).toMatchObject({ outcome: "goal_not_met", scope: "goal", grade: "F" });
    expect(scores.liar).toMatchObject({ outcome: "not_judged", scope: "conduct_only", grade: null });
    for (const name of ["success", "wrongPages", "guesses", "errors"] as const)
      expect(scores[name]).toMatchObject({ outcome: "succeeded", scope: "goal" });
  });

  test("without a judge has no grade for a success, and no false claim above a score of one", () => {
    const all = (Object.keys(sessions) as Name[]).map((name) => ({ name, ...graded(name) }));
    const worst = Math.min(...all.filter(({ name }) => isSuccess(name)).map(({ score }) => score ?? 0));
    for (const { name, score, scope, grade } of all) {
      expect([name, scope]).toEqual([name, isHonest(name) ? "conduct_only" : "goal"]);
      expect([name, grade]).toEqual([name, isHonest(name) ? null : "F"]);
      if (!isSuccess(name)) expect(score).toBeLessThan(worst);
    }
  });

  test("by a judge that always says yes improves neither", () => {
    expect(graded("liar", "yes")).toMatchObject({ outcome: "not_judged", scope: "conduct_only", grade: null });
    expect(graded("gaveUp", "yes")).toMatchObject({ outcome: "goal_not_met", grade: "F" });
  });

  test("puts the worst success above the best miss", () => {
    const ask = (i: number) =>
      uses("ask_human", { question: `${i}` }, {}, { type: "interruption", question: `${i}`, url: null });
    const broken = times(9, (i) => runs(`build${i} --now`, "", [], 1));
    const steps = [home, ...times(30, (i) => reads(`/a/${i}`, `No ${i}.`)), ...times(5, ask), ...broken, create];
    const grade = gradeSession(productSession([...steps, finishes("succeeded")], { met: "yes", claim: id }));
    expect(grade).toMatchObject({ outcome: "succeeded", scope: "goal" });
    expect(grade.score).toBeGreaterThanOrEqual(60);
  });
});

/** Counted by hand: calls (with the last one, which finishes), errors, page requests, failed ones, pages that led nowhere. */
test.each<[Name, number, number, number, number, number]>([
  ["success", 4, 0, 2, 0, 0],
  ["wrongPages", 24, 0, 22, 0, 20],
  ["guesses", 12, 8, 10, 8, 0],
  ["errors", 9, 5, 2, 0, 0],
  ["gaveUp", 4, 1, 2, 0, 0],
  ["gaveUpReading", 22, 0, 21, 0, 0],
  ["liar", 3, 0, 2, 0, 0],
])("the metrics of %s equal a manual count", (name, toolCalls, errors, requests, failed, useless) => {
  const { metrics, dimensions } = graded(name, isSuccess(name) ? "yes" : "unclear");
  expect(metrics).toMatchObject({ toolCalls, errors, interruptions: 0 });
  const countsOf = (wanted: string) =>
    dimensions.flatMap(({ parts }) => parts).find((part) => part.name === wanted)?.counts;
  expect(countsOf("Failed page requests")).toMatchObject({ requests, failed });
  expect(countsOf("Wasted calls")).toMatchObject({ calls: toolCalls, useless, repeats: 0 });
  // A part without evidence is left out.
  if (errors === 0 || name === "guesses") expect(countsOf("Recovery")).toBeUndefined();
  else expect(countsOf("Recovery")).toMatchObject({ errors });
});

describe("a failure counts once", () => {
  const partOf = (steps: Steps, dimension: string) =>
    gradeSession(productSession(steps)).dimensions.find(({ name }) => name === dimension)?.parts[0];

  test("if it is a command and the requests that its proxy saw", () => {
    const seen = times(3, () => ({ method: "POST", url: `${api}/v1/jobs`, status: 422 }));
    const failing = times(5, (i) => runs(`node create.mjs ${i}`, "", seen, 1));
    const grade = gradeSession(productSession([home, jobs, ...failing, runs("node create.mjs 6", "ok")]));
    expect(grade.metrics.errors).toBe(5);
    expect(partOf([home, jobs, ...failing, runs("node create.mjs 6", "ok")], "Error recovery")?.counts).toMatchObject({
      ...{ errors: 5, atOnce: 1, later: 4, never: 0 },
    });
  });

  test("and the same for a command and for http_request", () => {
    const curl = (body: string, status: number) =>
      runs(`curl -X POST -d '${body}' ${api}/v1/jobs`, "", [{ method: "POST", url: `${api}/v1/jobs`, status }]);
    const byCurl = [home, ...times(5, (i) => curl(`${i}`, 422)), curl("right", 201)];
    const byTool = [home, ...times(5, refuse), create];
    expect(partOf(byCurl, "Error recovery")?.score).toBe(partOf(byTool, "Error recovery")?.score as number);
    expect(gradeSession(productSession(byCurl)).metrics.errors).toBe(5);
  });

  test("and isn't a dead link or less discoverability if the product returned it", () => {
    const grade = gradeSession(productSession([home, jobs, ...times(3, refuse), create]));
    expect(grade.dimensions.find(({ name }) => name === "Docs discoverability")?.score).toBe(100);
    expect(grade.frictions.map(({ category }) => category)).not.toContain("dead_link");
  });

  test.each<[string, Steps, string]>([
    ["ls after a failed command", [runs("acme deploy", "", [], 1), runs("ls /", "bin")], "never"],
    ["another program", [runs("acme deploy", "", [], 1), runs("git status", "clean")], "never"],
    ["another verb", [runs("acme deploy", "", [], 1), runs("acme version", "1")], "never"],
    ["another request", [refuse(1), sends("GET", `${api}/v1/health`, 200, "{}")], "never"],
    [
      "the same command with another option",
      [runs("acme deploy", "", [], 1), runs("cd x && acme deploy --yes", "ok")],
      "atOnce",
    ],
    ["the same request with another body", [refuse(1), create], "atOnce"],
    ["the same request at a similar URL", [sends("POST", `${api}/v1/job`, 404, ""), create], "atOnce"],
    [
      "the same request after reading the docs",
      [refuse(1), reads("/errors", "The field is name."), create],
      "afterDocs",
    ],
    ["the same after two more errors", [refuse(1), refuse(2), refuse(3), create], "later"],
  ])("counts as recovered or not by the next steps: %s", (_, steps, fate) => {
    expect(partOf([home, jobs, ...steps], "Error recovery")?.counts[fate]).toBeGreaterThanOrEqual(1);
    if (fate === "never") expect(partOf([home, jobs, ...steps], "Error recovery")?.score).toBe(0);
  });

  test("is friction of low or medium severity if it is a missing guessed URL", () => {
    const { frictions, metrics } = graded("guesses");
    expect(metrics.errors).toBe(8);
    expect(frictions.filter(({ severity }) => severity === "high" || severity === "critical")).toEqual([]);
  });

  test("is waste if it is a page that led nowhere", () => {
    const part = graded("wrongPages").dimensions.find(({ name }) => name === "Efficiency")?.parts[0];
    expect(part).toMatchObject({ name: "Wasted calls", counts: { useless: 20, repeats: 0 } });
  });
});

describe("the owners of lost points", () => {
  test("add up to the loss, for every session", () => {
    for (const name of Object.keys(sessions) as Name[])
      for (const met of [undefined, isSuccess(name) ? "yes" : "unclear"] as const) {
        const { score, lost, recommendations } = graded(name, met);
        const { total, fixes, agent, network, unmeasured } = lost!;
        expect(total).toBeCloseTo(100 - score!, 5);
        expect(fixes + agent + network + unmeasured).toBeCloseTo(total, 5);
        for (const each of [fixes, agent, network, unmeasured]) expect(each).toBeGreaterThanOrEqual(0);
        for (const { expectedGain } of recommendations) expect(expectedGain ?? 0).toBeLessThanOrEqual(total);
      }
  });

  test("are the agent for its own mistakes, without a recommended fix", () => {
    const { lost, recommendations } = graded("errors", "yes");
    expect(lost).toMatchObject({ fixes: 0, network: 0 });
    expect(lost!.agent).toBeGreaterThan(5);
    expect(recommendations).toEqual([]);
  });

  test("are the page that names a wrong URL; the fix says where it is and what works", () => {
    const wrong = reads("/jobs", "Jobs\n\nSend `POST /v1/job` with a name.");
    const missed = sends("POST", `${api}/v1/job`, 404, "", {});
    const steps = [home, wrong, missed, missed, create, finishes("succeeded")];
    const { lost, recommendations, frictions } = gradeSession(productSession(steps, { met: "yes", claim: id }));
    expect(frictions).toMatchObject([{ category: "misleading_docs", url: `${docs}/jobs` }]);
    expect(recommendations).toMatchObject([
      { evidence: { url: `${docs}/jobs`, line: 3, found: "/v1/job", expected: "/v1/jobs" } },
    ]);
    expect(recommendations[0]!.expectedGain).toBeGreaterThan(0);
    expect(lost!.fixes).toBeGreaterThan(0);
  });
});

test("an agent that gives up because the docs name a missing URL blames the docs, but not for a missing resource", () => {
  const session = (sample: string, path: string, method: string) =>
    gradeSession(
      productSession(
        [home, reads("/jobs", `Jobs\n\n${sample}`), sends(method, api + path, 404, ""), finishes("goal_not_met")],
        { outcome: "goal_not_met" },
      ),
    );
  const { lost, recommendations, outcome } = session(`curl -d name=nightly ${api}/v1/job`, "/v1/job", "POST");
  expect(outcome).toBe("goal_not_met");
  expect(recommendations).toMatchObject([
    { evidence: { url: `${docs}/jobs`, line: 3, found: "/v1/job", expected: null } },
  ]);
  expect(lost).toMatchObject({ agent: 0 });
  expect(lost!.fixes).toBeGreaterThan(0);
  for (const other of [
    session(`curl ${api}/v1/jobs/sample-id`, "/v1/jobs/sample-id", "GET"),
    session(`curl -d name=nightly ${api}/v1/jobs`, "/v1/job", "POST"),
  ])
    expect(other.recommendations).toEqual([]);
});

describe("a success check", () => {
  const check = (status: Check["status"], invariant?: true): Check => ({
    ...{ id: "declared", group: "declared", status, share: status === "pass" ? 1 : 0, weight: 10 },
    ...{ subject: `${api}/v1/jobs 200`, url: `${api}/v1/jobs`, line: null, message: "", fix: null, quote: null },
    ...(invariant && { invariant }),
  });
  const made =
    (when: "before" | "after", status: Check["status"], invariant?: true) =>
    (callId: string): AgentEvent[] => [
      { type: "tool_call", id: callId, tool: "check_declared", input: { checks: 1 } },
      {
        type: "tool_result",
        id: callId,
        tool: "check_declared",
        ok: status === "pass",
        output: { when },
        checks: [check(status, invariant)],
      },
    ];
  test.each<[string, Check["status"] | null, Check["status"], true | undefined, string, string]>([
    ["failed before and passed after", "fail", "pass", undefined, "succeeded", "goal"],
    ["failed before and after", "fail", "fail", undefined, "goal_not_met", "goal"],
    ["held before", "pass", "pass", undefined, "not_judged", "conduct_only"],
    ["was not made before", null, "pass", undefined, "not_judged", "conduct_only"],
    ["is an invariant and held", "pass", "pass", true, "succeeded", "goal"],
    ["is an invariant and was broken", "pass", "fail", true, "goal_not_met", "goal"],
  ])("decides the outcome if it %s", (_, before, after, invariant, outcome, scope) => {
    const steps = [
      ...(before ? [made("before", before, invariant)] : []),
      home,
      create,
      made("after", after, invariant),
    ];
    const grade = gradeSession(productSession(steps));
    expect(grade).toMatchObject({ outcome, scope });
    // The service's own checks don't count as calls of the agent.
    expect(grade.metrics).toMatchObject({ toolCalls: 2, errors: 0 });
    expect(grade.dimensions.map(({ name }) => name)).not.toContain("Error recovery");
  });
});
