import { expect, test } from "bun:test";
import type { AgentEvent, EventSource } from "../src/agents/agent.ts";
import { updateOrg } from "../src/auth/orgs.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { openSession } from "../src/runs/session.ts";
import { testApp } from "./support/app.ts";
import { randomOf } from "./support/random.ts";
import { evaluation } from "./support/reports.ts";

const timeZone = "Asia/Kolkata";
const hourMs = 3600_000;

type App = ReturnType<typeof testApp>;

/** Stores the model calls of a run as its session does. */
async function spend({ service, a }: App, runId: string, calls: [source: EventSource, call: object][]) {
  const stop = new AbortController().signal;
  const session = { orgId: a.org, runId, attempt: 1 };
  const writer = openSession(service.ctx, session, { secrets: [], mayWrite: () => true });
  for (const [source, call] of calls)
    writer.append({ type: "usage", inputTokens: 1, outputTokens: 1, costUsd: null, ...call } as AgentEvent, source);
  await writer.close(stop);
}

/** An app with a history of two months, in which every run has several calls. `at` is the clock. */
async function withHistory() {
  let at = Date.UTC(2026, 9, 1, 0, 0);
  const app = testApp({ now: () => at });
  const { service, a } = app;
  updateOrg(service.ctx, a.org, { timeZone });
  const random = randomOf(7);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const prompts = ["Upload", "Refund", "Search"].map((title) =>
    createPrompt(service.ctx, a.org, {
      title,
      text: "See https://docs.test/",
      tags: title === "Search" ? [] : ["api"],
    }),
  );
  const sources = [
    { trigger: "schedule" },
    { trigger: "ci", requester: { keyId: "trust" } },
    { trigger: "api", requester: { keyId: a.apiKey.id } },
    { trigger: "mcp", requester: { keyId: a.apiKey.id } },
    { trigger: "web", requester: { personId: "olga" } },
    { trigger: "cli" },
  ] as const;
  while (at < Date.UTC(2026, 10, 20, 12, 0)) {
    at += Math.floor(random() * 48 * hourMs);
    const [run] = evaluation(app, pick(prompts).id, ["infrastructure: no route"], pick(sources), []);
    const model = pick(["small", "large"]);
    await spend(app, run?.runId ?? "", [
      ["gateway", { model, costUsd: random() }],
      ["gateway", { model, estimate: { inputTokens: 1, outputTokens: 1, costUsd: random() / 10 } }],
      ["runner", { model: "judge", costUsd: random() / 5 }],
      ["agent", { model: "claimed", costUsd: 100 }],
    ]);
  }
  return { app, prompts };
}

/** The cost of a period by the stored events alone. */
const countIndependently = ({ db }: App, from: number, until: number, by: string) =>
  Object.fromEntries(
    db.$client
      .query<{ key: string; usd: number }, [number, number]>(
        `select ${by} key, sum(coalesce(json_extract(e.data, '$.costUsd'), json_extract(e.data, '$.estimate.costUsd'))) usd
         from session_events e join runs r on r.id = e.run_id join eval_requests q on q.id = r.eval_request_id
         where e.type = 'usage' and e.source != 'agent' and e.at >= ? and e.at < ? group by 1`,
      )
      .all(from, until)
      .map(({ key, usd }) => [key, usd]),
  );

const triggerOf =
  "case q.trigger when 'web' then 'manual' when 'cli' then 'manual' when 'mcp' then 'api' else q.trigger end";
const independentKeys = {
  prompt: "r.prompt_id",
  agent: "r.agent",
  model: "json_extract(e.data, '$.model')",
  purpose: "iif(e.source = 'gateway', 'agent', 'judge')",
  requester: `coalesce('person:' || q.person_id, 'key:' || q.key_id, iif(q.trigger = 'schedule', 'schedule', 'operator'))`,
  trigger: triggerOf,
  day: "strftime('%Y-%m-%d', e.at / 1000 + 19800, 'unixepoch')",
};

test("every breakdown of a month adds up to its total and to what the events say", async () => {
  const { app, prompts } = await withHistory();
  const midnight = (month: number) => Date.UTC(2026, month, 1) - 5.5 * hourMs;
  for (const [month, from, until] of [
    ["2026-10", midnight(9), midnight(10)],
    ["2026-11", midnight(10), midnight(11)],
  ] as const) {
    const { status, body } = await app.send("GET", `/api/v1/spending?month=${month}`);
    expect([status, body.from]).toEqual([200, new Date(from).toISOString()]);
    expect(body.spentUsd).toBeGreaterThan(10);
    for (const [by, key] of Object.entries(independentKeys)) {
      const rows: { key: string; spentUsd: number; previousUsd: number }[] = body.breakdown[by];
      const counted = countIndependently(app, from, until, key);
      const own = rows.filter(({ spentUsd }) => spentUsd > 0);
      expect([by, own.map((row) => row.key).sort()]).toEqual([by, Object.keys(counted).sort()]);
      for (const row of own) expect(row.spentUsd).toBeCloseTo(counted[row.key] ?? 0, 4);
      expect(rows.reduce((sum, { spentUsd }) => sum + spentUsd, 0)).toBeCloseTo(body.spentUsd, 4);
      expect(rows.reduce((sum, { previousUsd }) => sum + previousUsd, 0)).toBeCloseTo(body.previous.spentUsd, 4);
    }
    expect(body.failedRuns.spentUsd).toBeCloseTo(body.spentUsd, 4);
    expect(body.failedRuns.mostExpensive).toHaveLength(10);
  }
  const { body } = await app.send("GET", "/api/v1/spending");
  expect(body.estimatedUsd).toBeGreaterThan(0);
  expect(body.breakdown.prompt.map(({ name }: { name: string }) => name).sort()).toEqual(
    prompts.map(({ title }) => title as string).sort(),
  );
  const csv = (await app.send("GET", "/api/v1/spending?format=csv")).body as string;
  const lines = csv.trim().split("\r\n").slice(1);
  expect(lines).toHaveLength(
    (Object.values(body.breakdown) as unknown[][]).reduce((sum, rows) => sum + rows.length, 0),
  );
  expect((await app.send("GET", "/api/v1/spending?month=2026-13")).status).toBe(400);
  const { body: ofB } = await app.send("GET", "/api/v1/spending", {
    headers: { authorization: `Bearer ${app.b.key}` },
  });
  expect([ofB.spentUsd, ofB.breakdown.prompt, ofB.failedRuns.runs]).toEqual([0, [], 0]);
}, 20_000);
