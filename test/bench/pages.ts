// Time to the first byte of each page of an organization with 100,000 runs, and what it weighs on the wire.
import pino from "pino";
import { readConfig } from "../../src/config/config.ts";
import { createContext } from "../../src/context.ts";
import { closeDb, openDb } from "../../src/db/open.ts";
import type { SessionId } from "../../src/reports/session-events.ts";
import { openSession } from "../../src/runs/session.ts";
import { seedExperiments, usualSize } from "../support/many-experiments.ts";
import { seedChange, seedHistory } from "./history.ts";
import { median, percentile } from "./load.ts";

/** What the bench lends: how it starts the service, writes a row, and where data may lie. */
type Bench = {
  startService: (dataDir: string) => Promise<{ url: string; stop: () => Promise<void> }>;
  row: (what: string, ours: string, floor: string, ratio: string, aim: string) => void;
  folder: () => string;
  /** Starts a floor: a file of this folder. */
  startFloor: (file: string, dataDir: string) => Promise<{ url: string; stop: () => Promise<void> }>;
};

const count = 100_000;
const eventCount = 20_000;
const asked = 40;

/** The newest reports, the last of which gets a session. */
function seedSession(dataDir: string, slug: string): string {
  const db = openDb(dataDir);
  const run = db.$client
    .query<{ id: string; orgId: string }, [string]>(
      "select runs.id, runs.org_id as orgId from runs join reports on reports.run_id = runs.id where slug = ?",
    )
    .get(slug);
  if (!run) throw new Error(`no run has the report ${slug}`);
  const log = pino({ level: "silent" });
  const ctx = createContext({ db, config: readConfig({}), log, agents: {}, baseUrl: () => "http://localhost" });
  const id = { orgId: run.orgId, runId: run.id, attempt: 1 } as SessionId;
  const session = openSession(ctx, id, { secrets: [], mayWrite: () => true });
  for (let i = 0; i < eventCount; i++)
    session.append({ type: "thought", text: `Step ${i}: ${"words ".repeat(40)}`, by: "rule" }, "agent");
  session.close(new AbortController().signal);
  closeDb(db);
  return run.id;
}

const sorts = (...columns: string[]) => columns.flatMap((column) => [`sort=${column}`, `sort=-${column}`]);

/** A list with each of some queries. */
const filtered = (name: string, queries: string[]) =>
  queries.map((query): [string, string] => [`${name}, ${query.replace(/=[0-9a-f-]{36}/, "")}`, `/${name}?${query}`]);

/** One page after the other, one request at a time, as a person at this machine asks. */
export async function benchPages(bench: Bench): Promise<void> {
  await benchExperiments(bench);
  const { startService, row, folder } = bench;
  const dataDir = folder();
  const { key, promptIds, providerId, slugs } = seedHistory(dataDir, count);
  const [slug, ...others] = slugs.toReversed() as [string, ...string[]];
  const runId = seedSession(dataDir, slug);
  const changedPrompt = seedChange(dataDir, promptIds[8] as string);
  const service = await startService(dataDir);
  const headers = { authorization: `Bearer ${key}`, accept: "text/html", "accept-encoding": "gzip" };
  const get = (path: string) => fetch(service.url + path, { headers, decompress: false });
  const print = (7 * 400 + 390).toString(16).padStart(16, "0");
  const prompt = promptIds[7];
  const pages: [name: string, path: string][] = [
    ["home", "/"],
    ["prompts", "/prompts"],
    ...filtered("prompts", [
      "search=upload",
      "status=all",
      "status=paused",
      "tag=none",
      ...sorts("change", "title", "score", "next"),
    ]),
    ["a prompt", `/prompts/${prompt}`],
    ["why a score changed", `/prompts/${changedPrompt}/why`],
    ["runs", "/runs"],
    ...filtered("runs", [
      `promptId=${prompt}`,
      "status=completed",
      "status=failed",
      "trigger=api",
      "trigger=mcp",
      "agent=explorer",
      "agent=codex",
      ...sorts("created", "duration"),
      `promptId=${prompt}&sort=-duration`,
      `promptId=${prompt}&status=failed&trigger=mcp`,
    ]),
    ["a run", `/runs/${runId}`],
    ["reports", "/reports"],
    ...filtered("reports", [
      `promptId=${prompt}`,
      "status=published",
      "status=draft",
      "outcome=succeeded",
      "outcome=not_judged",
      "agent=explorer",
      "agent=codex",
      "best=C",
      "worst=B",
      "offset=5000",
      ...sorts("score", "created"),
      "agent=codex&sort=-score",
      `promptId=${prompt}&worst=B`,
      `promptId=${prompt}&agent=explorer&sort=score`,
    ]),
    ["a report", `/reports/${slug}`],
    ["a session of 20,000 events", `/reports/${slug}/session`],
    ["the end of a session of 20,000 events", `/reports/${slug}/session?fromSeq=${eventCount - 50}`],
    ["compare 2 reports", `/compare?slugs=${slug},${others[0]}`],
    ["compare 10 reports", `/compare?slugs=${[slug, ...others.slice(0, 9)].join()}`],
    ["trends", "/trends"],
    ["trends of a prompt", `/trends?promptId=${prompt}`],
    ["friction", `/friction?promptId=${prompt}`],
    ...filtered("friction", [
      `providerId=${providerId}`,
      ...sorts("severity", "runs", "cost", "seen").map((sort) => `promptId=${prompt}&${sort}`),
    ]),
    ["a friction point", `/friction/${print}?promptId=${prompt}`],
    ["gates", "/gates"],
    ["search", "/search?q=upload"],
    ["providers", "/providers"],
    ["a docs map", `/providers/${providerId}`],
    ["settings", "/settings"],
    ["API keys", "/settings/keys"],
  ];
  for (const [name, path] of pages) {
    const times: number[] = [];
    let bytes = 0;
    for (let i = 0; i < asked; i++) {
      const begun = performance.now();
      const response = await get(path);
      times.push(performance.now() - begun);
      bytes = (await response.arrayBuffer()).byteLength;
      if (!response.ok) throw new Error(`${path}: ${response.status}`);
    }
    row(
      `Page: ${name}, ${count.toLocaleString("en")} runs`,
      `first byte ${median(times).toFixed(1)} ms, ${(bytes / 1000).toFixed(0)} KB`,
      "",
      "",
      "< 30 ms, < 100 KB",
    );
  }
  await service.stop();
}

/** Requests of each page of experiments: p99 needs more than the median. */
const askedForExperiments = 200;

/** The pages of 100 experiments with 5 arms over 20 prompts, beside a server that sends the same bytes after it read the rows that they are made of. */
async function benchExperiments({ startService, startFloor, row, folder }: Bench): Promise<void> {
  const dataDir = folder();
  const { key, ids } = await seedExperiments(dataDir, usualSize);
  const service = await startService(dataDir);
  const floor = await startFloor("experiments-floor.ts", dataDir);
  const timesOf = async (url: string) => {
    const times: number[] = [];
    for (let i = 0; i < askedForExperiments; i++) {
      const begun = performance.now();
      const response = await fetch(url, { headers: { authorization: `Bearer ${key}`, accept: "text/html" } });
      await response.arrayBuffer();
      times.push(performance.now() - begun);
      if (!response.ok) throw new Error(`${url}: ${response.status}`);
    }
    return { p50: median(times), p99: percentile(times, 0.99) };
  };
  const pages: [name: string, path: string][] = [
    ["experiments", "/experiments"],
    ["an experiment of 500 runs", `/experiments/${ids[0]}`],
    ["an experiment that is running", `/experiments/${ids.at(-1)}`],
  ];
  for (const [name, path] of pages) {
    const [ours, least] = [await timesOf(service.url + path), await timesOf(floor.url + path)];
    row(
      `Page: ${name}, 100 experiments`,
      `p50 ${ours.p50.toFixed(1)} ms, p99 ${ours.p99.toFixed(1)} ms`,
      `p50 ${least.p50.toFixed(1)} ms, p99 ${least.p99.toFixed(1)} ms`,
      (ours.p50 / least.p50).toFixed(1),
      "p99 < 100 ms",
    );
  }
  await floor.stop();
  await service.stop();
}
