import { expect, spyOn, test } from "bun:test";
import { rmSync } from "node:fs";
import { closeDb } from "../src/db/open.ts";
import { seed } from "./bench/seed.ts";
import { testApp } from "./support/app.ts";
import { emptyFolder } from "./support/executable.ts";

test("computations over stored reports use indexes, and scan no table", async () => {
  const dataDir = emptyFolder();
  const { org, promptIds, evalRequestIds } = seed(dataDir, 3000, { withReport: 3000, runsPerEval: 5 });
  const app = testApp({ dataDir });
  const { compare, evals, gates, reports, prompts } = app.service;
  const asked = new Set<string>();
  const { $client } = app.db;
  const prepare = $client.prepare.bind($client);
  const spy = spyOn($client, "prepare").mockImplementation(((sql: string) => {
    asked.add(sql);
    return prepare(sql);
  }) as typeof $client.prepare);
  const [promptId = ""] = promptIds;
  const [base = "", head = ""] = evalRequestIds.slice(-2);
  expect(compare.compareSides(org, { of: [base] }, { of: [head] }).evidence.sides.map(({ n }) => n)).toEqual([5, 5]);
  expect(compare.compareSides(org, { of: ["baseline"] }, { of: [promptId] }).base.runs).toBe(10);
  const [report] = evals.getEvalRequest(org, head).runs;
  expect(reports.getReport(org, report?.report?.slug ?? "").baseline).toMatchObject({ kind: "window", n: 10 });
  expect(evals.listEvalRequests(org, { promptId }, { limit: 20, offset: 0 }).items.length).toBe(20);
  const gate = await gates.requestGate(org, {
    promptId,
    urlMap: { "docs.example.com": "https://x.example" },
    trigger: "api",
  });
  app.db.$client.run(
    "update runs set status = 'failed', failure_cause = 'timeout', failure_detail = 'x', completed_at = 1 where status = 'pending'",
  );
  await gates.tick();
  expect(gates.listGates(org, { promptId }, { limit: 20, offset: 0 }).items.map(({ status }) => status)).toEqual([
    "error",
  ]);
  expect(gates.getGate(org, gate.id).status).toBe("error");
  prompts.updatePrompt(org, promptId, { baselineRequestId: head });
  // Selective filters: only listed rows are read.
  const found = reports.listReports(org, { promptId, minScore: 94, outcome: "not_judged" }, { limit: 5, offset: 0 });
  expect([found.items.length, found.total]).toEqual([0, 0]);
  const filtered = [...asked].filter((sql) => sql.includes('+"reports"."prompt_id"'));
  expect(filtered.length).toBe(2);
  for (const sql of filtered)
    expect(
      $client
        .query<{ detail: string }, []>(`explain query plan ${sql.replaceAll("?", "null")}`)
        .all()
        .map(({ detail }) => detail),
    ).toContainEqual(expect.stringContaining("COVERING INDEX reports_filtered"));
  spy.mockRestore();

  const scans = [...asked]
    // Friction is only read if there are reports.
    .filter((sql) => /^(select|update|with)/i.test(sql) && !/where false$/.test(sql))
    .flatMap((sql) =>
      $client
        .query<{ detail: string }, []>(`explain query plan ${sql.replaceAll("?", "null")}`)
        .all()
        .filter(
          ({ detail }) =>
            /^SCAN (?!CONSTANT ROW|\(subquery|json_each)/.test(detail) && !/USING (COVERING )?INDEX/.test(detail),
        )
        .map(({ detail }) => `${detail}: ${sql}`),
    );
  expect(scans).toEqual([]);
  expect(asked.size).toBeGreaterThan(15);
  closeDb(app.db);
  rmSync(dataDir, { recursive: true });
}, 60_000);
