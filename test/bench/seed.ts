import pino from "pino";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { createKey } from "../../src/auth/keys.ts";
import { createOrg } from "../../src/auth/orgs.ts";
import { readConfig } from "../../src/config/config.ts";
import { createContext } from "../../src/context.ts";
import { closeDb, openDb } from "../../src/db/open.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { runExample } from "../../src/runs/schema.ts";

type Options = {
  /** Reports belong to the newest runs only: a page shows them, and a million of them would measure the disk. */
  withReport?: number;
  runsPerEval?: number;
  /** Name of the organization, and the first word of its slugs. */
  name?: string;
};

/** Fills a data folder with one organization, ten prompts and `count` completed runs. Answers with a key and the ids of what was made. */
export function seed(
  dataDir: string,
  count: number,
  { withReport = 10_000, runsPerEval = 1, name = "Bench" }: Options = {},
) {
  const db = openDb(dataDir);
  const now = Date.now;
  const newId = (atMs: number) => Bun.randomUUIDv7("hex", atMs);
  const ctx = createContext({
    db,
    config: readConfig({}),
    log: pino({ level: "silent" }),
    agents: { explorer: createExplorer({ version: "0.1.0" }) },
    baseUrl: () => "http://localhost:3000",
  });
  const org = createOrg(ctx, name).id;
  const { key } = createKey(ctx, org, "bench");
  const text = "Upload a file with the Python SDK and print its address.";
  const promptIds = Array.from(
    { length: 10 },
    (_, i) => createPrompt(ctx, org, { title: `Prompt ${i}`, text, endGoal: text }).id,
  );

  const { $client } = db;
  const insertRequest = $client.prepare(
    "insert into eval_requests (id, org_id, prompt_id, trigger, created_at) values (?, ?, ?, 'api', ?)",
  );
  const insertRun = $client.prepare(
    "insert into runs (id, org_id, prompt_id, eval_request_id, status, url_map, task, agent, agent_version, attempt, created_at, started_at, completed_at) values (?, ?, ?, ?, 'completed', '{}', ?, 'explorer', '0.1.0', 1, ?, ?, ?)",
  );
  const insertReport = $client.prepare(
    "insert into reports (id, org_id, run_id, prompt_id, attempt, slug, status, outcome, score, grade, key_finding, verdict, summary, coverage, metrics, dimensions, methodology, created_at) values (?, ?, ?, ?, 1, ?, 'published', 'not_judged', ?, 'B', ?, ?, ?, 0.45, ?, ?, ?, ?)",
  );
  const task = JSON.stringify({
    title: "Prompt",
    text,
    endGoal: text,
    startUrls: ["https://docs.example.com/"],
    declaredChecks: [],
    reviewBeforePublishing: false,
  });
  const report = runExample.report as NonNullable<typeof runExample.report>;
  const [dimension] = toStored(report.dimensions);
  const [summary, metrics, dimensions, methodology] = [
    report.summary,
    report.metrics,
    [dimension, { ...dimension, name: "Docs discoverability" }, { ...dimension, name: "Efficiency" }],
    report.methodology,
  ].map((value) => JSON.stringify(value)) as [string, string, string, string];
  const runIds: string[] = [];
  /** Those of the first prompt. */
  const evalRequestIds: string[] = [];
  const latest: string[] = [];
  const from = now() - count * 1000;
  $client.run("pragma synchronous = OFF");
  for (let i = 0; i < count; ) {
    $client.transaction(() => {
      for (const end = Math.min(i + 10_000, count); i < end; i++) {
        const at = from + i * 1000;
        const promptId = promptIds[i % 10] as string;
        const isNew = Math.floor(i / 10) % runsPerEval === 0;
        const request = isNew ? newId(at) : (latest[i % 10] as string);
        latest[i % 10] = request;
        if (isNew && i % 10 === 0) evalRequestIds.push(request);
        const run = newId(at);
        if (isNew) insertRequest.run(request, org, promptId, at);
        insertRun.run(run, org, promptId, request, task, at, at + 10, at + 900);
        if (i >= count - withReport) {
          runIds.push(run);
          insertReport.run(
            newId(at),
            org,
            run,
            promptId,
            `${name.toLowerCase()}-${i.toString(16).padStart(8, "0")}`,
            80 + (i % 15),
            report.keyFinding,
            report.verdict,
            summary,
            metrics,
            dimensions,
            methodology,
            at + 900,
          );
        }
      }
    })();
  }
  $client.run("analyze");
  $client.run("pragma wal_checkpoint(truncate)");
  closeDb(db);
  return { org, key, promptIds, runIds, evalRequestIds };
}

/** Dimensions as they are stored. */
export const toStored = <T extends { desc: string; weight: string }>(dimensions: T[]) =>
  dimensions.map(({ desc: _, weight, ...rest }) => ({ ...rest, weight: Number.parseFloat(weight) / 100 }));
