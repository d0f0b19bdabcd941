// How long another organization waits for a cheap read while one organization, or a stranger, sends as much as 64 clients can.
import { join } from "node:path";
import { createKey } from "../../src/auth/keys.ts";
import { createOrg } from "../../src/auth/orgs.ts";
import { readConfig } from "../../src/config/config.ts";
import { createContext } from "../../src/context.ts";
import { closeDb, openDb } from "../../src/db/open.ts";
import { createLog } from "../../src/log.ts";
import type { Flood } from "./flood.ts";
import { seedHistory } from "./history.ts";
import { percentile } from "./load.ts";

/** What the bench lends: how it starts the service, writes a row, and where data may lie. */
type Bench = {
  startService: (dataDir: string) => Promise<{ url: string; stop: () => Promise<void> }>;
  row: (what: string, ours: string, floor: string, ratio: string, aim: string) => void;
  folder: () => string;
};

const count = 20_000;
const clients = 64;
const seconds = 4;

/** Adds an organization without data. Returns a key of it. */
function addOrg(dataDir: string): string {
  const db = openDb(dataDir);
  const log = createLog({ logLevel: "silent", logFormat: "json" });
  const ctx = createContext({ db, config: readConfig({}), log, agents: {}, baseUrl: () => "http://localhost" });
  const { key } = createKey(ctx, createOrg(ctx, "Neighbor").id, "bench");
  closeDb(db);
  return key;
}

/** Latencies in milliseconds of one read after the other. */
async function probe(url: string, key: string): Promise<number[]> {
  const times: number[] = [];
  const until = performance.now() + seconds * 1000;
  while (performance.now() < until) {
    const startedAt = performance.now();
    const response = await fetch(`${url}/api/v1/whoami`, { headers: { authorization: `Bearer ${key}` } });
    await response.text();
    if (!response.ok) throw new Error(`the neighbor got ${response.status}`);
    times.push(performance.now() - startedAt);
    await Bun.sleep(3);
  }
  return times;
}

const toText = (times: number[]) =>
  `p50 ${percentile(times, 0.5).toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(1)} ms`;

/** The probe before and during each flood. `only`: names of floods; empty: all. */
export async function benchFairness({ startService, row, folder }: Bench, only: string[] = []): Promise<void> {
  const dataDir = folder();
  const { key, promptIds, slugs } = seedHistory(dataDir, count);
  const neighborKey = addOrg(dataDir);
  const service = await startService(dataDir);
  const { url } = service;
  const read = { method: "GET", headers: { authorization: `Bearer ${key}`, "accept-encoding": "gzip" } };
  const json = { "content-type": "application/json" };
  const write = { method: "POST", headers: { authorization: `Bearer ${key}`, ...json } };
  const call = (name: string, args: object) =>
    JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });
  const floods: Record<string, Omit<Flood, "url" | "connections">> = {
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
    exports: { ...read, path: "/api/v1/export" },
    comparisons: { ...read, path: `/api/v1/compare?slugs=${slugs.slice(0, 10).join()}` },
    "friction pages": { ...read, path: `/friction?promptId=${promptIds[3]}` },
    trends: { ...read, path: "/api/v1/trends?interval=day" },
  };
  await probe(url, neighborKey);
  for (const [name, flood] of Object.entries(floods)) {
    if (only.length > 0 && !only.includes(name)) continue;
    const alone = await probe(url, neighborKey);
    const order: Flood = { ...flood, url, connections: clients };
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
      `Read of another organization during ${name} of ${clients} clients`,
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
