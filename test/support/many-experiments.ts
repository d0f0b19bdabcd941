import pino from "pino";
import { createKey } from "../../src/auth/keys.ts";
import { createOrg } from "../../src/auth/orgs.ts";
import { readConfig } from "../../src/config/config.ts";
import { createContext } from "../../src/context.ts";
import { closeDb, openDb } from "../../src/db/open.ts";
import { advanceExperiments } from "../../src/experiments/progress.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { runExample } from "../../src/runs/schema.ts";
import { normal, randomOf } from "./random.ts";

/** `repeats`: runs per prompt and arm. `running`: how many of the experiments, the newest, have not ended. */
type Size = { experiments: number; arms: number; prompts: number; repeats: number; running: number };

/** What 100 experiments of a team look like. */
export const usualSize: Size = { experiments: 100, arms: 5, prompts: 20, repeats: 5, running: 2 };

const pointsPerReport = 3;

/** Fills a data folder with experiments of random results, their runs, reports and friction points. The analyses are evald's own. */
export async function seedExperiments(dataDir: string, { experiments, arms, prompts, repeats, running }: Size) {
  const db = openDb(dataDir);
  const log = pino({ level: "silent" });
  const ctx = createContext({ db, config: readConfig({}), log, agents: {}, baseUrl: () => "http://localhost:3000" });
  const org = createOrg(ctx, "Experiments").id;
  const { key } = createKey(ctx, org, "bench");
  const promptIds = Array.from(
    { length: prompts },
    (_, i) => createPrompt(ctx, org, { title: `Prompt ${i}`, text: "Upload a file." }).id,
  );
  const { $client } = db;
  const insert = (table: string, names: string) =>
    $client.prepare(`insert into ${table} (${names}) values (${names.replaceAll(/\w+/g, "?")})`);
  const experiment = insert(
    "experiments",
    "id, org_id, title, arms, prompt_ids, triggering, repeats, seed, status, created_at",
  );
  const request = insert("eval_requests", "id, org_id, prompt_id, trigger, created_at");
  const run = insert(
    "runs",
    "id, org_id, prompt_id, eval_request_id, status, url_map, task, agent, agent_version, attempt, created_at, started_at, completed_at, spent_usd",
  );
  const armRun = insert("experiment_runs", "org_id, experiment_id, run_id, arm, block, treatment");
  const report = insert(
    "reports",
    "id, org_id, run_id, prompt_id, attempt, slug, status, outcome, score, grade, key_finding, verdict, summary, coverage, metrics, dimensions, methodology, created_at",
  );
  const point = insert(
    "friction_points",
    "id, org_id, report_id, prompt_id, position, fingerprint, severity, phase, category, title, description, url, events, preconditions",
  );
  const example = runExample.report as NonNullable<typeof runExample.report>;
  const task = JSON.stringify({
    title: "Prompt",
    text: "Upload a file.",
    endGoal: null,
    startUrls: [],
    declaredChecks: [],
  });
  const random = randomOf(1);
  const begin = Date.now() - 90 * 24 * 3600_000;
  const names = Array.from({ length: arms }, (_, i) => (i === 0 ? "baseline" : `arm ${i}`));
  const ids: string[] = [];
  $client.run("pragma synchronous = OFF");
  for (let i = 0; i < experiments; i++)
    $client.transaction(() => {
      let at = begin + i * 3600_000;
      const newId = () => Bun.randomUUIDv7("hex", at++);
      const id = newId();
      ids.push(id);
      const armsOf = names.map((name, n) => ({
        name,
        ...(n > 0 && { edits: { hidden: [`https://docs.example.com/${n}`], replacements: [] } }),
      }));
      const labels = { of: null, should: promptIds.slice(0, prompts / 2), shouldNot: promptIds.slice(prompts / 2) };
      experiment.run(
        id,
        org,
        `Experiment ${i}`,
        JSON.stringify(armsOf),
        JSON.stringify(promptIds),
        JSON.stringify(labels),
        repeats,
        i,
        "running",
        at,
      );
      for (let block = 0; block < repeats; block++)
        for (const [p, promptId] of promptIds.entries())
          for (const [n, arm] of names.entries()) {
            const [requestId, runId, reportId] = [newId(), newId(), newId()];
            const isEnded = i < experiments - running || block < repeats - 1;
            request.run(requestId, org, promptId, "api", at);
            run.run(
              runId,
              org,
              promptId,
              requestId,
              isEnded ? "completed" : "pending",
              "{}",
              task,
              "llm",
              "1",
              isEnded ? 1 : 0,
              at,
              isEnded ? at : null,
              isEnded ? at + 9000 : null,
              isEnded ? 0.02 : null,
            );
            const triggered = { skills: random() < 0.6 ? ["uploads"] : [], mcpServers: [] };
            armRun.run(
              org,
              id,
              runId,
              arm,
              block,
              isEnded ? JSON.stringify({ offered: true, used: true, met: null, triggered }) : null,
            );
            if (!isEnded) continue;
            const outcome = random() < 0.4 + 0.1 * n ? "succeeded" : "goal_not_met";
            const metrics = JSON.stringify({
              ...example.metrics,
              timeSeconds: 30 + 9 * random(),
              costUsd: 0.01 + random(),
            });
            const score = Math.min(100, Math.round(10 * normal(random, 50 + p + 2 * n, 8)) / 10);
            const slug = `run-${runId.slice(-12)}-${runId.slice(0, 8)}`;
            report.run(
              reportId,
              org,
              runId,
              promptId,
              1,
              slug,
              "published",
              outcome,
              score,
              "C",
              example.keyFinding,
              example.verdict,
              JSON.stringify(example.summary),
              0.5,
              metrics,
              "[]",
              JSON.stringify(example.methodology),
              at,
            );
            for (let position = 0; position < pointsPerReport; position++) {
              const fingerprint = Math.floor(20 * (position + random()))
                .toString(16)
                .padStart(16, "0");
              point.run(
                newId(),
                org,
                reportId,
                promptId,
                position,
                fingerprint,
                "low",
                "discovery",
                "dead_link",
                "Dead link",
                "A link leads nowhere.",
                "https://docs.example.com/a",
                "[1]",
                "[]",
              );
            }
          }
    })();
  await advanceExperiments(ctx);
  db.$client.run("analyze");
  closeDb(db);
  return { key, org, ids, promptIds };
}
