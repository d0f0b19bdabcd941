import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buildExecutable, call, emptyFolder } from "../support/executable.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { call as callTool, finish } from "../support/model-runs.ts";

beforeAll(buildExecutable, 300_000);
const root = mkdtempSync(join(tmpdir(), "evald-site-"));
const at = "https://docs.acme.example/latest/";
const build = join(root, "build");
const page = (title: string, body: string) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title><link rel="canonical" href="${at}"></head><body><main><h1>${title}</h1><p>${"Acme stores files. ".repeat(20)}</p>${body}</main></body></html>`;
const files = {
  "index.html": page("Acme", `<a href="${at}guide/">Upload a file</a> <a href="/latest/reference">Reference</a>`),
  "guide/index.html": page(
    "Upload a file",
    '<p>Install the client.</p><pre><code class="language-sh">acme upload a.txt</code></pre>',
  ),
  "reference.html": page("Reference", '<a href="guide/">Upload a file</a>'),
};
for (const [path, content] of Object.entries(files)) {
  mkdirSync(dirname(join(build, path)), { recursive: true });
  writeFileSync(join(build, path), content);
}
const broken = join(root, "broken");
cpSync(build, broken, { recursive: true });
rmSync(join(broken, "guide"), { recursive: true });

const fake = serveFakeModel({
  scenarios: {
    site: {
      turns: [
        callTool("run_command", {
          command: `curl -sS ${at}guide/ | grep -c "acme upload"; curl -s -o /dev/null -w "%{http_code}" ${at}nothing`,
        }),
        callTool("fetch_page", { url: `${at}reference` }),
        finish("succeeded", "Read it."),
      ],
    },
  },
});
afterAll(() => {
  fake.stop();
  rmSync(root, { recursive: true });
});

test("evald eval reads the docs in a folder as if they were published", async () => {
  const { code, stdout, stderr } = await call(["eval", build, "--goal", "Upload a file", "--json"], {
    cwd: emptyFolder(),
  });
  expect(code).toBe(0);
  expect(stderr).toContain(`as ${at} (canonical link of index.html). Host rules: plain.`);
  const report = JSON.parse(stdout);
  expect(report.frictions ?? report.frictionPoints).toBeDefined();
  expect(report.run.urlMap).toEqual({
    "docs.acme.example": expect.stringMatching(/^http:\/\/[0-9a-f]{12}\.site\.invalid\/$/),
  });
  expect(stderr).toContain(`200 ${at}guide/`);
  expect(stdout).not.toContain("Dead link");
});

test("a gate compares the docs in two folders without a network", async () => {
  const cwd = emptyFolder();
  const run = (...args: string[]) => call(args, { cwd });
  await run("org", "create", "Acme");
  const provider = (await run("provider", "create", "--name", "Acme", "--docs-url", at)).stdout.trim();
  const created = await run("prompt", "create", "--title", "Upload", "--text", "Upload a file", "--provider", provider);
  expect([created.code, created.stderr]).toEqual([0, expect.anything()]);
  const worse = await run("gate", "Upload", "--head", broken, "--base", build, "--json");
  expect([worse.code, worse.stderr]).toEqual([1, expect.stringContaining("Gate failed")]);
  const same = await run("gate", "Upload", "--head", build, "--base", build, "--json");
  expect(same.code).toBe(0);
  const none = await run("gate", "Upload", "--base", build);
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("--head")]);
  const single = await run("run", "Upload", "--docs", build, "--wait", "--json");
  expect(single.code).toBe(0);
});

test("commands in the sandbox of a model agent reach the docs in a folder", async () => {
  const env = {
    OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
    OPENAI_COMPATIBLE_API_KEY: "sk-test",
    EVALD_MODEL_PRICES: '{"openai-compatible/site": {"in": 1, "out": 1}}',
  };
  const args = [
    "eval",
    build,
    "--goal",
    "Upload a file",
    "--agent",
    "llm",
    "--model",
    "openai-compatible/site",
    "--json",
  ];
  const { code, stdout, stderr } = await call(args, { cwd: emptyFolder(), env });
  expect([code, stderr]).toEqual([0, expect.anything()]);
  expect(JSON.stringify(fake.requests.at(-1))).toContain("1\\\\n404");
  const { metrics } = JSON.parse(stdout);
  expect(metrics.errors).toBe(1);
});
