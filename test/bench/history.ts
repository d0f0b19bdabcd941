// Trends, friction and the docs map over 100,000 reports, beside the least that could answer from the same rows.
import { cpSync } from "node:fs";
import pino from "pino";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { createKey } from "../../src/auth/keys.ts";
import { createOrg } from "../../src/auth/orgs.ts";
import { readConfig } from "../../src/config/config.ts";
import { createContext } from "../../src/context.ts";
import { closeDb, openDb } from "../../src/db/open.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { createProvider } from "../../src/providers/providers.ts";
import { runExample } from "../../src/runs/schema.ts";
import type { load } from "./load.ts";
import { toStored } from "./seed.ts";

const promptCount = 10;
const pageCount = 300;
/** Things that a prompt's runs met in that time, and those that one of them meets. */
const thingCount = 400;
const thingsMet = 8;
const dayMs = 24 * 3600_000;
const days = 365;

/** Numbers in 0 to 1, the same each time. */
function createRandom() {
  let state = 42;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}

/** Fills a data folder with a provider, ten prompts and `count` published reports of a year, with all that is kept over them. */
export function seedHistory(dataDir: string, count: number) {
  const db = openDb(dataDir);
  const newId = (atMs: number) => Bun.randomUUIDv7("hex", atMs);
  const ctx = createContext({
    db,
    config: readConfig({}),
    log: pino({ level: "silent" }),
    agents: { explorer: createExplorer({ version: "0.1.0" }) },
    baseUrl: () => "http://localhost:3000",
  });
  const org = createOrg(ctx, "Bench").id;
  const { key } = createKey(ctx, org, "bench");
  const provider = createProvider(ctx, org, { name: "Acme", docsUrl: "https://docs.example.com/" });
  const promptIds = Array.from(
    { length: promptCount + 1 },
    (_, i) =>
      createPrompt(ctx, org, {
        text: "Upload a file.",
        ...(i === promptCount ? { isCanary: true } : { targetProviderId: provider.id }),
      }).id,
  );
  const random = createRandom();
  const { $client } = db;
  const insert = (table: string, names: string) =>
    $client.prepare(`insert into ${table} (${names}) values (${names.replaceAll(/\w+/g, "?")})`);
  const insertRequest = insert("eval_requests", "id, org_id, prompt_id, trigger, created_at");
  const insertRun = insert(
    "runs",
    "id, org_id, prompt_id, eval_request_id, status, url_map, task, agent, agent_version, attempt, created_at, started_at, completed_at",
  );
  const insertReport = insert(
    "reports",
    "id, org_id, run_id, prompt_id, attempt, slug, status, outcome, score, grade, key_finding, verdict, summary, coverage, metrics, dimensions, methodology, created_at",
  );
  const insertPoint = insert(
    "friction_points",
    "id, org_id, report_id, prompt_id, position, fingerprint, severity, phase, category, title, description, url, events, preconditions",
  );
  const insertLife = insert(
    "friction_lifecycles",
    "org_id, prompt_id, place, fingerprint, report_id, severity, state, first_seen_at, last_seen_at, met, reached, page, met_by, preconditions, life",
  );
  const insertDay = insert(
    "score_days",
    "org_id, prompt_id, day, agent, version, model, methodology, times, scores, seconds, costs_usd, met",
  );
  const insertPage = insert(
    "page_months",
    "org_id, prompt_id, month, agent, page, url, runs, reads, misses, guesses, errors, given, llms_txt, sitemap, link, search, guessed",
  );
  const insertNamed = insert("listed_pages", "org_id, prompt_id, page, url, llms_txt_at, sitemap_at, link_at");
  const report = runExample.report as NonNullable<typeof runExample.report>;
  const [task, summary, metrics, dimensions, methodology] = [
    {
      title: "Prompt",
      text: "Upload a file.",
      endGoal: null,
      startUrls: [],
      declaredChecks: [],
      reviewBeforePublishing: false,
    },
    report.summary,
    report.metrics,
    toStored(report.dimensions),
    report.methodology,
  ].map((value) => JSON.stringify(value)) as [string, string, string, string, string];
  const severities = ["high", "medium", "low"];
  const states = ["new", "open", "fixed", "fixed", "regressed"];
  const url = (page: number) => `https://docs.example.com/guide/page-${page}`;
  const begin = Math.floor(Date.now() / dayMs) * dayMs - days * dayMs;
  const perDay = new Map<string, number[]>();
  const lives = new Map<string, { first: number; last: number; report: string; met: number }>();
  const slugs: string[] = [];
  const evalRequestIds: string[] = [];
  $client.run("pragma synchronous = OFF");
  for (let i = 0; i < count; ) {
    $client.transaction(() => {
      for (const end = Math.min(i + 5000, count); i < end; i++) {
        const at = begin + Math.floor((i / count) * days * dayMs);
        // One in twenty is the canary's.
        const p = i % 20 === 0 ? promptCount : i % promptCount;
        const promptId = promptIds[p] as string;
        const [request, run, id] = [newId(at), newId(at), newId(at)];
        const score = Number((75 + p - (p < 5 && i > count * 0.8 ? 6 : 0) + 8 * (random() - 0.5)).toFixed(1));
        const slug = `prompt-${i.toString(16).padStart(8, "0")}`;
        insertRequest.run(request, org, promptId, "api", at);
        // One in a thousand is of another agent.
        const agent = i % 1000 === 7 ? "codex" : "explorer";
        insertRun.run(
          run,
          org,
          promptId,
          request,
          "completed",
          "{}",
          task,
          agent,
          "0.1.0",
          1,
          at,
          at,
          at + 900 + (i % 60_000),
        );
        insertReport.run(
          id,
          org,
          run,
          promptId,
          1,
          slug,
          "published",
          "not_judged",
          score,
          "B",
          report.keyFinding,
          report.verdict,
          summary,
          0.45,
          metrics,
          dimensions,
          methodology,
          at,
        );
        if (i > count - 1000) {
          slugs.push(slug);
          evalRequestIds.push(request);
        }
        const day = Math.floor(at / dayMs) * dayMs;
        perDay.set(`${p} ${day}`, [...(perDay.get(`${p} ${day}`) ?? []), score]);
        for (let position = 0; position < thingsMet; position++) {
          const thing = Math.floor(((i / count) * 0.9 + 0.1 * random()) * thingCount);
          const fingerprint = (p * thingCount + thing).toString(16).padStart(16, "0");
          const life = lives.get(fingerprint) ?? { first: at, last: at, report: id, met: 0 };
          if (life.met > 0 && life.report === id) continue;
          lives.set(fingerprint, { ...life, last: at, report: id, met: life.met + 1 });
          insertPoint.run(
            newId(at),
            org,
            id,
            promptId,
            position,
            fingerprint,
            severities[thing % 3] ?? "low",
            "discovery",
            "dead_link",
            `Dead link on page ${thing}`,
            "A link leads nowhere.",
            url(thing % pageCount),
            "[1,2]",
            "[]",
          );
        }
      }
    })();
  }
  $client.transaction(() => {
    for (const [at, scores] of perDay) {
      const [p, day] = at.split(" ").map(Number) as [number, number];
      const listed = JSON.stringify(scores);
      const others = JSON.stringify(scores.map(() => 1.4));
      insertDay.run(
        org,
        promptIds[p] ?? "",
        day,
        "explorer",
        "0.1.0",
        "",
        methodology,
        JSON.stringify(scores.map((_, i) => Math.floor((i / scores.length) * dayMs))),
        listed,
        others,
        others,
        JSON.stringify(scores.map(() => null)),
      );
    }
    for (const [fingerprint, { first, last, report, met }] of lives) {
      const n = Number.parseInt(fingerprint, 16);
      const evaluations = Array.from({ length: 30 }, (_, i) => ({
        id: newId(first + i),
        at: first + i,
        met: 1,
        passed: 1,
        byModel: false,
      }));
      const before = { state: "open", met, of: met, missed: 0, reached: met * 2, byModel: false, fixedAt: null };
      const life = JSON.stringify({ before, beforeId: "", evaluations });
      insertLife.run(
        org,
        promptIds[Math.floor(n / thingCount)] ?? "",
        "",
        fingerprint,
        report,
        severities[n % 3] ?? "low",
        states[n % 5] ?? "open",
        first,
        last,
        met,
        met * 2,
        url(n % pageCount),
        '{"explorer ":""}',
        `["tested ${url(n % pageCount)}"]`,
        life,
      );
    }
    for (const promptId of promptIds)
      for (let page = -1; page < pageCount; page++) {
        const address = page < 0 ? "" : url(page);
        if (page >= 0) insertNamed.run(org, promptId, address, address, begin + days * dayMs, null, null);
        for (let month = 0; month < 13 && page < pageCount * 0.8; month++) {
          const date = new Date(begin);
          const at = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + month, 1);
          insertPage.run(
            org,
            promptId,
            at,
            "explorer",
            address,
            address,
            40,
            60,
            2,
            page % 9 === 0 ? 2 : 0,
            3,
            0,
            20,
            0,
            40,
            0,
            0,
          );
        }
      }
  })();
  $client.run("analyze");
  $client.run("pragma wal_checkpoint(truncate)");
  closeDb(db);
  return { key, org, promptIds, providerId: provider.id, slugs, evalRequestIds };
}

type Shot = Parameters<typeof load>[1];

/** What the bench lends: how it starts a program, compares two, and where data may lie. */
type Bench = {
  startService: (dataDir: string) => Promise<{ url: string; stop: () => Promise<void> }>;
  startFloor: (file: string, dataDir: string) => Promise<{ url: string; stop: () => Promise<void> }>;
  compare: (
    what: string,
    aim: string,
    urls: { ours: string; floor: string },
    shot: Shot,
    connections: number,
  ) => Promise<number>;
  folder: () => string;
};

/** What is kept over 100,000 reports, asked for by one caller: p99 is that of a single answer. */
export async function benchHistory({ startService, startFloor, compare, folder }: Bench): Promise<void> {
  const count = 100_000;
  const dataDir = folder();
  const { key, promptIds, providerId } = seedHistory(dataDir, count);
  const floorDir = folder();
  cpSync(dataDir, floorDir, { recursive: true });
  const [ours, floor] = [await startService(dataDir), await startFloor("history-floor.ts", floorDir)];
  const headers = { authorization: `Bearer ${key}` };
  const shots: [string, string][] = [
    ["Trend of one prompt by week", `/api/v1/trends?promptId=${promptIds[3]}`],
    ["Trend of all prompts by month", "/api/v1/trends?interval=month"],
    ["Friction of a prompt", `/api/v1/friction?promptId=${promptIds[3]}`],
    ["Friction of a provider of 10 prompts", `/api/v1/friction?providerId=${providerId}`],
    ["Docs map of a provider", `/api/v1/providers/${providerId}/docs-map`],
  ];
  for (const [what, path] of shots)
    await compare(
      `${what}, ${count.toLocaleString("en")} reports`,
      "≥ 50%, p99 < 100 ms",
      { ours: ours.url, floor: floor.url },
      () => ({ method: "GET", path, headers }),
      1,
    );
  await ours.stop();
  await floor.stop();
}

/** Makes the newest reports of a prompt 20 points worse, so that its score changed. */
export function seedChange(dataDir: string, promptId: string): string {
  const db = openDb(dataDir);
  db.$client
    .query(
      "update reports set score = max(0, score - 20) where id in (select id from reports where prompt_id = ? order by run_id desc limit 20)",
    )
    .run(promptId);
  closeDb(db);
  return promptId;
}
