import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createChildAgent } from "../../src/agents/child.ts";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { startProcess } from "../../src/agents/process.ts";
import { listGates } from "../../src/gates/gates.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { testApp } from "../support/app.ts";
import { startCiIssuer } from "../support/ci-issuer.ts";
import { buildExecutable, emptyFolder, executable } from "../support/executable.ts";
import { startGitHub } from "../support/github.ts";
import { serveSite } from "../support/site.ts";

const root = join(import.meta.dir, "..", "..");
type Step = { shell: string; run: string; env: Record<string, string> };
const action = Bun.YAML.parse(readFileSync(join(root, "action.yml"), "utf8")) as {
  inputs: Record<string, { default: string }>;
  outputs: Record<string, { value: string }>;
  runs: { using: string; steps: Step[] };
};

const sha = "4f2a91c0";
const pull = { number: 7, sha, branch: "feature/new docs", owner: "acme" };
const head = { sha, ref: pull.branch, repo: { full_name: "acme/docs" } };
const ofPull = { pull_request: { number: 7, head } };
const ofFork = {
  workflow_run: { head_sha: sha, head_branch: pull.branch, head_repository: { owner: { login: pull.owner } } },
};
const body =
  '<html lang="en"><title>Acme</title><main><h1>Upload</h1><p>Upload a file.</p><a href="/b">B</a></main></html>';
const live = serveSite({ "/": { body }, "/b": { body } });
const same = serveSite({ "/": { body }, "/b": { body } });
beforeAll(buildExecutable, 300_000);
afterAll(() => {
  live.stop();
  same.stop();
});
const preview = { "docs-host": live.url, "preview-url": same.url };

/** An evald server on loopback with the prompts `First` and `Second`, and GitHub. */
async function setUp() {
  const starting = () => Response.json({ error: "unavailable" }, { status: 503, headers: { "retry-after": "0" } });
  let handle: (request: Request) => Response | Promise<Response> = starting;
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => handle(request) });
  const url = server.url.origin;
  const ci = startCiIssuer();
  // The docs of a folder exist only for agents in a process of their own.
  const agent = createChildAgent(createExplorer({ version: "test" }), {
    startAgentProcess: () => startProcess([executable, "__agent"], {}),
  });
  const app = testApp({
    agent,
    env: { EVALD_BASE_URL: url, EVALD_ALLOW_PRIVATE: "127.0.0.1", EVALD_RUNS_PER_HOST: "8" },
  });
  handle = app.app.handle;
  const github = startGitHub(pull);
  await app.service.runner.start();
  for (const loop of app.service.requestLoops) loop.start();
  afterAll(async () => {
    await Promise.all([app.service.runner.stop(0), ...app.service.requestLoops.map((loop) => loop.stop())]);
    for (const each of [server, ci, github]) "close" in each ? each.close() : each.stop(true);
  });
  for (const title of ["First", "Second"])
    createPrompt(app.service.ctx, app.a.org, { title, text: `Upload a file. ${live.url}/`, agent: "explorer" });

  /** Runs the steps of the action as the runner does. */
  async function run(inputs: Record<string, string>, event: unknown, more: Record<string, string> = {}) {
    const folder = mkdtempSync(join(tmpdir(), "evald-action-"));
    const file = (name: string, content = "") => {
      writeFileSync(join(folder, name), content);
      return join(folder, name);
    };
    mkdirSync(join(folder, "temp"));
    const values = { url, "api-key": app.a.key, ...inputs } as Record<string, string>;
    const fill = (text: string) =>
      text
        .replaceAll(/\$\{\{ inputs\.([\w-]+) \}\}/g, (_, name) => {
          if (!(name in action.inputs)) throw new Error(`action.yml has no input ${name}`);
          return values[name] ?? action.inputs[name]?.default ?? "";
        })
        .replaceAll(`\${{ github.token }}`, "github-token");
    const [step] = action.runs.steps;
    const [outputs, summary] = [file("output"), file("summary")];
    const child = Bun.spawn(["bash", "--noprofile", "--norc", "-eo", "pipefail", file("step.sh", step?.run)], {
      cwd: folder,
      env: {
        PATH: process.env.PATH ?? "",
        EVALD_POLL_MS: "20",
        GITHUB_ACTION_PATH: root,
        GITHUB_API_URL: github.url,
        GITHUB_SERVER_URL: "https://github.com",
        GITHUB_REPOSITORY: "acme/docs",
        GITHUB_RUN_ID: "42",
        GITHUB_SHA: "merge",
        GITHUB_REF_NAME: "7/merge",
        GITHUB_EVENT_PATH: file("event.json", JSON.stringify(event)),
        GITHUB_OUTPUT: outputs,
        GITHUB_STEP_SUMMARY: summary,
        RUNNER_TEMP: join(folder, "temp"),
        ...Object.fromEntries(Object.entries(step?.env ?? {}).map(([name, value]) => [name, fill(value)])),
        ...more,
      },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    const found = readFileSync(outputs, "utf8").matchAll(/^([\w-]+)<<(\S+)\n([\s\S]*?)\n\2$/gm);
    const output = Object.fromEntries([...found].map(([, name, , value]) => [name, value])) as Record<string, string>;
    expect([stderr, Object.keys(output)]).toEqual(["", Object.keys(action.outputs).filter((name) => name in output)]);
    return {
      code,
      stdout,
      output,
      summary: readFileSync(summary, "utf8"),
      results: JSON.parse(output["results-json"] ?? "[]"),
    };
  }
  /** Makes the next requests with this method and path fail. */
  function interrupt(route: string, faults: (() => Response)[]): void {
    handle = (request) => {
      const isMeant = `${request.method} ${new URL(request.url).pathname}` === route;
      return (isMeant && faults.shift()?.()) || app.app.handle(request);
    };
  }
  return { app, url, ci, github, run, interrupt, starting };
}

test("the docs in a folder of the job are compared with the live docs, without a preview", async () => {
  const { run } = await setUp();
  const folder = emptyFolder();
  for (const name of ["index.html", "b.html"]) writeFileSync(join(folder, name), body);
  const inputs = { prompts: "First", "docs-dir": folder, "docs-url": `${live.url}/` };
  const same = await run(inputs, ofPull);
  expect([same.code, same.output.verdict]).toEqual([0, "passed"]);
  writeFileSync(
    join(folder, "index.html"),
    '<html lang="en"><title>Acme</title><p>Nothing.</p><a href="/gone">C</a></html>',
  );
  const worse = await run(inputs, ofPull);
  expect([worse.code, worse.output.verdict]).toEqual([1, "failed"]);
  const empty = await run({ ...inputs, "docs-dir": emptyFolder() }, ofPull);
  expect([empty.code, empty.stdout]).toEqual([2, expect.stringContaining("docs-dir")]);
  const unnamed = await run({ prompts: "First", "docs-dir": folder }, ofPull);
  expect([unnamed.code, unnamed.stdout]).toEqual([2, expect.stringContaining("docs-url")]);
});

test("several prompts get one comment, which the next call updates, a status, a summary and outputs", async () => {
  const { app, url, github, run } = await setUp();
  const inputs = { prompts: "First\nSecond\n", ...preview };
  const first = await run(inputs, ofPull);
  expect([first.code, first.output.verdict, first.output["exit-code"]]).toEqual([0, "passed", "0"]);
  expect(first.results.map(({ title, verdict }: Record<string, string>) => [title, verdict])).toEqual([
    ["First", "passed"],
    ["Second", "passed"],
  ]);
  const [gate] = JSON.parse(readFileSync(first.output["result-path"] ?? "", "utf8"));
  expect(gate.urlMap).toEqual({ [live.url]: same.url });
  const { headRequestId } = gate.prompts[0];
  expect((await app.send("GET", `/api/v1/eval-requests/${headRequestId}`)).status).toBe(200);
  expect(github.comments.map(({ body }) => body)).toEqual([`<!-- evald:evald -->\n${first.summary.trimEnd()}`]);
  expect(first.summary).toContain(`| [First](${url}/gates/${gate.id}) | ✅ Passed |`);
  expect(github.statuses).toEqual([
    { sha, state: "success", context: "evald", description: expect.any(String), target_url: `${url}/gates/${gate.id}` },
  ]);
  expect(first.output["comment-url"]).toBe("https://github.com/acme/docs/pull/7#issuecomment-1");

  // One prompt below the bar fails the action, and the comment is updated.
  const bar = { "min-score": "100", scope: "docs_only" };
  const second = await run({ ...inputs, prompts: "First", ...bar }, ofPull);
  expect([second.code, second.output.verdict, github.comments.length]).toEqual([1, "failed", 1]);
  expect([github.comments[0]?.body.includes("❌ Failed"), github.statuses.at(-1)?.state]).toEqual([true, "failure"]);
  // Another name has its own comment. A stranger's comment with the marker isn't taken for ours.
  const user = { login: "mallory", type: "User" };
  github.comments.push({ id: 2, body: "<!-- evald:other -->", user, author_association: "NONE" });
  await run({ ...inputs, prompts: "First", name: "other" }, ofPull);
  expect(github.comments.map(({ body }) => body.split("\n")[0])).toEqual([
    "<!-- evald:evald -->",
    "<!-- evald:other -->",
    "<!-- evald:other -->",
  ]);
});

test("a gate without a verdict is neutral and says why, unless it is set to fail; usage errors have exit code 2", async () => {
  const { github, run, app } = await setUp();
  const inputs = { prompts: "First", ...preview };
  const scoped = await run({ ...inputs, "min-score": "1" }, ofPull);
  expect([scoped.code, scoped.output.verdict, scoped.output["exit-code"]]).toEqual([0, "inconclusive", "3"]);
  expect(github.statuses.at(-1)).toMatchObject({
    state: "success",
    description: expect.stringMatching(/^No verdict: /),
  });
  expect(scoped.stdout).toContain("::warning::");
  const unjudged = await run({ ...inputs, mode: "run", "fail-without-verdict": "true" }, ofPull);
  expect([unjudged.code, unjudged.output.verdict, unjudged.results[0].reason]).toEqual([
    3,
    "not_judged",
    expect.stringContaining("goal"),
  ]);
  const ran = await run({ ...inputs, mode: "run", "min-score": "1", scope: "docs_only" }, ofPull);
  expect([ran.code, ran.output.verdict]).toEqual([0, "passed"]);
  const low = await run({ ...inputs, mode: "run", "min-score": "100", scope: "docs_only" }, ofPull);
  expect([low.code, low.output.verdict]).toEqual([1, "failed"]);
  const away = await run({ ...inputs, url: "http://127.0.0.1:1", "fail-without-verdict": "true" }, ofPull);
  expect([away.code, away.output.verdict]).toEqual([3, "inconclusive"]);
  expect(github.comments).toHaveLength(1);

  const posted = github.comments[0]?.body;
  const wrongs: Record<string, string>[] = [
    { prompts: "Nothing" },
    { prompts: "" },
    { tag: "sdk" },
    { "api-key": "" },
    { "api-key": `evals_${"0".repeat(36)}` },
    { "min-score": "many" },
    { runs: "0" },
    { runs: "1.5" },
    { "timeout-minutes": "0" },
    { scope: "all" },
    { mode: "eval" },
    { url: "evals.acme.example" },
    { "url-map": "docs.acme.example" },
    { "preview-url": "" },
    { "preview-url": "ftp://x" },
    { "result-file": "/nowhere" },
  ];
  for (const wrong of wrongs) {
    const { code, stdout } = await run({ ...inputs, ...wrong }, ofPull);
    expect([wrong, code, stdout.includes("::error::")]).toEqual([wrong, 2, true]);
  }
  expect(github.comments[0]?.body).toBe(posted as string);
  expect(listGates(app.service.ctx, app.a.org, {}, { limit: 10, offset: 0 }).total).toBe(1);
});

test("a server that restarts while the job starts makes no difference, and one that is away is named with the cause", async () => {
  const { app, github, run, interrupt, starting } = await setUp();
  const { id } = createPrompt(app.service.ctx, app.a.org, { title: "Third", text: `Upload a file. ${live.url}/` });
  const broken = () => new Response("<h1>Bad gateway</h1>", { status: 502 });
  for (const [mode, path] of [
    ["gate", "/api/v1/gates"],
    ["run", `/api/v1/prompts/${id}/run`],
  ] as const) {
    const faults = [starting, broken];
    interrupt(`POST ${path}`, faults);
    const bar: Record<string, string> = mode === "run" ? { "min-score": "1", scope: "docs_only" } : {};
    const { code, output } = await run({ prompts: id, ...preview, mode, ...bar }, ofPull);
    expect([mode, code, output.verdict, faults.length]).toEqual([mode, 0, "passed", 0]);
  }
  expect(listGates(app.service.ctx, app.a.org, {}, { limit: 10, offset: 0 }).total).toBe(1);
  const closed = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { origin } = closed.url;
  await closed.stop(true);
  const away = await run({ prompts: id, ...preview, url: origin }, ofPull);
  expect([away.output.verdict, away.results[0].reason]).toEqual([
    "inconclusive",
    expect.stringMatching(new RegExp(`${origin} .*ECONNREFUSED`)),
  ]);
  expect(github.statuses.at(-1)?.description).toContain(origin);
});

test("faults of GitHub are repeated, without a second comment", async () => {
  const { github, run } = await setUp();
  const inputs = { prompts: "First", ...preview };
  for (const route of [`POST /statuses/${sha}`, "GET /issues/7/comments", "POST /issues/7/comments"])
    github.fail(route, "broken");
  const { code, stdout } = await run(inputs, ofPull);
  expect([code, github.comments.length, github.statuses.length]).toEqual([0, 1, 1]);
  expect(stdout).not.toContain("::warning::");
  for (let i = 0; i < 3; i++) github.fail(`POST /statuses/${sha}`, "broken");
  const broken = await run(inputs, ofPull);
  expect(broken.stdout).toMatch(/::warning::Could not .*status 500/);
  expect(broken.stdout).not.toContain("permissions");
});

test("the pull request of a merge queue is in its ref, and the one of a deleted fork is found by its commit", async () => {
  const { github, run } = await setUp();
  const inputs = { prompts: "First", mode: "run", "docs-host": "docs.acme.example" };
  const byNumber = { ...inputs, "preview-url": "https://pr-{number}.preview.example" };
  const queued = {
    merge_group: { head_sha: "0123abcd", head_ref: "refs/heads/gh-readonly-queue/main/pr-7-0123abcd" },
  };
  const ofDeleted = { workflow_run: { head_sha: sha, head_branch: "main", head_repository: null } };
  for (const [event, commit] of [
    [queued, "0123abcd"],
    [ofDeleted, sha],
  ] as const) {
    const { summary, output } = await run(byNumber, event);
    expect([summary.includes("`https://pr-7.preview.example`"), output["comment-url"]]).toEqual([
      true,
      expect.stringContaining("/pull/7#"),
    ]);
    expect(github.statuses.at(-1)?.sha).toBe(commit);
  }
});

test("the preview and the pull request come from the workflow event", async () => {
  const { github, run } = await setUp();
  const inputs = { prompts: "First", mode: "run", "docs-host": "docs.acme.example" };
  const mapOf = async (more: Record<string, string>, event: unknown) => {
    const before = github.comments.length + github.statuses.length;
    const { output, summary } = await run({ ...inputs, ...more, "github-token": "github-token" }, event);
    const [, url] = /Preview: `(.*)`/.exec(summary) ?? [];
    return [url, output["comment-url"] !== "", github.comments.length + github.statuses.length > before];
  };
  const deployed = {
    deployment: { sha, ref: "feature" },
    deployment_status: { state: "success", environment_url: "https://abc.preview.example" },
  };
  expect(await mapOf({}, deployed)).toEqual(["https://abc.preview.example", true, true]);
  const commented = { issue: { number: 7, pull_request: {} }, comment: { body: "/evald" } };
  const template = { "preview-url": "https://{branch}-{sha}.preview.example" };
  expect(await mapOf(template, commented)).toEqual([`https://feature-new-docs-${sha}.preview.example`, true, true]);
  const fork = { ...pull, owner: "acme" };
  const finished = {
    workflow_run: { head_sha: sha, head_branch: fork.branch, head_repository: { owner: { login: fork.owner } } },
  };
  expect(await mapOf({ "preview-url": "https://pr-{number}.preview.example" }, finished)).toEqual([
    "https://pr-7.preview.example",
    true,
    true,
  ]);
  // A push has no pull request, so there is a status but no comment.
  expect(await mapOf({ "preview-url": "https://{sha}.preview.example" }, {})).toEqual([
    "https://merge.preview.example",
    false,
    true,
  ]);
  const nobody = { workflow_run: { ...finished.workflow_run, head_branch: "other" } };
  expect(await mapOf({ "preview-url": "https://pr-{number}.preview.example" }, nobody)).toEqual([
    undefined,
    false,
    true,
  ]);
});

test("the result of a fork is posted as text without links, mentions or markup of its own, cut at GitHub's limit", async () => {
  const { github, run, url } = await setUp();
  const folder = mkdtempSync(join(tmpdir(), "evald-result-"));
  const path = join(folder, "result.json");
  const post = async (content: unknown, more: Record<string, string> = {}) => {
    writeFileSync(path, JSON.stringify(content));
    return await run({ "result-file": path, "api-key": "", ...more }, ofFork);
  };
  const evil = {
    prompts: [{ id: "x", title: "[click](https://evil.example) @acme/all #1 <img src=x> | `x`\n## Passed" }],
    status: "failed",
    reason: "see https://evil.example <!-- evald:other -->",
    pageUrl: "https://evil.example/gates/1",
    comparison: { friction: { new: [{ severity: "high", title: "**@everyone**" }] }, evidence: { sides: [] } },
  };
  const found = await post(evil);
  const body = github.comments[0]?.body ?? "";
  expect([found.code, found.output.verdict]).toEqual([1, "failed"]);
  for (const active of [
    "evil.example)",
    "://evil",
    "@acme",
    "#1 ",
    "<img",
    "\n## Passed",
    "<!-- evald:other",
    "**",
    "`x`",
  ])
    expect([active, body.includes(active)]).toEqual([active, false]);
  // This is a link to our own server.
  await post({ ...evil, pageUrl: `${url}/gates/1` });
  expect(github.comments[0]?.body).toContain(`](${url}/gates/1)`);
  expect(github.statuses.at(-1)?.target_url).toBe(`${url}/gates/1`);
  const jobUrl = "https://github.com/acme/docs/actions/runs/42";
  for (const [server, pageUrl] of [
    ["", evil.pageUrl],
    ["https://evals.acme.example", "https://evals.acme.example.evil.example/"],
    [url, evil.pageUrl],
  ] as const) {
    await post({ ...evil, pageUrl }, { url: server });
    expect(github.statuses.at(-1)?.target_url).toBe(jobUrl);
    expect(github.comments[0]?.body).not.toContain("](");
  }

  const long = Array.from({ length: 90 }, () => ({ ...evil, reason: "word ".repeat(400) }));
  const cut = await post(long);
  const text = github.comments[0]?.body ?? "";
  expect([cut.code, text.length <= 65_536, text.includes("/actions/runs/42)")]).toEqual([1, true, true]);
  expect(cut.summary.length).toBeGreaterThan(text.length);
  // No minimum turns what isn't a number into a pass.
  for (const [score, verdict, head] of [
    ["97", "inconclusive", null],
    [97, "passed", 97],
  ] as const) {
    const report = { outcome: "succeeded", scope: "goal", score };
    const { results } = await post({ runId: "x", report }, { mode: "run", "min-score": "1", scope: "goal" });
    expect(results).toMatchObject([{ verdict, head }]);
  }
  const failed = await post({ error: "unavailable", detail: "The *server* could not be reached." });
  expect([failed.output.verdict, failed.results[0].reason]).toEqual([
    "inconclusive",
    "The *server* could not be reached.",
  ]);

  const commands = "\n::stop-commands::x\n::error::forged\r::add-mask::y\n##[error]z";
  for (const status of ["passed", "failed", "other"])
    for (const title of [`t${commands}`, "::error::forged"]) {
      const { stdout } = await post({ prompts: [{ id: "x", title }], status, reason: `r${commands}` });
      expect(stdout.match(/^\s*(::(stop|add-mask|error::forged)|##\[)/gm)).toBeNull();
    }
  const forged = `${url}/x)[Sign_in](https://evil.example/a)@org/team![](https://evil.example/i.png?a|b`;
  await post({ ...evil, pageUrl: forged });
  expect(github.comments[0]?.body.match(/\]\(/g)).toHaveLength(1);
  expect(github.comments[0]?.body.match(/^\| \[.*\]\((\S+)\) \|.*\|$/m)?.[1]).toMatch(/^[^()[\]|]*$/);

  const report = { slug: "a", url, score: "90", outcome: 1, nullNotice: {} };
  const wrongTypes = [
    { runId: "x", report, prompt: 1 },
    { runId: "x", report: { ...report, score: null } },
    { runId: "x", report: true },
    { runId: "x", status: 1 },
    { prompts: "x", status: "failed", reason: 1, comparison: { friction: { new: "x" }, evidence: { sides: 1 } } },
    { prompts: [null, 1], status: 1, reason: [], comparison: { friction: { new: [null, 1] } } },
    { error: 1, detail: 1 },
  ];
  const { results } = await post(wrongTypes);
  expect(results.map(({ title, reason }: Record<string, string>) => [title !== "", reason !== ""])).toEqual(
    wrongTypes.map(() => [true, true]),
  );
  expect(results.map(({ verdict }: Record<string, string>) => verdict)).toEqual([
    "inconclusive",
    "not_judged",
    "not_judged",
    "inconclusive",
    "failed",
    "inconclusive",
    "inconclusive",
  ]);
  for (const wrong of [[], "x", [1], {}]) {
    const { code, output } = await post(wrong);
    expect([wrong, [2, 0].includes(code), output.verdict]).toEqual([wrong, true, "inconclusive"]);
  }
});

test("the documented workflows for forks judge a preview without a key or a server, and post the verdict", async () => {
  const { github, run } = await setUp();
  const ci = readFileSync(join(root, "src/web/docs/ci.md"), "utf8");
  const [, yaml = ""] = /^## Pull requests from forks$[\s\S]*?^```yaml\n([\s\S]*?)^```$/m.exec(ci) ?? [];
  const { jobs } = Bun.YAML.parse(yaml) as { jobs: { docs: { steps: Partial<Step>[] } } };
  const script = jobs.docs.steps.findLast(({ run }) => run?.includes("evald gate"))?.run ?? "";
  const { host } = new URL(live.url);
  const cwd = emptyFolder();
  const step = script.replaceAll("https://docs.acme.example", live.url).replaceAll("docs.acme.example", host);
  const child = Bun.spawn(["bash", "-e", "-c", step], {
    cwd,
    env: {
      PATH: `${dirname(executable)}:${process.env.PATH}`,
      PREVIEW_URL: same.url,
      EVALD_ALLOW_PRIVATE: "127.0.0.1",
    },
    stdout: "ignore",
    stderr: "pipe",
  });
  const said = await new Response(child.stderr).text();
  expect([await child.exited, said]).toEqual([0, expect.stringContaining("Gate passed")]);
  const { output } = await run({ "result-file": join(cwd, "result.json"), url: "", "api-key": "" }, ofFork);
  expect([output.verdict, github.comments.length, github.statuses.length]).toEqual(["passed", 1, 1]);
}, 300_000);

test("without permission, or if the comment is rejected, the verdict stays and a warning names the reason", async () => {
  const { github, run } = await setUp();
  const inputs = { prompts: "First", ...preview };
  const [comments, statuses] = ["POST /issues/7/comments", `POST /statuses/${sha}`];
  for (const kind of ["forbidden", "invalid"] as const) {
    github.fail(comments, kind);
    github.fail(statuses, kind);
    const { code, stdout, output, summary } = await run(inputs, ofPull);
    const status = kind === "forbidden" ? "403" : "422";
    expect([code, output.verdict, output["comment-url"], summary !== ""]).toEqual([0, "passed", "", true]);
    expect(stdout.match(new RegExp(`::warning::Could not .*status ${status}`, "g"))).toHaveLength(2);
  }
  expect([github.comments.length, github.statuses.length]).toEqual([0, 0]);
  // There is only a status without the pull request.
  github.fail(`GET /commits/${sha}/pulls`, "forbidden");
  const deployed = { deployment: { sha, ref: "feature" }, deployment_status: { environment_url: same.url } };
  const alone = await run({ prompts: "First", "docs-host": live.url }, deployed);
  expect([alone.code, alone.output.verdict, alone.output["comment-url"], github.statuses.length]).toEqual([
    0,
    "passed",
    "",
    1,
  ]);
  expect(alone.stdout).toMatch(/::warning::Could not find the pull request.*status 403/);
  // The secondary rate limit says when to try again.
  github.fail(comments, "limited");
  expect((await run(inputs, ofPull)).output["comment-url"]).not.toBe("");
});

test("the job's ID token replaces the API key", async () => {
  const { app, ci, run } = await setUp();
  await app.send("POST", "/api/v1/oidc/trusts", {
    body: { provider: "github", issuer: ci.issuer, repository: "acme/docs" },
  });
  const inputs = { prompts: "First", ...preview, "api-key": "", organization: "A" };
  const job = {
    ACTIONS_ID_TOKEN_REQUEST_URL: `${ci.issuer}/token?api-version=2`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: "runner",
  };
  const { code, stdout, output } = await run(inputs, ofPull, job);
  expect([code, output.verdict]).toEqual([0, "passed"]);
  expect(stdout).toMatch(/^::add-mask::evals_\w{36}$/m);
  expect((await run({ ...inputs, organization: "B" }, ofPull, job)).code).toBe(2);
});
