// A scripted model, whose ability is known, does the tasks of the baseline suite with three products in real runs.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { createModelAgent } from "../../src/agents/llm/llm.ts";
import type { SuiteComparison } from "../../src/suites/schema.ts";
import { testApp } from "../support/app.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { call, finish, modelKey } from "../support/model-runs.ts";

/** evald itself as a product, beside packages of npm. */
const product = testApp();
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    const [, name] = /\/packages\/(\w+)$/.exec(request.url) ?? [];
    if (name === undefined) return product.app.handle(request);
    const modules = join(import.meta.dir, "../../node_modules");
    return new Response(Bun.spawn(["tar", "-cf", "-", "-C", modules, name]).stdout);
  },
});
const at = `http://127.0.0.1:${server.port}`;
const curl = `curl -s -H "authorization: Bearer ${product.a.key}" -H "content-type: application/json"`;
const prompts = `${at}/api/v1/prompts`;

/** What the model does in every run, whichever product its task is about. */
const commands = [
  "echo 'evald or semver' > answer.json",
  // It stores a prompt, reads a refusal, and deletes what it stored.
  `${curl} -d '{}' ${prompts} > refused.json`,
  `${curl} -d '{"text": "Try it"}' ${prompts} > created.json`,
  `id=$(sed 's/^{"id":"\\([^"]*\\)".*/\\1/' created.json)`,
  `${curl} -X DELETE -o /dev/null -w '%{http_code}' ${prompts}/$id > deleted.txt`,
  // It takes an invalid version for a valid one, and leaves its file behind.
  `curl -s ${at}/packages/semver | tar -x`,
  "node semver/bin/semver.js 1.2.3 -i minor > next.txt",
  "node semver/bin/semver.js 1.2.x > mended.txt",
  `curl -s ${at}/packages/picocolors | tar -x`,
  `node -e 'console.log(require("./picocolors").createColors(true).red(1))' > red.txt`,
  "grep -q 31m red.txt && touch caught.txt removed.txt",
];

const contains = (file: string, text: string) => [{ file, contains: text }];
const products = {
  evald: {
    values: {
      ...{ product: "the service", primaryTask: "store a prompt", packageName: "evald" },
      versionCommand: "grep active created.json",
    },
    checks: {
      core: contains("created.json", "Try it"),
      errors: contains("refused.json", "bad_request"),
      cleanup: contains("deleted.txt", "20"),
    },
  },
  semver: {
    values: {
      ...{ product: "the command", primaryTask: "find the next minor version", packageName: "semver" },
      versionCommand: "node semver/bin/semver.js --help",
    },
    checks: {
      core: contains("next.txt", "1.3.0"),
      errors: contains("mended.txt", "1.2.0"),
      cleanup: [{ file: "cleaned.txt" }],
    },
  },
  picocolors: {
    values: {
      ...{ product: "the library", primaryTask: "print in red", packageName: "picocolors" },
      versionCommand: "node -p 'require(\"./picocolors\").red(1)'",
    },
    checks: { core: contains("red.txt", "31m"), errors: [{ file: "caught.txt" }], cleanup: [{ file: "removed.txt" }] },
  },
};

let fake: ReturnType<typeof serveFakeModel>;
beforeAll(() => {
  const turns = [call("run_command", { command: commands.join("\n"), seconds: 60 }), finish("succeeded", "Done.")];
  fake = serveFakeModel({ scenarios: { able: { turns } } });
});
afterAll(() => Promise.all([fake.stop(), server.stop(true)]));

test("products are compared by what an agent reached in real runs", async () => {
  const app = testApp({
    agents: { llm: createModelAgent({ version: "test" }) },
    env: {
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      OPENAI_COMPATIBLE_API_KEY: modelKey,
      EVALD_AGENT_MODEL: "openai-compatible/able",
      EVALD_ALLOW_PRIVATE: "127.0.0.1",
    },
  });
  const { send } = app;
  const ids: string[] = [];
  for (const [name, { values, checks }] of Object.entries(products)) {
    const { id: providerId } = (await send("POST", "/api/v1/providers", { body: { name, docsUrl: `${at}/docs/` } }))
      .body;
    await send("POST", "/api/v1/suites/baseline/prompts", { body: { providerId, values, checks } });
    const body = { providerIds: [providerId], agent: "llm" };
    expect((await send("POST", "/api/v1/suites/baseline/run", { body })).body).toMatchObject({ runs: 5 });
    ids.push(providerId);
  }
  await app.runJobs();
  const comparison: SuiteComparison = (await send("GET", "/api/v1/suites/baseline/comparison")).body;
  const rows = ids.map((id) => comparison.products.find(({ providerId }) => providerId === id));
  expect(rows.map((row) => row?.slots.map(({ reached }) => reached))).toEqual([
    [1, 1, 1, 1, 1],
    [1, 1, 1, 0, 0],
    [0, 1, 1, 1, 1],
  ]);
  // Wilson's intervals by hand, z² = 3.8415: for 5 of 5, low = 5 / (5 + z²).
  expect(rows.map((row) => row?.share)).toEqual([
    { value: 1, low: 0.566, high: 1 },
    { value: 0.6, low: 0.231, high: 0.882 },
    { value: 0.8, low: 0.376, high: 0.964 },
  ]);
}, 240_000);
