// `bun run soak`: runs, pages, streams, webhooks and the worst sessions for 30 minutes, or `--minutes`, after a warm-up, with a latency probe.
// Exits with 1 if a bound is exceeded.
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildExecutable, client, emptyFolder, furnish, serve, untilRun } from "../support/executable.ts";
import { startReceiver } from "../support/receiver.ts";
import { serveSite } from "../support/site.ts";
import { judge, type Latencies, quantile, restEverySeconds, type Sample, sampleOf, toText } from "./figures.ts";
import { enlarge } from "./worst-session.ts";

const { values } = parseArgs({ options: { minutes: { type: "string", default: "30" } } });
const seconds = Number(values.minutes) * 60;
if (!(seconds >= 60)) throw new Error("--minutes must be 1 or more");
const say = (text: string) => process.stderr.write(`${text}\n`);

const runEveryMs = 2000;
const requestEveryMs = 100;
const streamEveryMs = 1000;
const streamMs = 5000;
const readers = 30;
/** The worst sessions begin this often, and their readers stay for a part of it. */
const worstEveryMs = 60_000;
const readersMs = 20_000;
/** How long the load pauses: its threads end after half a minute without work, and garbage is collected. */
const restSeconds = 60;
/**
 * The warm-up has a thousand runs, with more runs, requests and streams a second than afterwards. Until then the memory of the service grows
 * by less and less: its allocator keeps pages that are not quite empty.
 */
const warmUpSeconds = 420;
const warmUpPace = 5;
/** More than the page cache of the service. */
const cacheBytes = 60 * 1024 * 1024;

const words = "Upload a file with the SDK, and read how it is stored. ".repeat(60);
const links = Array.from({ length: 6 }, (_, i) => `<li><a href="/page-${i}">Topic ${i}</a></li>`).join("");
const page = {
  body: `<!doctype html><html lang="en"><title>Acme</title><main><h1>Acme</h1><ul>${links}</ul><p>${words}</p></main></html>`,
};
const site = serveSite({ "/": page, ...Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`/page-${i}`, page])) });

/** Every tenth delivery fails once. */
const receiver = startReceiver((_, n) => new Response(null, { status: n % 10 === 0 ? 500 : 204 }));

await buildExecutable();
const cwd = emptyFolder();
const dataDir = join(cwd, "data");
const env = {
  EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port},${receiver.host}`,
  EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
  EVALD_LOG_LEVEL: "warn",
};
const { key } = await furnish(cwd);

/** The prompt of all runs, and one whose only run has the worst session. */
async function prepare() {
  const first = await serve({ cwd, env });
  const ask = client(first.url, key);
  const text = `Upload a file with the SDK. See ${site.url}/`;
  const { body: prompt } = await ask("POST", "/api/v1/prompts", { text });
  const { body: worst } = await ask("POST", "/api/v1/prompts", { text, endGoal: "Upload a file." });
  const { body: run } = await ask("POST", `/api/v1/prompts/${worst.id}/run`, { urlMap: {} });
  const { report } = await untilRun(ask, run.runId, "completed", "failed");
  const webhook = { kind: "webhook", url: receiver.url, events: ["run.completed"] };
  const { status } = await ask("POST", "/api/v1/destinations", webhook);
  if (status !== 201) throw new Error(`destination: ${status}`);
  await first.stop();
  return {
    promptId: prompt.id,
    worstId: worst.id,
    runId: run.runId,
    slug: report.slug,
    events: enlarge(dataDir, run.runId),
  };
}

const { promptId, worstId, runId, slug, events } = await prepare();
say(`prepared a session of 50 MB with ${events} events`);
const service = await serve({ cwd, env });
const { url, pid } = service;
const headers = { authorization: `Bearer ${key}` };
const ask = client(url, key);
const over = new AbortController();
const counts = { runs: 0, requests: 0, streams: 0, rounds: 0, regradeSeconds: 0, failures: [] as string[] };
const fail = (what: string, error: unknown) => {
  if (!over.signal.aborted) counts.failures.push(`${what}: ${error instanceof Error ? error.message : error}`);
};

/**
 * Fills SQLite's page cache by writing and deleting archives. Its size is fixed, but runs fill it with only a megabyte a minute, which is no
 * growth to find.
 */
async function fillCache(): Promise<void> {
  const bytes = 5_000_000;
  const ids: string[] = [];
  for (let done = 0; done < cacheBytes; done += bytes) {
    await Bun.write(join(cwd, "noise"), randomBytes(bytes));
    const body = Buffer.from(Bun.spawnSync(["tar", "-czf", "-", "noise"], { cwd }).stdout);
    const made = await fetch(`${url}/api/v1/archives`, { method: "POST", headers, body });
    if (made.status !== 201) throw new Error(`archive: ${made.status} ${await made.text()}`);
    ids.push((await made.json()).id);
  }
  for (const id of ids) await ask("DELETE", `/api/v1/archives/${id}`);
}

const isWarm = (at: number) => at >= warmUpSeconds;
const isRest = (at: number) => isWarm(at) && (at - warmUpSeconds) % restEverySeconds >= restEverySeconds - restSeconds;

/** Repeats work at a steady pace until the end, with pauses. The next one does not wait for the last one. */
async function repeat(everyMs: number, what: string, work: () => Promise<unknown>, pace = warmUpPace): Promise<void> {
  while (!over.signal.aborted) {
    if (!isRest(second())) work().catch((error) => fail(what, error));
    await Bun.sleep(isWarm(second()) ? everyMs : everyMs / pace);
  }
}

async function read(path: string): Promise<void> {
  const answer = await fetch(url + path, { headers, signal: over.signal });
  // Read to its end, without keeping it.
  if (answer.body) for await (const _ of answer.body);
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}`);
  counts.requests++;
}

async function stream(path: string, ms: number): Promise<void> {
  counts.streams++;
  const signal = AbortSignal.any([over.signal, AbortSignal.timeout(ms)]);
  try {
    const answer = await fetch(url + path, { headers: { ...headers, accept: "text/event-stream" }, signal });
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}`);
    if (answer.body) for await (const _ of answer.body);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Readers of the largest session that read the first bytes and then nothing. */
async function stalledReaders(): Promise<void> {
  const { hostname, port } = new URL(url);
  const sockets = Array.from({ length: readers }, () => {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on("error", () => {});
    socket.write(
      `GET /api/v1/runs/${runId}/events HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    );
    return socket.once("data", () => socket.pause());
  });
  await Bun.sleep(readersMs);
  for (const socket of sockets) socket.destroy();
}

/** Grades the worst session again, in the same way as after a run. */
async function regrade(): Promise<void> {
  const request = { since: "2020-01-01", promptId: worstId };
  let { status, body } = await ask("POST", "/api/v1/regrades", request);
  if (status !== 202 && status !== 200) throw new Error(`regrade: ${status} ${JSON.stringify(body)}`);
  const begun = performance.now();
  while (body.completedAt === null) {
    await Bun.sleep(250);
    ({ body } = await ask("GET", `/api/v1/regrades/${body.regradeId}`));
  }
  if (body.graded + body.unchanged !== 1) throw new Error(`regrade: ${JSON.stringify(body)}`);
  counts.regradeSeconds = Math.max(counts.regradeSeconds, Math.round((performance.now() - begun) / 1000));
}

await fillCache();
say("filled the page cache");

/** Seconds in which the worst sessions were worked on. */
const worstSeconds = new Set<number>();
const startedAt = performance.now();
const second = () => Math.floor((performance.now() - startedAt) / 1000);

async function worst(): Promise<void> {
  counts.rounds++;
  const from = second();
  await Promise.all([
    regrade(),
    stalledReaders(),
    read(`/api/v1/runs/${runId}/events`),
    read(`/reports/${slug}/session`),
    ...["jsonl", "junit", "csv", "markdown"].map((format) => read(`/api/v1/export?format=${format}`)),
  ]);
  for (let at = from; at <= second(); at++) worstSeconds.add(at);
}

const paths = [
  "/",
  "/runs",
  "/reports",
  "/trends",
  "/friction",
  "/api/v1/runs?limit=100",
  "/api/v1/reports?limit=100",
  `/reports/${slug}`,
];
let next = 0;
const start = (file: string, ...args: string[]) =>
  Bun.spawn([process.execPath, join(import.meta.dir, file), ...args], { stdout: "pipe", stderr: "inherit" });
const idle = start("idle.ts");
const idleUrl = new TextDecoder().decode((await idle.stdout.getReader().read()).value).trim();
const probe = start("probe.ts", url, idleUrl);
const latencies: (Latencies & { second: number })[] = [];
const listening = (async () => {
  let rest = "";
  for await (const text of probe.stdout.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) latencies.push({ second: second(), ...(JSON.parse(line) as Latencies) });
  }
})();
const work = [
  repeat(runEveryMs, "run", async () => {
    const { status } = await ask("POST", `/api/v1/prompts/${promptId}/run`, { urlMap: {} });
    if (status !== 200) throw new Error(String(status));
    counts.runs++;
  }),
  repeat(requestEveryMs, "request", () => read(paths[next++ % paths.length] as string)),
  repeat(streamEveryMs, "stream", () => stream(next % 2 ? "/live" : "/runs/live", streamMs)),
  repeat(worstEveryMs, "worst sessions", worst, 1),
];
const samples: Sample[] = [];
while (second() < warmUpSeconds + seconds) {
  await Bun.sleep(1000);
  samples.push(sampleOf(pid, dataDir, second()));
  const { rssMb, descriptors, walMb } = samples.at(-1) as Sample;
  if (samples.length % 30 === 0) {
    const recent = latencies.slice(-30);
    const [ours, others] = [recent.flatMap(({ service }) => service), recent.flatMap(({ idle }) => idle)];
    const text = [
      `RSS ${rssMb.toFixed(0)} MB`,
      `${descriptors} descriptors`,
      `WAL ${walMb.toFixed(0)} MB`,
      `${counts.runs} runs`,
    ];
    say(
      `${second()} s: ${text.join(", ")}, /healthz p99 ${quantile(ours, 0.99).toFixed(1)} ms, max ${Math.max(...ours).toFixed(0)} ms, idle server p99 ${quantile(others, 0.99).toFixed(1)} ms`,
    );
  }
}
over.abort();
probe.kill();
idle.kill();
await Promise.all([...work, listening]);
const code = await service.stop();
site.stop();
receiver.close();
rmSync(cwd, { recursive: true, force: true });

const warm = latencies.filter(({ second: at }) => isWarm(at));
const ofWorst = warm.filter(({ second: at }) => worstSeconds.has(at));
const underLoad = warm.filter(({ second: at }) => !isRest(at));
const bounds = judge(samples, warmUpSeconds, underLoad, ofWorst);
// The last runs and retries may not have ended yet.
if (receiver.received.length < 0.8 * counts.runs)
  counts.failures.push(`only ${receiver.received.length} webhooks received`);
const { failures, ...done } = { ...counts, webhooks: receiver.received.length };
process.stdout.write(
  `${toText(bounds)}${JSON.stringify({ minutes: seconds / 60, ...done, failures: failures.length, exitCode: code })}\n`,
);
for (const failure of failures.slice(0, 10)) say(failure);
process.exit(bounds.some(({ isMet }) => isMet === false) || failures.length > 0 || code !== 0 ? 1 : 0);
