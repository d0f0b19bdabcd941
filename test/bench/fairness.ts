// How long another organization waits for a cheap read while one organization, or a stranger, sends as much as 64 clients can.
import { join } from "node:path";
import { createKey } from "../../src/auth/keys.ts";
import { createOrg } from "../../src/auth/orgs.ts";
import { readConfig } from "../../src/config/config.ts";
import { createContext } from "../../src/context.ts";
import { closeDb, openDb } from "../../src/db/open.ts";
import { createLog } from "../../src/log.ts";
import type { Flood } from "./flood.ts";
import { seedChange, seedHistory } from "./history.ts";
import { percentile } from "./load.ts";

/** What the bench lends: how it starts the service, writes a row, and where data may lie. */
export type Bench = {
  startService: (dataDir: string, env: Record<string, string>) => Promise<{ url: string; stop: () => Promise<void> }>;
  row: (what: string, ours: string, floor: string, ratio: string, aim: string) => void;
  folder: () => string;
};

const count = 20_000;
const clients = 64;
const seconds = 4;

/** Adds an organization without data. Returns a key of it. */
export function addOrg(dataDir: string): string {
  const db = openDb(dataDir);
  const log = createLog({ logLevel: "silent", logFormat: "json" });
  const ctx = createContext({ db, config: readConfig({}), log, agents: {}, baseUrl: () => "http://localhost" });
  const { key } = createKey(ctx, createOrg(ctx, "Neighbor").id, "bench");
  closeDb(db);
  return key;
}

/** Gives a run a session of 2,000 events. Returns the run, and the slug of its report. */
function addSession(dataDir: string): { runId: string; slug: string } {
  const db = openDb(dataDir);
  const { $client } = db;
  const { runId, slug, org } = $client
    .query<{ runId: string; slug: string; org: string }, []>(
      "select run_id as runId, slug, org_id as org from reports order by id desc limit 1",
    )
    .get() as { runId: string; slug: string; org: string };
  const insert = $client.prepare(
    "insert into session_events (org_id, run_id, attempt, seq, at, t_ms, type, source, data) values (?, ?, 1, ?, ?, ?, 'thought', 'agent', ?)",
  );
  $client.transaction(() => {
    for (let seq = 0; seq < 2000; seq++)
      insert.run(org, runId, seq, Date.now(), seq, JSON.stringify({ text: "I read on. ".repeat(150), by: "rule" }));
  })();
  closeDb(db);
  return { runId, slug };
}

/** Latencies in milliseconds of one read after the other, for some seconds, or until something is over. */
export async function probe(url: string, key: string, isOver?: () => boolean): Promise<number[]> {
  const times: number[] = [];
  const until = performance.now() + seconds * 1000;
  while (isOver ? !isOver() : performance.now() < until) {
    const startedAt = performance.now();
    const response = await fetch(`${url}/api/v1/whoami`, { headers: { authorization: `Bearer ${key}` } });
    await response.text();
    if (!response.ok) throw new Error(`the neighbor got ${response.status}`);
    times.push(performance.now() - startedAt);
    await Bun.sleep(3);
  }
  return times;
}

export const toText = (times: number[]) =>
  `p50 ${percentile(times, 0.5).toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(1)} ms`;

/** The probe before and during each flood. `only`: names of floods; empty: all. */
export async function benchFairness({ startService, row, folder }: Bench, only: string[] = []): Promise<void> {
  const dataDir = folder();
  const { key, promptIds, slugs } = seedHistory(dataDir, count);
  const changedPrompt = seedChange(dataDir, promptIds[3] as string);
  const neighborKey = addOrg(dataDir);
  const { runId, slug } = addSession(dataDir);
  // Floods of sign-ins come from many networks.
  const service = await startService(dataDir, { EVALD_TRUST_PROXY: "1" });
  const { url } = service;
  const read = { method: "GET", headers: { authorization: `Bearer ${key}`, "accept-encoding": "gzip" } };
  const json = { "content-type": "application/json" };
  const write = { method: "POST", headers: { authorization: `Bearer ${key}`, ...json } };
  const call = (name: string, args: object) =>
    JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });
  const floods: Record<string, Omit<Flood, "url" | "connections"> & { connections?: number }> = {
    pages: { ...read, path: "/reports" },
    "long lists": { ...read, path: "/api/v1/reports?limit=1000" },
    lists: { ...read, path: "/api/v1/reports?limit=100" },
    evaluations: { ...read, path: "/api/v1/eval-requests?limit=100&status=completed" },
    "1 MB bodies": {
      ...write,
      path: "/api/v1/prompts",
      body: '{"title":"{piece}","text":1}',
      repeat: ["[", 900_000],
    },
    "bodies of objects": { ...write, path: "/api/v1/prompts", body: "[{piece}1]", repeat: ['{"a":1},', 120_000] },
    "bodies without a key": {
      method: "POST",
      headers: json,
      path: "/api/v1/oidc/exchange",
      body: "[{piece}1]",
      repeat: ["1,", 480_000],
    },
    "small bodies without a key": {
      method: "POST",
      headers: json,
      path: "/api/v1/oidc/exchange",
      body: "[{piece}1]",
      repeat: ["1,", 19_000],
    },
    "forms without a sign-in": {
      method: "POST",
      headers: { origin: url, "content-type": "application/x-www-form-urlencoded" },
      path: "/sign-in",
      body: "{piece}",
      repeat: ["a=1&", 1900],
    },
    "docs searches": {
      method: "GET",
      headers: {},
      path: `/docs/search?q=${"upload+file+agent+run+model+key+page+score+".repeat(2)}{n}`,
    },
    "docs pages": { method: "GET", headers: { "accept-encoding": "gzip" }, path: "/docs/benchmarks" },
    MCP: { ...write, path: "/api/mcp", body: call("get_friction_points", { promptId: promptIds[3] }) },
    writes: { ...write, path: "/api/v1/prompts", body: '{"title":"{n}","text":"{piece}"}', repeat: ["b", 1000] },
    "sign-ins": {
      method: "POST",
      headers: { origin: url, "content-type": "application/x-www-form-urlencoded" },
      path: "/sign-in",
      body: "email=u{n}%40e.example&password=aaaaaaaaaaaaaa",
    },
    "sign-ins of many networks": {
      method: "POST",
      headers: {
        origin: url,
        "content-type": "application/x-www-form-urlencoded",
        "x-forwarded-for": "{address}",
      },
      path: "/sign-in",
      body: "email=u{n}%40e.example&password=aaaaaaaaaaaaaa",
    },
    "exports within their limit": { ...read, path: "/api/v1/export", connections: 5 },
    exports: { ...read, path: "/api/v1/export" },
    comparisons: { ...read, path: `/api/v1/compare/reports?slugs=${slugs.slice(0, 10).join()}` },
    "comparisons of one prompt": {
      ...read,
      // Every tenth report is of the same prompt.
      path: `/api/v1/compare/reports?slugs=${slugs
        .filter((_, i) => i % 10 === 3)
        .slice(0, 10)
        .join()}`,
    },
    "event streams": { ...read, path: `/api/v1/runs/${runId}/events` },
    traces: { ...read, path: `/api/v1/reports/${slug}/trace?limit=500` },
    "searches of traces": { ...read, path: `/api/v1/reports/${slug}/trace?search=nothing` },
    "run pages": { ...read, path: `/runs/${runId}` },
    "session pages": { ...read, path: `/reports/${slug}/session` },
    Home: { ...read, path: "/" },
    Why: { ...read, path: `/prompts/${changedPrompt}/why` },
    inbox: { ...read, path: "/api/v1/inbox" },
    "friction pages": { ...read, path: `/friction?promptId=${promptIds[3]}` },
    trends: { ...read, path: "/api/v1/trends?interval=day" },
  };
  await probe(url, neighborKey);
  for (const [name, flood] of Object.entries(floods)) {
    if (only.length > 0 && !only.includes(name)) continue;
    const alone = await probe(url, neighborKey);
    const order: Flood = { connections: clients, ...flood, url };
    const sender = Bun.spawn([process.execPath, join(import.meta.dir, "flood.ts"), JSON.stringify(order)], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    });
    await Bun.sleep(1000);
    const during = await probe(url, neighborKey);
    sender.stdin.end();
    const counts = JSON.parse(await new Response(sender.stdout).text());
    await sender.exited;
    row(
      `Read of another organization during ${name} of ${order.connections} clients`,
      toText(during),
      toText(alone),
      `${(percentile(during, 0.99) / percentile(alone, 0.99)).toFixed(1)} ×`,
      "p99 ≤ 50 ms",
    );
    process.stderr.write(`  responses by status: ${JSON.stringify(counts)}\n`);
    await Bun.sleep(500);
  }
  await service.stop();
}
