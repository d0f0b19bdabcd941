import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { buildExecutable, client, emptyFolder, furnish, serve, untilRun } from "../support/executable.ts";
import { serveFakeModel, type Turn } from "../support/fake-model.ts";
import { type Site, serveSite } from "../support/site.ts";
import { until } from "../support/until.ts";

const key = "sk-the-real-key-0123456789";
let fake: ReturnType<typeof serveFakeModel>;
let site: Site;

const use = (name: string, input: Record<string, unknown>): Turn => ({ toolCalls: [{ name, input }] });
const page = (links: string) => `<!doctype html><title>Acme</title><h1>Acme</h1><p>Upload a file. ${links}</p>`;

beforeAll(async () => {
  await buildExecutable();
  site = serveSite({ "/": { body: page('<a href="/a">Uploads</a>') }, "/a": { body: page("") } });
  const turns = (scheme: string) => [
    use("run_command", { command: `curl -sS ${scheme}://docs.acme.test/` }),
    use("run_command", { command: `curl -sS ${scheme}://docs.acme.test/a` }),
    use("finish", { outcome: "succeeded", summary: "It was read." }),
  ];
  fake = serveFakeModel({ key, scenarios: { https: { turns: turns("https") }, http: { turns: turns("http") } } });
}, 300_000);
afterAll(() => {
  fake.stop();
  site.stop();
});

test("a mapped HTTPS host costs the docs of a command no more than an HTTP host", async () => {
  const cwd = emptyFolder();
  const temporary = emptyFolder();
  const { key: apiKey } = await furnish(cwd);
  const service = await serve({
    cwd,
    env: {
      TMPDIR: temporary,
      OPENAI_COMPATIBLE_API_KEY: key,
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      EVALD_ALLOW_PRIVATE: "127.0.0.1",
    },
  });
  const ask = client(service.url, apiKey);
  async function evaluate(scheme: string) {
    const start = `${scheme}://docs.acme.test/`;
    const prompt = await ask("POST", "/api/v1/prompts", {
      text: `Find out at ${start} how to upload a file.`,
      model: `openai-compatible/${scheme}`,
    });
    const { runId } = (
      await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap: { "docs.acme.test": site.url } })
    ).body;
    const run = await untilRun(ask, runId, "completed", "failed");
    expect(run.failureReason).toBeNull();
    const { body: report } = await ask("GET", `/api/v1/reports/${run.report.slug}`);
    const { body } = await ask("GET", `/api/v1/reports/${run.report.slug}/trace`);
    return { report, events: body.events as Record<string, unknown>[] };
  }
  const plain = await evaluate("http");
  const encrypted = await evaluate("https");
  const { score, frictionPoints } = encrypted.report;
  expect(score).toBeNumber();
  expect({ score, frictionPoints }).toEqual({ score: plain.report.score, frictionPoints: [] });
  const requests = encrypted.events.filter(({ type }) => type === "http");
  expect(requests).toMatchObject([
    { id: "t1", url: "https://docs.acme.test/", mappedUrl: `${site.url}/`, status: 200, provenance: "given" },
    { id: "t2", url: "https://docs.acme.test/a", status: 200, provenance: "link", foundOn: "https://docs.acme.test/" },
  ]);
  const read = encrypted.events.filter(({ name }) => name === "page_read");
  expect(read).toMatchObject([
    { detail: { url: "https://docs.acme.test/", title: "Acme" } },
    { detail: { url: "https://docs.acme.test/a" } },
  ]);
  // The folders of both runs are removed. Those of the process that waits for the next run stay until the service stops.
  const homes = () => readdirSync(temporary).filter((name) => name.startsWith("evald-egress-"));
  const runFolders = () =>
    homes().flatMap((home) => readdirSync(`${temporary}/${home}`).filter((name) => name.startsWith("run-")));
  await until("the folders of the runs are removed", () => runFolders().length <= 1);
  expect(await service.stop()).toBe(0);
  expect(homes()).toEqual([]);
});
