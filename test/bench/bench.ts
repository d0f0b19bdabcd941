// `bun run bench`: what the service costs beside a hand-written floor, in one run on one machine. Figures are medians of interleaved repeats.
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { buildExecutable, call, executable } from "../support/executable.ts";
import { benchAgents } from "./agents.ts";
import { benchDeletions } from "./deletions.ts";
import { benchFairness } from "./fairness.ts";
import { benchField } from "./field.ts";
import { type Figure, toFigures, writeFigures } from "./figures.ts";
import { benchHistory } from "./history.ts";
import { benchJobs } from "./jobs.ts";
import { load, median } from "./load.ts";
import { mcp } from "./mcp.ts";
import { benchMetrics } from "./metrics.ts";
import { benchPages } from "./pages.ts";
import { benchReports } from "./reports.ts";
import { seed } from "./seed.ts";
import { benchSessions } from "./sessions.ts";
import { benchWorkers } from "./workers.ts";

const repeats = 20;
const seconds = 0.5;
const say = (text: string) => process.stderr.write(`${text}\n`);
const rows: Figure[] = [];
const row = (what: string, ours: string, floor: string, ratio: string, aim: string) => {
  rows.push([what, ours, floor, ratio, aim]);
  say(rows.at(-1)?.join(" | ") ?? "");
};

async function start(command: string[], env: Record<string, string>) {
  // A pipe would have to be read by the process that sends the load.
  const log = join(folder(), "stderr");
  const child = Bun.spawn(command, {
    env: { PATH: process.env.PATH ?? "", ...env },
    stderr: Bun.file(log),
    stdout: "ignore",
  });
  let url: string | undefined;
  while (!url) {
    const said = existsSync(log) ? readFileSync(log, "utf8") : "";
    if (child.exitCode !== null) throw new Error(`${command.join(" ")} ended: ${said}`);
    url = /listening on (http:\/\/\S+)/.exec(said)?.[1];
    // Looking without a pause would take one of few cores from what is measured.
    await Bun.sleep(1);
  }
  return {
    url,
    pid: child.pid,
    said: () => readFileSync(log, "utf8"),
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

const temporary: string[] = [];
const folder = () => {
  const path = mkdtempSync(join(tmpdir(), "evald-bench-"));
  temporary.push(path);
  return path;
};
const serviceEnv = (dataDir: string) => ({
  EVALD_DATA_DIR: dataDir,
  EVALD_PORT: "0",
  EVALD_WELCOME: "0",
  EVALD_CONCURRENCY: "1",
  EVALD_LOG_LEVEL: "info",
});
const rssMb = (pid: number) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

async function compare(
  what: string,
  aim: string,
  urls: { ours: string; floor: string },
  shot: Parameters<typeof load>[1],
  connections: number,
) {
  const rates = { ours: [] as number[], floor: [] as number[] };
  const p99 = { ours: [] as number[], floor: [] as number[] };
  for (const side of ["ours", "floor"] as const) await load(urls[side], shot, { connections, seconds: 0.5 });
  for (let i = 0; i < repeats; i++)
    for (const side of i % 2 ? (["ours", "floor"] as const) : (["floor", "ours"] as const)) {
      const result = await load(urls[side], shot, { connections, seconds });
      rates[side].push(result.rate);
      p99[side].push(result.p99);
    }
  const [ours, floor] = [median(rates.ours), median(rates.floor)];
  // Of neighbors in time, because the speed of a machine changes within minutes.
  const ratio = median(rates.ours.map((rate, i) => rate / (rates.floor[i] as number)));
  row(
    what,
    `${Math.round(ours)}/s, p99 ${median(p99.ours).toFixed(1)} ms`,
    `${Math.round(floor)}/s, p99 ${median(p99.floor).toFixed(1)} ms`,
    `${Math.round(ratio * 100)}%`,
    aim,
  );
  return ours;
}

/** A site that takes every request and answers none: runs begin and stay, so that accepting alone is measured. */
const silent = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  fetch: () => new Promise<Response>(() => {}),
});

async function api(count: number) {
  say(`seeding ${count} runs`);
  const dataDir = folder();
  const { key, promptIds, runIds } = seed(dataDir, count);
  const floorDir = folder();
  cpSync(dataDir, floorDir, { recursive: true });
  const ours = await start([executable, "serve"], {
    ...serviceEnv(dataDir),
    EVALD_ALLOW_PRIVATE: `127.0.0.1:${silent.port}`,
  });
  const floor = await start([process.execPath, join(import.meta.dir, "floor.ts"), floorDir], {});
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const urls = { ours: ours.url, floor: floor.url };
  const get = (path: string) => ({ method: "GET", path, headers });
  const someRun = (i: number) => get(`/api/v1/runs/${runIds[(i * 7919) % runIds.length]}`);
  for (const path of [someRun(1).path, "/api/v1/runs?limit=100&offset=0"]) {
    const [a, b] = await Promise.all(
      [ours, floor].map(async ({ url }) => (await (await fetch(url + path, { headers })).text()).replaceAll(url, "")),
    );
    if (a !== b) throw new Error(`the floor does not answer ${path} as the service does:\n${a}\n${b}`);
  }
  const result = { one: 0, list: 0 };
  const stored = `${count.toLocaleString("en")} runs`;
  result.one = await compare(`Get one run, ${stored}`, "≥ 92%", urls, someRun, 16);
  result.list = await compare(
    `List 100 runs, ${stored}`,
    "≥ 80%",
    urls,
    () => get("/api/v1/runs?limit=100&offset=0"),
    16,
  );
  const post = (i: number) => ({
    method: "POST",
    path: `/api/v1/prompts/${promptIds[i % promptIds.length]}/run`,
    headers,
    body: JSON.stringify({ urlMap: { "docs.example.com": silent.url.href } }),
  });
  if (count <= 100_000) await mcp({ start, compare, row }, ours.url, key, floorDir);
  await compare(`Start a run, 1 client, ${stored}`, "≥ 80%", urls, post, 1);
  await compare(`Start a run, 16 clients, ${stored}`, "≥ 60%", urls, post, 16);
  await compare(`Start a run, 32 clients, ${stored}`, "≥ 60%", urls, post, 32);
  await ours.stop();
  await floor.stop();
  return result;
}

async function startUp() {
  const times: number[] = [];
  let rss = 0;
  const dataDir = folder();
  for (let i = 0; i < 11; i++) {
    const begun = performance.now();
    const service = await start([executable, "serve"], serviceEnv(dataDir));
    await (await fetch(`${service.url}/healthz`)).text();
    // The first start makes the database; it is not one of those that are counted.
    if (i > 0) times.push(performance.now() - begun);
    if (i === 10) {
      // Memory is released at the first look at an idle process, after 10 seconds.
      await Bun.sleep(12_000);
      rss = rssMb(service.pid);
    }
    await service.stop();
  }
  row("Start to first response", `${median(times).toFixed(0)} ms`, "", "", "< 70 ms");
  row("Memory when idle", `${rss.toFixed(0)} MB`, "", "", "< 80 MB");
}

async function explorer() {
  const links = Array.from({ length: 8 }, (_, i) => `<li><a href="/page-${i}">Topic ${i}</a></li>`).join("");
  const pages = (path: string) =>
    `<!doctype html><html lang="en"><title>Page ${path}</title><main><h1>Page ${path}</h1><ul>${links}</ul><p>${"Words about this topic. ".repeat(200)}</p>${
      path === "/page-7"
        ? '<h2>Upload a file</h2><p>Upload a file with the SDK.</p><pre><code class="language-js">await acme.upload("a.txt");</code></pre>'
        : ""
    }</main></html>`;
  const site = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      if (pathname !== "/" && !/^\/page-\d$/.test(pathname)) return new Response("nothing here", { status: 404 });
      return new Response(pages(pathname), { headers: { "content-type": "text/html; charset=utf-8" } });
    },
  });
  const times: number[] = [];
  for (let i = 0; i < repeats; i++) {
    const begun = performance.now();
    const { code, stderr } = await call(["eval", site.url.href, "--goal", "Upload a file with the SDK", "--json"], {
      cwd: folder(),
    });
    if (code !== 0) throw new Error(stderr);
    times.push(performance.now() - begun);
  }
  row("evald eval, 9 pages, including process start", `${(median(times) / 1000).toFixed(2)} s`, "", "", "< 3 s");
  site.stop(true);
}

await buildExecutable();
say(
  `${cpus()[0]?.model}, ${cpus().length} cores, bun ${Bun.version}; medians of ${repeats} × ${seconds} s, 16 connections unless said`,
);
const startService = (dataDir: string, env: Record<string, string> = {}) =>
  start([executable, "serve"], { ...serviceEnv(dataDir), ...env });
const startFloor = (file: string, dataDir: string) =>
  start([process.execPath, join(import.meta.dir, file), dataDir], {});
const history = () => benchHistory({ startService, startFloor, compare, folder });

const pages = () => benchPages({ startService, startFloor, row, folder });
let small: Awaited<ReturnType<typeof api>> | undefined;
async function runs() {
  small = await api(100_000);
}
async function million() {
  small ??= await api(100_000);
  const large = await api(1_000_000);
  const ratio = `${(small.list / large.list).toFixed(2)} ×`;
  row("List 100 runs, time at 1,000,000 runs / time at 100,000", ratio, "", "", "≤ 1.2 ×");
}

const parts: Record<string, (only: string[]) => unknown> = {
  runs,
  million,
  reports: () => benchReports(row, folder()),
  jobs: () => benchJobs(row, folder),
  sessions: () => benchSessions({ start, row, folder, env: serviceEnv, executable }),
  workers: () => benchWorkers({ start, row, folder, env: serviceEnv, executable }),
  agents: () => benchAgents({ start, row, folder, env: serviceEnv, executable }),
  history,
  pages,
  fairness: (only) => benchFairness({ startService, row, folder }, only),
  deletions: () => benchDeletions({ startService, row, folder }),
  metrics: () => benchMetrics({ start, row, folder, env: serviceEnv, executable }),
  field: () => benchField({ row, folder, env: serviceEnv, executable }),
  start: startUp,
  explorer,
};
/**
 * `bun run bench pages start` measures only those parts, and `fairness:lists,writes` only those kinds of requests. With `--write`, the figures
 * go into the docs page.
 */
const named = process.argv.slice(2).filter((arg) => arg !== "--write");
const asked = named.length > 0 ? named : Object.keys(parts);

try {
  for (const name of asked) {
    const [partName = "", kinds = ""] = name.split(":");
    const part = parts[partName];
    if (!part) throw new Error(`there is no part ${name}; the parts are ${Object.keys(parts).join(", ")}`);
    await part(kinds === "" ? [] : kinds.split(","));
  }
} finally {
  for (const path of temporary) rmSync(path, { recursive: true, force: true });
  silent.stop(true);
}
const date = new Date().toISOString().slice(0, 10);
const measured = `${date}, ${cpus().length} × ${cpus()[0]?.model.trim()}`;
process.stdout.write(toFigures(rows, measured));
if (process.argv.includes("--write")) await writeFigures(rows, measured, named.length === 0);
process.exit(0);
