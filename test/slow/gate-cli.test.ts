import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { buildExecutable, call, client, emptyFolder, serve } from "../support/executable.ts";
import { serveSite } from "../support/site.ts";
import { until } from "../support/until.ts";

beforeAll(buildExecutable, 300_000);

const page = (title: string, body: string) => ({
  body: `<!doctype html><html lang="en"><title>${title}</title><main><h1>${title}</h1>${body}</main></html>`,
});
const guide = page(
  "Upload a file",
  "<p>Upload a file with the SDK.</p><pre><code class='language-js'>acme.upload();</code></pre>",
);
/** The live docs: the start page links to the guide. */
const live = serveSite({ "/": page("Acme", '<p><a href="/upload">Upload a file</a></p>'), "/upload": guide });
/** A preview in which that link is dead, and the guide is linked from deeper pages. */
const dead = Array.from({ length: 12 }, (_, i) => `<a href="/gone-${i}">Upload ${i}</a>`).join(" ");
const preview = serveSite({
  "/": page("Acme", `${dead} <a href="/a">Other things</a>`),
  "/a": page("Other things", `${dead} <a href="/b">More</a>`),
  "/b": page("More", "<p>Nothing to be found here.</p>"),
});
afterAll(() => {
  live.stop();
  preview.stop();
});

const env = { EVALD_ALLOW_PRIVATE: "127.0.0.1", EVALD_RUNS_PER_HOST: "8" };
const worse = ["--url-map", `${live.url}=${preview.url}`];

/** A data folder with an organization, a key and the prompt `Upload`. */
async function furnished() {
  const cwd = emptyFolder();
  const run = (...args: string[]) => call(args, { cwd, env });
  await run("org", "create", "Acme");
  const key = (await run("key", "create", "--name", "ci")).stdout.trim();
  const text = `Upload a file. ${live.url}/`;
  const made = await run(
    "prompt",
    "create",
    "--title",
    "Upload",
    "--goal",
    "Upload a file with the SDK",
    "--text",
    text,
    "--tag",
    "sdk",
  );
  return { cwd, run, key, promptId: made.stdout.trim() };
}

test("the gate command executes the runs itself in an unused data folder, and fails if the preview is worse", async () => {
  const { cwd, run, promptId } = await furnished();
  const [markdown, junit] = [join(cwd, "gate.md"), join(cwd, "gate.xml")];
  const found = await run("gate", "Upload", ...worse, "--markdown", markdown, "--junit", junit);
  expect([found.code, found.stderr]).toEqual([
    1,
    expect.stringContaining("\n2 of 2 runs finished\nGate failed: regressed: worse by "),
  ]);
  expect(found.stdout).toStartWith("## Gate failed: Upload\n\n**regressed: worse by ");
  expect(found.stdout).toMatch(/\| Runs +\| 1 /);
  expect(found.stdout).toContain("\nNew friction:\n\n- ");
  expect(found.stdout).toContain("- exact difference, without a test");
  expect(await Bun.file(markdown).text()).toBe(found.stdout);
  const xml = await Bun.file(junit).text();
  expect(xml).toContain('<testsuite name="evald gate" tests="1" failures="1" errors="0"');
  expect(xml).toContain('<failure message="regressed: worse by ');

  const same = await run("gate", promptId, "--url-map", `${live.url}=${live.url}`, "--json");
  expect(same.code).toBe(0);
  expect(JSON.parse(same.stdout)).toMatchObject({ status: "passed", comparison: { verdict: "no_change" } });
  const tagged = await run("gate", "--tag", "sdk", ...worse, "--json");
  expect([tagged.code, JSON.parse(tagged.stdout).prompts]).toMatchObject([1, [{ id: promptId }]]);
  // Its runs are the baseline of gates without a preview.
  const alone = await run("gate", "Upload", "--min-score", "99.9", "--scope", "docs_only", "--json");
  expect([alone.code, JSON.parse(alone.stdout)]).toMatchObject([
    1,
    { status: "failed", comparison: { verdict: "no_change" } },
  ]);
  const untested = await run("gate", "Upload", "--min-score", "1");
  expect(untested.code).toBe(3);
}, 300_000);

test("the service executes the runs of a gate from the CLI or REST, and the gate survives a restart", async () => {
  const { cwd, run, key, promptId } = await furnished();
  const first = await serve({ cwd, env });
  expect((await run("gate", "Upload", ...worse)).code).toBe(1);

  const remote = { ...env, EVALD_KEY: key };
  const over = (url: string, more: Record<string, string> = {}) =>
    call(["gate", "Upload", "--runs", "3", ...worse, "--url", url], {
      cwd: emptyFolder(),
      env: { ...remote, ...more },
    });
  const warned = await over(first.url);
  expect([warned.code, warned.stderr]).toEqual([1, expect.stringContaining("\n2 of 2 runs finished\n")]);

  const ask = client(first.url, key);
  const { body: gate } = await ask("POST", "/api/v1/gates", {
    promptId,
    urlMap: { [live.url]: preview.url },
    adaptive: true,
  });
  await first.stop("SIGKILL");
  const again = await serve({ cwd, env });
  const askAgain = client(again.url, key);
  const ended = await until(
    "the gate has ended",
    async () => {
      const { body } = await askAgain("GET", `/api/v1/gates/${gate.id}`);
      return body.status === "running" ? null : body;
    },
    300_000,
  );
  expect(ended).toMatchObject({ status: "failed", comparison: { verdict: "regressed" } });

  expect([
    (await over(again.url, { EVALD_KEY: "evals_wrong" })).code,
    (await over(`${again.url}/nowhere`)).code,
  ]).toEqual([2, 2]);
  await again.stop();
  const gone = await over(again.url);
  expect([gone.code, gone.stderr]).toEqual([3, expect.stringContaining(`Cannot reach ${again.url}`)]);
}, 300_000);

test("a gate continues by itself after its service exits", async () => {
  const { cwd, run, key } = await furnished();
  const first = await serve({ cwd, env });
  const ask = client(first.url, key);
  const waiting = run("gate", "Upload", ...worse);
  await until("the gate has begun", async () => (await ask("GET", "/api/v1/gates")).body.length > 0);
  await first.stop("SIGKILL");
  expect((await waiting).code).toBe(1);
}, 300_000);

test("usage errors have exit code 2, never the code of a worse preview", async () => {
  const { run, cwd } = await furnished();
  const refused = async (...args: string[]) => {
    const { code, stderr } = await run("gate", ...args);
    return [code, stderr.trim()];
  };
  expect(await refused("Nothing")).toEqual([2, expect.stringMatching(/^error: .*"Nothing"/)]);
  expect(await refused("--tag", "none")).toEqual([2, expect.stringMatching(/^error: Invalid tag/)]);
  for (const named of [[], ["Upload", "--tag", "sdk"]])
    expect(await refused(...named)).toEqual([2, expect.stringContaining("--tag")]);
  expect(await refused("Upload")).toEqual([2, expect.stringMatching(/^error: .*urlMap/)]);
  expect(await refused("Upload", "--url-map", "x")).toEqual([2, expect.stringContaining("NAME=VALUE")]);
  expect(await refused("Upload", "--url-map", "docs.example.com=ftp://x")).toEqual([
    2,
    expect.stringContaining("ftp://x"),
  ]);
  expect(await refused("Upload", "--budget-usd", "0")).toEqual([2, expect.stringContaining("above 0")]);
  expect(await refused("Upload", "--url", "http://127.0.0.1:1")).toEqual([
    2,
    expect.stringMatching(/^error: EVALD_KEY /),
  ]);
  // No run has started yet.
  expect(await refused("Upload", "--min-score", "1", "--markdown", join(cwd, "no", "file"))).toEqual([
    2,
    expect.stringMatching(/^error: The directory .*\/no /),
  ]);
});

test("a person pins and unpins the baseline", async () => {
  const { run, promptId } = await furnished();
  const { stdout } = await run("gate", "Upload", "--min-score", "1", "--json");
  const [{ headRequestId }] = JSON.parse(stdout).prompts;
  const pinned = await run("prompt", "baseline", promptId, headRequestId);
  expect([pinned.code, pinned.stdout.trim(), pinned.stderr]).toEqual([0, promptId, expect.stringMatching(/^Pinned /)]);
  const gate = JSON.parse((await run("gate", "Upload", "--json")).stdout);
  expect(gate.comparison.base.evalRequestIds).toEqual([headRequestId]);
  expect((await run("prompt", "baseline", promptId)).stderr).toStartWith("Unpinned ");
});
