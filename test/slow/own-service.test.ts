import { afterAll, beforeAll, expect, test } from "bun:test";
import { buildExecutable, client, emptyFolder, furnish, serve, untilRun } from "../support/executable.ts";
import { serveFakeModel, type Turn } from "../support/fake-model.ts";
import { call, finish, modelKey } from "../support/model-runs.ts";

/** Filled in when the URL of the service is known. */
const turns: Turn[] = [];
let fake: ReturnType<typeof serveFakeModel>;

beforeAll(async () => {
  await buildExecutable();
  fake = serveFakeModel({ key: modelKey, scenarios: { own: { turns } } });
}, 300_000);
afterAll(() => fake.stop());

/** Options of curl by how a command reaches the network: the ports in its sandbox, and the proxy by requests and by tunnels. */
const ways = {
  port: "",
  proxy: "--noproxy '' -x http://127.0.0.1:3128",
  tunnel: "--noproxy '' -p -x http://127.0.0.1:3128",
};
const hosts = ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "0.0.0.0"];

/** Requests that only the service itself answers, whatever their headers say. */
const closed = [
  "-X POST -H 'X-Forwarded-For: 203.0.113.7' -d 'email=a@b.example&password=guess' /sign-in",
  "-X POST -H 'Forwarded: for=203.0.113.7' -d '{}' /gateway/openai-compatible/v1/chat/completions",
  "/gateway/files/archive",
  "-H 'Authorization: Bearer evals_0' /api/v1/runs",
  "-X POST -d '{}' /api/v1/prompts",
  "-X POST -d '{}' /mcp",
  "/sign-in",
  "/healthz",
  "--path-as-is /docs/../sign-in",
  "--path-as-is /docs/%2e%2e/sign-in",
  "/docs%2f..%2fsign-in",
  "//docs",
  "-X POST -d x /docs",
  "-X OPTIONS /docs",
];

const toUrl = (options: string, host: string, port: string) => options.replace(/(\S+)$/, `"http://${host}:${port}$1"`);
/** Prints the status of a response. */
const askStatus = (options: string, host: string, port: string) =>
  `curl -sS -m 20 -o /dev/null -w '%{http_code}\\n' ${toUrl(options, host, port)} 2>/dev/null`;
/** Prints the start of a response; nothing if nothing listens there in the sandbox. */
const askText = (options: string, host: string, port: string) =>
  `curl -sS -m 20 ${toUrl(options, host, port)} 2>/dev/null | head -c 16 | tr -d '\\n'; echo`;
/** Sent by the proxy, and by what serves the public pages. */
const refusals = /^(evald: .*|Runs may read on|)$/;

test("a run reads the docs and the example of its service, and reaches nothing else of it by any spelling of its host", async () => {
  const cwd = emptyFolder();
  const { key } = await furnish(cwd);
  const service = await serve({
    cwd,
    env: {
      PATH: process.env.PATH ?? "",
      EVALD_TRUST_PROXY: "1",
      EVALD_LOG_LEVEL: "debug",
      OPENAI_COMPATIBLE_API_KEY: modelKey,
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      EVALD_AGENT_MODEL: "openai-compatible/own",
    },
  });
  const { port } = new URL(service.url);
  const open = ["/docs", "/docs/start.md", "/example", "/example/quickstart", "/openapi.json", "-I /docs"];
  const openCases = ["", ways.proxy].flatMap((way) =>
    open.map((path) => askStatus(`${way} ${path}`, "127.0.0.1", port)),
  );
  const closedCases = Object.values(ways).flatMap((way) => [
    ...closed.map((options) => askText(`${way} ${options}`, "127.0.0.1", port)),
    ...hosts.map((host) => askText(`${way} ${closed[0]}`, host, port)),
  ]);
  // An address of its own per attempt, so that no limit of attempts would end them.
  const attempt = `-X POST -H "X-Forwarded-For: 203.0.113.$i" -d "email=person$i@team.example&password=guess" /sign-in`;
  const spray = Object.values(ways).map(
    (way) => `for i in $(seq 64); do ${askText(`${way} ${attempt}`, "127.0.0.1", port)}; done`,
  );
  turns.push(
    call("run_command", { command: openCases.join("\n"), seconds: 120 }),
    call("run_command", { command: closedCases.join("\n"), seconds: 120 }),
    call("run_command", { command: spray.join("\n"), seconds: 120 }),
    finish("succeeded", "Done."),
  );
  const ask = client(service.url, key);
  const starts = ["127.0.0.1", "localhost", "[::1]"].map((host) => `http://${host}:${port}/docs`);
  const { body: prompt } = await ask("POST", "/api/v1/prompts", {
    text: `Read ${starts.join(" and ")}.`,
    agent: "llm",
  });
  const { body } = await ask("POST", `/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
  const run = await untilRun(ask, body.runId, "completed", "failed");
  expect([run.status, run.failureReason]).toEqual(["completed", null]);
  const { body: trace } = await ask("GET", `/api/v1/reports/${run.report.slug}/trace?types=tool_result`);
  const [read, refused, sprayed] = trace.events.map(({ output }: { output: { stdout: string } }) =>
    output.stdout?.split("\n").slice(0, -1),
  );
  expect(read).toEqual(openCases.map(() => "200"));
  const answered = closedCases.flatMap((command, i) => (refusals.test(refused[i]) ? [] : [[command, refused[i]]]));
  expect([refused.length, answered]).toEqual([closedCases.length, []]);
  expect([sprayed.length, sprayed.filter((text: string) => !refusals.test(text))]).toEqual([64 * spray.length, []]);
  await service.stop();
  expect(service.stderr()).not.toMatch(/"path":"\/(sign-in|gateway|mcp|healthz)/);
}, 300_000);
