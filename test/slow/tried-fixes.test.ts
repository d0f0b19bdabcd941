import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import {
  meanText,
  ratioText,
  reasonText,
  scoreText,
  shareText,
  successText,
  usedText,
} from "../../src/experiments/labels.ts";
import { runsCsv } from "../../src/experiments/runs-csv.ts";
import type { Experiment, ExperimentRun } from "../../src/experiments/schema.ts";
import { digestOf } from "../../src/net/edits.ts";
import type { Report } from "../../src/reports/schema.ts";
import { buildExecutable, call, client, emptyFolder, serve, untilRun } from "../support/executable.ts";
import { serveFakeModel, type Turn } from "../support/fake-model.ts";
import { finish, modelKey, call as use } from "../support/model-runs.ts";
import { cookiesOf, password } from "../support/people.ts";
import { type SiteRoute, serveSite } from "../support/site.ts";
import { until } from "../support/until.ts";

// The guide of a product has a wrong command, which the scripted model copies. A fix that is tried in flight must be worth what the same fix is
// worth at the site.

const guideOf = (path: string) =>
  `# Add a note\n\nSend the text of the note with a POST request.\n\n\`\`\`sh\ncurl -sS --fail -d Hello ${site.url}${path} -o note.json\n\`\`\`\n`;
const [wrongPath, rightPath] = ["/api/note", "/api/notes"];
let path = wrongPath;
const markdown = (body: string) => new Response(body, { headers: { "content-type": "text/markdown; charset=utf-8" } });
const site = serveSite({
  "/docs/": () => markdown(`# Notes\n\nKeep notes over HTTP. Read [Add a note](${site.url}/docs/guide.md) first.\n`),
  "/docs/guide.md": () => markdown(guideOf(path)),
  "/docs/limits.md": () => markdown("# Limits\n\nA note has at most 500 letters.\n"),
  [rightPath]: ({ method }) => Response.json({ id: 1 }, { status: method === "POST" ? 201 : 200 }),
});
const guideUrl = `${site.url}/docs/guide.md`;

const readings: Record<string, number> = {};
let failures = 0;

/** Whether the model has read the guide with this path an odd number of times. */
function isOdd(copied: string): boolean {
  readings[copied] = (readings[copied] ?? 0) + 1;
  return readings[copied] % 2 === 1;
}

/** Reads the guide and copies its command. In every second run, the model reads a third page before. In three of four that fail, it gives up. */
function decide(read: string, toolResults: number): Turn {
  const [line = "", copied = ""] = /curl -sS --fail -d Hello \S+?(\/api\/\w+) -o note\.json/.exec(read) ?? [];
  const hasReadMore = read.includes("at most 500 letters");
  const commands = toolResults - (hasReadMore ? 3 : 2);
  const run = (command: string) => use("run_command", { command });
  if (toolResults < 2) return use("fetch_page", { url: toolResults === 0 ? `${site.url}/docs/` : guideUrl });
  if (commands === 0 && !hasReadMore && isOdd(copied)) return use("fetch_page", { url: `${site.url}/docs/limits.md` });
  if (commands === 0) return run(line);
  if (commands === 1 && read.includes("error: 404"))
    return failures++ % 4 > 0
      ? finish("goal_not_met", "The API has no such path.")
      : run(line.replace(copied, rightPath));
  return finish("succeeded", "The note was added.");
}

const cwd = emptyFolder();
const fake = serveFakeModel({ key: modelKey, scenarios: { copies: { turns: [{ decides: decide }] } } });
const model = "openai-compatible/copies";
let service: Awaited<ReturnType<typeof serve>>;
let ask: ReturnType<typeof client>;
let remote: Record<string, string>;
beforeAll(async () => {
  await buildExecutable();
  const own = async (...args: string[]) => (await call(args, { cwd })).stdout.trim();
  await own("org", "create", "Acme");
  const key = await own("key", "create", "--name", "test");
  service = await serve({
    cwd,
    env: {
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      OPENAI_COMPATIBLE_API_KEY: modelKey,
      EVALD_ALLOW_PRIVATE: "127.0.0.1",
      EVALD_MODEL_PRICES: `{"${model}": {"in": 10, "out": 100, "cached": 1}}`,
    },
  });
  ask = client(service.url, key);
  remote = { EVALD_URL: service.url, EVALD_KEY: key };
}, 300_000);
afterAll(async () => {
  await service.stop();
  fake.stop();
  site.stop();
  rmSync(cwd, { recursive: true });
});

const get = async (path: string) => (await ask("GET", `/api/v1/${path}`)).body;

/** Runs the prompt, and returns the reports. */
async function runNow(promptId: string, count: number): Promise<Report[]> {
  const requests = Array.from({ length: count }, () => ask("POST", `/api/v1/prompts/${promptId}/run`, { urlMap: {} }));
  const accepted = await Promise.all(requests);
  const ended = await Promise.all(accepted.map(({ body }) => untilRun(ask, body.runId, "completed", "failed")));
  return await Promise.all(ended.map(({ report }) => get(`reports/${report.slug}`)));
}

/** A browser of the owner of the organization. */
async function signIn() {
  const [setupPath = ""] = /\/setup\/\S+/.exec((await call(["org", "setup-link", "Acme"], { cwd })).stdout) ?? [];
  const headers = { origin: service.url, accept: "text/html" };
  const post = (path: string, form: Record<string, string>, cookie = "") =>
    fetch(service.url + path, {
      ...{ method: "POST", redirect: "manual", headers: { ...headers, cookie }, body: new URLSearchParams(form) },
    });
  const cookie = cookiesOf((await post(setupPath, { name: "Ada", email: "ada@example.com", password })).headers);
  return {
    read: async (path: string) => (await fetch(service.url + path, { headers: { ...headers, cookie } })).text(),
    post: (path: string, form: Record<string, string>) => post(path, form, cookie),
  };
}

/** The value of a field in a form. */
function valueIn(form: string, name: string): string {
  const [element = ""] = new RegExp(`<(?:input|textarea)[^>]*name="${name}"[^>]*>[^<]*`).exec(form) ?? [];
  return /value="([^"]*)"/.exec(element)?.[1] ?? element.slice(element.indexOf(">") + 1);
}

const repeats = 8;
const meanOf = (values: (number | null)[]): number =>
  values.reduce<number>((sum, value) => sum + (value ?? Number.NaN), 0) / values.length;

test("a fix that is tried in flight is worth what it is worth at the site, in all numbers that are shown", async () => {
  const { body: prompt } = await ask("POST", "/api/v1/prompts", {
    ...{ title: "Add a note", text: `Add a note by the docs at ${site.url}/docs/`, agent: "llm", model },
    ...{ endGoal: "A note was added.", declaredChecks: [{ file: "note.json", contains: "id" }] },
  });
  const wrongReports = await runNow(prompt.id, repeats);
  const fixes = wrongReports.flatMap(({ slug, recommendations }) => recommendations.map((fix) => ({ slug, ...fix })));
  const fix = fixes.find(({ evidence }) => evidence?.expected === rightPath);
  expect(fix?.evidence).toMatchObject({ url: guideUrl, found: wrongPath });

  // The site stays as it is during the experiment, and gets no request but to read.
  const owner = await signIn();
  const form = await owner.read(`/experiments/new?report=${fix?.slug}&fix=${fix?.id}`);
  const fields = ["editUrl", "editFind", "editReplacement"].map((name) => [name, valueIn(form, name)]);
  expect(fields.map(([, value]) => value)).toEqual([guideUrl, wrongPath, rightPath]);
  const values = { promptId: prompt.id, repeats: String(repeats), agreed: "on", ...Object.fromEntries(fields) };
  const from = site.requests.length;
  const started = await owner.post("/experiments/new", values);
  expect(started.status).toBe(303);
  const id = started.headers.get("location")?.split("/").at(-1) ?? "";
  await until("the experiment to end", async () => (await get(`experiments/${id}`)).status !== "running");
  const experiment: Experiment = await get(`experiments/${id}`);
  const runs: ExperimentRun[] = await get(`experiments/${id}/runs?limit=100`);
  const docsRequests = site.requests.slice(from).filter((request) => request.includes("/docs/"));
  expect(docsRequests.filter((request) => !/^(GET|HEAD) /.test(request))).toEqual([]);
  expect(await (await fetch(guideUrl)).text()).toBe(guideOf(wrongPath));

  // Each request for the page in the arm, and none in the base, was edited.
  const digests = {
    originalDigest: digestOf(Buffer.from(guideOf(wrongPath))),
    editedDigest: digestOf(Buffer.from(guideOf(rightPath))),
  };
  for (const { arm, slug } of runs) {
    const { events } = await get(`reports/${slug}/trace?limit=500`);
    const readings = events.filter(
      (event: { type: string; url: string }) => event.type === "http" && event.url === guideUrl,
    );
    expect(readings.length).toBeGreaterThan(0);
    for (const { edit } of readings)
      expect(edit).toEqual(
        arm === "edited" ? { kind: "replaced", ...digests, replacements: [expect.any(Number)] } : undefined,
      );
  }

  path = rightPath;
  const mendedReports = await runNow(prompt.id, repeats);
  const worth = meanOf(mendedReports.map(({ score }) => score)) - meanOf(wrongReports.map(({ score }) => score));
  const [contrast] = experiment.analysis.contrasts;
  const { delta = Number.NaN, low, high } = contrast?.overall.score ?? {};
  expect(contrast).toMatchObject({ arm: "edited", verdict: "better", contaminated: 0, failed: 0 });
  expect([low ?? Number.NaN, high ?? Number.NaN].map((bound) => Math.sign(bound - worth))).toEqual([-1, 1]);
  expect(Math.abs(delta - worth)).toBeLessThan(3);

  // The page, the command, its JSON and its CSV show the same numbers, and so do the reports of the runs.
  const cli = async (...args: string[]) =>
    (await call(["experiment", "show", id, ...args], { cwd, env: remote })).stdout;
  expect(JSON.parse(await cli("--json"))).toEqual(experiment);
  expect(await cli("--csv")).toBe(runsCsv(runs).replaceAll("\r\n", "\n"));
  const texts = experiment.analysis.arms.flatMap((arm) => [meanText(arm), shareText(arm), usedText(arm)]);
  if (contrast)
    texts.push(
      ...[scoreText(contrast.overall), successText(contrast.overall), reasonText(contrast)],
      ...[ratioText(contrast.overall.cost), ratioText(contrast.overall.seconds)],
    );
  for (const shown of [await owner.read(`/experiments/${id}`), await cli()])
    expect(texts.filter((text) => !shown.includes(text))).toEqual([]);
  for (const { slug, score, costUsd, seconds } of runs) {
    const report: Report = await get(`reports/${slug}`);
    expect([report.score, report.metrics.costUsd, report.metrics.timeSeconds]).toEqual([score, costUsd, seconds]);
  }
}, 180_000);

test("a bisect of a repository names the commit with its subject", async () => {
  const repository = emptyFolder();
  const git = async (...args: string[]) =>
    (await Bun.$`git -C ${repository} -c user.name=Ada -c user.email=ada@example.com ${args}`.text()).trim();
  await git("init", "--quiet");
  const subjects = ["Start", "Correct a word", "Move the guide", "Add an example"];
  for (const subject of subjects) await git("commit", "--quiet", "--allow-empty", "--message", subject);
  const hashes = (await git("log", "--reverse", "--format=%H")).split("\n");
  const builds = serveSite(
    Object.fromEntries(
      hashes.flatMap((hash, i): [string, SiteRoute][] => [
        [
          `/${hash}/docs/`,
          { body: `<h1>Acme</h1><p>${"Acme stores notes. ".repeat(20)}</p><a href="guide">Install the client</a>` },
        ],
        [
          `/${hash}/docs/guide`,
          i < 2 ? { body: "<h1>Install the client</h1><pre><code>npm install acme</code></pre>" } : { status: 404 },
        ],
      ]),
    ),
  );
  const { body: prompt } = await ask("POST", "/api/v1/prompts", {
    text: "Install the client. https://docs.acme.test/docs/",
    agent: "explorer",
  });
  const range = ["--good", hashes[0] ?? "", "--bad", hashes[3] ?? "", "--repository", repository];
  const args = ["bisect", prompt.id, ...range, "--url-template", `${builds.url}/{commit}/docs`];
  const { code, stdout } = await call(args, { cwd, env: remote });
  builds.stop();
  rmSync(repository, { recursive: true });
  expect([code, stdout]).toEqual([0, expect.stringContaining(`${hashes[2]} Move the guide\n`)]);
}, 60_000);
