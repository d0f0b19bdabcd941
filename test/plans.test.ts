import { expect, spyOn, test } from "bun:test";
import { rmSync } from "node:fs";
import { compareSides } from "../src/comparisons/compare.ts";
import { closeDb } from "../src/db/open.ts";
import { getGate, listGates } from "../src/gates/gates.ts";
import { advanceGates } from "../src/gates/progress.ts";
import { requestGate } from "../src/gates/requests.ts";
import { getMatrix } from "../src/matrix/matrix.ts";
import { updatePrompt } from "../src/prompts/prompts.ts";
import type { ReportSort } from "../src/reports/lists.ts";
import { listReports } from "../src/reports/lists.ts";
import { getReport } from "../src/reports/reports.ts";
import type { ReportFilter } from "../src/reports/schema.ts";
import { getEvalRequest, listEvalRequests } from "../src/runs/evals.ts";
import { listAttempts } from "../src/runs/runs.ts";
import { seed } from "./bench/seed.ts";
import { testApp } from "./support/app.ts";
import { emptyFolder } from "./support/executable.ts";

/** Whether a line of a plan is about the condition that hides deleted rows, which every query has. */
const isOfDeletions = (detail: string) => /deleted_prompts|BLOOM FILTER ON prompts/.test(detail);

test("computations over stored reports use indexes, and scan no table", async () => {
  const dataDir = emptyFolder();
  const { org, promptIds, evalRequestIds } = seed(dataDir, 3000, { withReport: 3000, runsPerEval: 5 });
  const app = testApp({ dataDir });
  const { ctx } = app.service;
  const asked = new Set<string>();
  const { $client } = app.db;
  const prepare = $client.prepare.bind($client);
  const spy = spyOn($client, "prepare").mockImplementation(((sql: string) => {
    asked.add(sql);
    return prepare(sql);
  }) as typeof $client.prepare);
  const [promptId = ""] = promptIds;
  const [base = "", head = ""] = evalRequestIds.slice(-2);
  expect(compareSides(ctx, org, { of: [base] }, { of: [head] }).evidence.sides.map(({ n }) => n)).toEqual([5, 5]);
  expect(compareSides(ctx, org, { of: ["baseline"] }, { of: [promptId] }).base.runs).toBe(10);
  const [report] = getEvalRequest(ctx, org, head).runs;
  expect(getReport(ctx, org, report?.report?.slug ?? "").baseline).toMatchObject({ kind: "window", n: 10 });
  expect(listEvalRequests(ctx, org, { promptId }, { limit: 20, offset: 0 }).items.length).toBe(20);
  expect(listAttempts(ctx, org, report?.runId ?? "")).toEqual([]);
  const side = { limit: 20, offset: 0 };
  expect(getMatrix(ctx, org, { since: "2020-01-01" }, side).total).toBe(10);
  expect(getMatrix(ctx, org, { evalRequestId: head }, side).prompts[0]?.cells[0]?.n).toBe(5);
  const gate = await requestGate(ctx, org, {
    promptId,
    urlMap: { "docs.example.com": "https://x.example" },
  });
  app.db.$client.run(
    "update runs set status = 'failed', failure_cause = 'timeout', failure_code = 'server_time_limit', failure_detail = 'x', completed_at = 1 where status = 'pending'",
  );
  await advanceGates(ctx);
  expect(listGates(ctx, org, { promptId }, { limit: 20, offset: 0 }).items.map(({ status }) => status)).toEqual([
    "error",
  ]);
  expect(getGate(ctx, org, gate.id).status).toBe("error");
  updatePrompt(ctx, org, promptId, { baselineRequestId: head });
  spy.mockRestore();

  const scans = [...asked]
    // Friction is only read if there are reports.
    .filter((sql) => /^(select|update|with)/i.test(sql) && !/where \(?false/.test(sql))
    .flatMap((sql) =>
      $client
        .query<{ detail: string }, []>(`explain query plan ${sql.replaceAll(/\?\d*/g, "null")}`)
        .all()
        .filter(
          ({ detail }) =>
            // The plan lists the tables of the view `attempts` by themselves.
            /^SCAN (?!CONSTANT ROW|\(subquery|json_each|attempts$)/.test(detail) &&
            !/USING (COVERING )?INDEX/.test(detail),
        )
        .map(({ detail }) => `${detail}: ${sql}`),
    );
  expect(scans).toEqual([]);
  expect(asked.size).toBeGreaterThan(15);
  expect([...asked].filter((sql) => /from "attempts"/.test(sql)).length).toBe(2);
  closeDb(app.db);
  rmSync(dataDir, { recursive: true });
});

test("each list of reports is selected and counted with one index, with and without statistics", () => {
  const dataDir = emptyFolder();
  const { org, promptIds } = seed(dataDir, 3000, { withReport: 3000 });
  const app = testApp({ dataDir });
  const { $client } = app.db;
  $client.run("update reports set agent = 'codex' where rowid % 300 = 0");
  const promptId = promptIds[3];
  const lists: [filter: ReportFilter & { sort?: ReportSort }, selected: string, counted: string | null][] = [
    // The reports of prompts are already counted.
    [{}, "filtered", null],
    [{ promptId, status: "published" }, "filtered", null],
    [{ outcome: "not_judged" }, "filtered", ""],
    [{ promptId }, "filtered", null],
    [{ promptId, outcome: "not_judged", minScore: 60, scope: "docs_only" }, "filtered", "by_prompt"],
    [{ agent: "explorer" }, "by_agent", "by_agent"],
    [{ agent: "codex" }, "by_agent", "by_agent"],
    [{ agent: "codex", sort: "-score" }, "by_score", "by_agent"],
    [{ agent: "explorer", outcome: "not_judged", sort: "created" }, "by_agent", "by_agent"],
    [{ promptId, agent: "explorer" }, "by_agent", "by_prompt"],
    [{ promptId, agent: "explorer", sort: "score" }, "by_score", "by_prompt"],
  ];
  const list = (filter: ReportFilter & { sort?: ReportSort }, offset = 1) => {
    const asked: string[] = [];
    const prepare = $client.prepare.bind($client);
    const spy = spyOn($client, "prepare").mockImplementation(((sql: string) => {
      asked.push(sql);
      return prepare(sql);
    }) as typeof $client.prepare);
    const { items } = listReports(app.service.ctx, org, filter, { limit: 2, offset });
    spy.mockRestore();
    return { items: items.length, asked };
  };
  const indexOf = (sql: string) => {
    const plan = $client
      .query<{ detail: string }, []>(`explain query plan ${sql.replaceAll(/\?\d*/g, "null")}`)
      .all()
      .filter(({ detail }) => !isOfDeletions(detail));
    const [index] = plan.map(({ detail }) => /^SEARCH reports USING COVERING INDEX reports_(\w+)/.exec(detail)?.[1]);
    return plan.length === 1 ? index : plan;
  };
  const check = () => {
    for (const [filter, selected, counted] of lists) {
      const { items, asked } = list(filter);
      expect(items).toBe(2);
      const selections = asked.flatMap((sql) => /(?<!not )in \((select .*) limit \?/.exec(sql)?.[1] ?? []);
      const count = asked.filter((sql) => sql.startsWith("select count"));
      expect({ filter, list: selections.map(indexOf), count: count.map(indexOf) }).toEqual({
        filter,
        list: [selected],
        count: counted === null ? [] : [counted || expect.any(String)],
      });
    }
  };
  check();
  $client.run("delete from sqlite_stat1");
  $client.run("analyze sqlite_schema");
  check();
  // The last page needs no count.
  expect(list({ agent: "none" }, 0)).toEqual({ items: 0, asked: [expect.stringContaining("limit ?")] });
  closeDb(app.db);
  rmSync(dataDir, { recursive: true });
});

test("each page of evaluations is found in one index, and its total is not counted", () => {
  const dataDir = emptyFolder();
  const { org, promptIds } = seed(dataDir, 3000);
  const app = testApp({ dataDir });
  const { $client } = app.db;
  const check = () => {
    for (const promptId of [undefined, promptIds[3]])
      for (const status of [undefined, "completed", "failed", "running", "pending", "superseded"] as const) {
        const asked: string[] = [];
        const prepare = $client.prepare.bind($client);
        const spy = spyOn($client, "prepare").mockImplementation(((sql: string) => {
          asked.push(sql);
          return prepare(sql);
        }) as typeof $client.prepare);
        const { items, total } = listEvalRequests(app.service.ctx, org, { promptId, status }, { limit: 2, offset: 1 });
        spy.mockRestore();
        const of = status === undefined || status === "completed";
        const name = [promptId && "prompt", status && "status"].filter(Boolean).join("_and_");
        expect({ name, status, items: items.length, total }).toEqual({
          name,
          status,
          items: of ? 2 : 0,
          total: of ? (promptId ? 300 : 3000) : 0,
        });
        const plans = asked
          .filter((sql) => /^select/.test(sql) && !/where \(?false|from "runs"|from "eval_counts"/.test(sql))
          .map((sql) =>
            $client
              .query<{ detail: string }, []>(`explain query plan ${sql.replaceAll(/\?\d*/g, "null")}`)
              .all()
              .filter(({ detail }) => !isOfDeletions(detail))
              .map(({ detail }) => detail.replace(/ \(.*/, ""))
              .sort(),
          );
        expect({ name, plans }).toEqual({
          name,
          plans: [
            [
              expect.stringContaining("LIST SUBQUERY"),
              `SEARCH eval_requests USING COVERING INDEX eval_requests_${name ? `by_${name}` : "newest"}`,
              "SEARCH eval_requests USING INDEX sqlite_autoindex_eval_requests_1",
              "SEARCH prompts USING INDEX sqlite_autoindex_prompts_1",
            ],
          ],
        });
      }
  };
  check();
  $client.run("delete from sqlite_stat1");
  $client.run("analyze sqlite_schema");
  check();
  closeDb(app.db);
  rmSync(dataDir, { recursive: true });
});

test("the inbox reads runs of at most an hour, and never those of a prompt or a week", async () => {
  const dataDir = emptyFolder();
  const { key } = seed(dataDir, 3000, { withReport: 3000 });
  const app = testApp({ dataDir });
  const { $client } = app.db;
  $client.run(
    "update runs set status = 'failed', failure_cause = 'timeout', failure_code = 'server_time_limit', failure_detail = 'x' where rowid < 2900 and rowid % 7 = 0",
  );
  const asked = new Set<string>();
  const prepare = $client.prepare.bind($client);
  const spy = spyOn($client, "prepare").mockImplementation(((sql: string) => {
    asked.add(sql);
    return prepare(sql);
  }) as typeof $client.prepare);
  const { body } = await app.send("GET", "/api/v1/inbox", { headers: { authorization: `Bearer ${key}` } });
  spy.mockRestore();
  expect(body.problems).toMatchObject([{ kind: "runs_failed", of: 3000, otherPrompts: { length: 9 } }]);
  const readsOf = () =>
    [...asked]
      .filter((sql) => /^select/.test(sql))
      .flatMap((sql) =>
        $client.query<{ detail: string }, []>(`explain query plan ${sql.replaceAll(/\?\d*/g, "null")}`).all(),
      )
      .flatMap(({ detail }) => /^(?:SEARCH|SCAN) run(?:s|_hours) .*/.exec(detail) ?? []);
  const bounded = [
    "SEARCH run_hours USING INDEX run_hours_failed (org_id=? AND from>?)",
    "SEARCH run_hours USING INDEX sqlite_autoindex_run_hours_1 (org_id=? AND prompt_id=? AND agent=? AND from>?)",
    "SEARCH run_hours USING INDEX sqlite_autoindex_run_hours_1 (org_id=? AND prompt_id=? AND agent=?)",
    "SEARCH runs USING COVERING INDEX runs_by_prompt (org_id=? AND prompt_id=? AND id>? AND id<?)",
    "SEARCH runs USING INDEX runs_failed (org_id=? AND prompt_id=? AND agent=? AND id>?)",
    "SEARCH runs USING INDEX runs_reserved (org_id=?)",
    "SEARCH runs USING INDEX runs_unfinished (org_id=?)",
  ];
  expect([...new Set(readsOf())].sort()).toEqual(bounded);
  $client.run("delete from sqlite_stat1");
  $client.run("analyze sqlite_schema");
  expect([...new Set(readsOf())].sort()).toEqual(bounded);
  closeDb(app.db);
  rmSync(dataDir, { recursive: true });
});
