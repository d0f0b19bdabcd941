import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { buildExecutable, call, client, emptyFolder, serve } from "./support/executable.ts";
import { serveSite } from "./support/site.ts";

beforeAll(buildExecutable, 120_000);

const page = (title: string, body: string) => ({
  body: `<!doctype html><html lang="en"><title>${title}</title><main><h1>${title}</h1>${body}</main></html>`,
});
const guide = page(
  "Upload a file",
  "<p>Upload a file with the SDK.</p><pre><code class='language-js'>acme.upload();</code></pre>",
);
/** What is live: the start page leads to the guide. */
const live = serveSite({ "/": page("Acme", '<p><a href="/upload">Upload a file</a></p>'), "/upload": guide });
/** A preview in which that link is dead, and the guide lies behind other pages. */
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

/** A data folder with an organisation, a key and the prompt `Upload`. */
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
  );
  return { cwd, run, key, promptId: made.stdout.trim() };
}

test("in a data folder that nobody serves it does the runs itself, says what it found and fails where the preview is worse", async () => {
  const { cwd, run, promptId } = await furnished();
  const [markdown, junit] = [join(cwd, "gate.md"), join(cwd, "gate.xml")];
  const found = await run("gate", "--prompt", "Upload", ...worse, "--markdown", markdown, "--junit", junit);
  expect([found.code, found.stderr]).toEqual([
    1,
    expect.stringContaining("\n10 of 10 runs have ended\ngate failed: regressed: -"),
  ]);
  expect(found.stdout).toStartWith("## Gate failed: Upload\n\n**regressed: -");
  expect(found.stdout).toContain("| Runs         | 5 ");
  expect(found.stdout).toContain("\nNew friction:\n\n- ");
  expect(found.stdout).toContain("- two-sided permutation test of the mean scores (all 252 splits)");
  expect(await Bun.file(markdown).text()).toBe(found.stdout);
  const xml = await Bun.file(junit).text();
  expect(xml).toContain('<testsuite name="evald gate" tests="1" failures="1" errors="0"');
  expect(xml).toContain('<failure message="regressed: -');

  const same = await run("gate", "--prompt", promptId, "--url-map", `${live.url}=${live.url}`, "--json");
  expect(same.code).toBe(0);
  expect(JSON.parse(same.stdout)).toMatchObject({ status: "passed", comparison: { verdict: "no_change" } });
  // Its runs are the baseline of what is asked for without a preview.
  const alone = await run("gate", "--prompt", "Upload", "--min-score", "99.9");
  expect([alone.code, alone.stdout]).toEqual([
    1,
    expect.stringMatching(/^## Gate failed: Upload\n\n\*\*the mean score \S+ is below 99.9; no_change: /),
  ]);
}, 120_000);

test("beside a service, and over REST, the service does the runs; a gate outlives its end", async () => {
  const { cwd, run, key, promptId } = await furnished();
  const first = await serve({ cwd, env });
  expect((await run("gate", "--prompt", "Upload", ...worse)).code).toBe(1);

  const remote = { ...env, EVALD_KEY: key };
  const over = (url: string, more: Record<string, string> = {}) =>
    call(["gate", "--prompt", "Upload", "--runs", "3", ...worse, "--url", url], {
      cwd: emptyFolder(),
      env: { ...remote, ...more },
    });
  const warned = await over(first.url);
  expect([warned.code, warned.stderr]).toEqual([
    0,
    expect.stringContaining("warning: 3 runs a side: fewer than 4 cannot"),
  ]);

  const ask = client(first.url, key);
  const { body: gate } = await ask("POST", "/api/v1/gates", {
    promptId,
    urlMap: { [live.url]: preview.url },
    adaptive: true,
  });
  await first.stop("SIGKILL");
  const again = await serve({ cwd, env });
  const askAgain = client(again.url, key);
  let ended = gate;
  while (ended.status === "running") ended = (await askAgain("GET", `/api/v1/gates/${gate.id}`)).body;
  expect(ended).toMatchObject({ status: "failed", comparison: { verdict: "regressed" } });

  expect([
    (await over(again.url, { EVALD_KEY: "evals_wrong" })).code,
    (await over(`${again.url}/nowhere`)).code,
  ]).toEqual([2, 2]);
  await again.stop();
  const gone = await over(again.url);
  expect([gone.code, gone.stderr]).toEqual([3, expect.stringContaining(`${again.url} cannot be reached`)]);
}, 120_000);

test("whose service goes away goes on by itself", async () => {
  const { cwd, run, key } = await furnished();
  const first = await serve({ cwd, env });
  const ask = client(first.url, key);
  const waiting = run("gate", "--prompt", "Upload", ...worse);
  while ((await ask("GET", "/api/v1/gates")).body.length === 0);
  await first.stop("SIGKILL");
  expect((await waiting).code).toBe(1);
}, 120_000);

test("a wrong call has exit code 2, and never that of a preview that is worse", async () => {
  const { run, cwd } = await furnished();
  const refused = async (...args: string[]) => {
    const { code, stderr } = await run("gate", ...args);
    return [code, stderr.trim()];
  };
  expect(await refused("--prompt", "Nothing")).toEqual([
    2,
    'evald: --prompt: no prompt has the id or title "Nothing"; evald prompt list shows them',
  ]);
  expect(await refused("--prompt", "Upload")).toEqual([
    2,
    expect.stringContaining("there is nothing to compare with: give urlMap"),
  ]);
  expect(await refused("--prompt", "Upload", "--url-map", "x")).toEqual([
    2,
    expect.stringContaining("It must be NAME=VALUE."),
  ]);
  expect(await refused("--prompt", "Upload", "--url-map", "docs.example.com=ftp://x")).toEqual([
    2,
    expect.stringContaining("ftp://x"),
  ]);
  expect(await refused("--prompt", "Upload", "--budget-usd", "0")).toEqual([2, expect.stringContaining("above 0")]);
  expect(await refused("--prompt", "Upload", "--url", "http://127.0.0.1:1")).toEqual([
    2,
    "evald: an API key is needed in EVALD_KEY; evald key create makes one where the service is",
  ]);
  // Before a run is made.
  expect(await refused("--prompt", "Upload", "--min-score", "1", "--markdown", join(cwd, "no", "file"))).toEqual([
    2,
    expect.stringMatching(/^evald: \S+\/no\/file cannot be written \(ENOENT.*\); name another file$/),
  ]);
}, 60_000);

test("a person pins the baseline, and takes the pin away", async () => {
  const { run, promptId } = await furnished();
  const { stdout } = await run("gate", "--prompt", "Upload", "--min-score", "1", "--json");
  const { headRequestId } = JSON.parse(stdout);
  const pinned = await run("prompt", "baseline", promptId, headRequestId);
  expect([pinned.code, pinned.stdout.trim(), pinned.stderr]).toEqual([
    0,
    promptId,
    "baseline pinned\nwarning: 1 of 4 runs: fewer cannot tell a change from the pinned baseline from chance; set runsPerEval to 5\n",
  ]);
  const gate = JSON.parse((await run("gate", "--prompt", "Upload", "--json")).stdout);
  expect(gate.comparison.base.evalRequestIds).toEqual([headRequestId]);
  expect((await run("prompt", "baseline", promptId)).stderr).toBe(
    "the last published runs are the baseline\nwarning: 1 of 4 runs: fewer cannot tell a change from what its gates run from chance; set runsPerEval to 5\n",
  );
}, 60_000);
