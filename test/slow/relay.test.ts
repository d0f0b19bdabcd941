import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentEvent } from "../../src/agents/agent.ts";
import { type Egress, startEgress } from "../../src/agents/egress/egress.ts";
import { openRelay } from "../../src/agents/relay/relay.ts";
import { compiledProgram } from "../../src/agents/sandbox/sandbox.ts";
import type { Task } from "../../src/agents/task.ts";
import { buildExecutable, executable } from "../support/executable.ts";
import { wideLimits } from "../support/limits.ts";
import { inSandbox } from "../support/sandboxed.ts";
import { type Site, serveSite } from "../support/site.ts";

const page = "<!doctype html><title>Upload</title><h1>Upload</h1><p>Send the file with <code>PUT /files</code>.</p>";
const stops: (() => unknown)[] = [];
let folder = "";
let egress: Egress;
let site: Site;

beforeAll(async () => {
  await buildExecutable();
  folder = mkdtempSync(join(tmpdir(), "evald-relay-"));
  egress = await startEgress({ socketPath: join(folder, "egress.sock"), operatorHosts: [], now: Date.now });
  site = serveSite({
    "/a": { body: page },
    "/text": { body: "hello\n", type: "text/plain" },
  });
}, 120_000);
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
afterAll(async () => {
  await egress.close();
  site.stop();
  rmSync(folder, { recursive: true });
});

type Run = { startUrls?: string[]; productUrl?: string | null; urlMap?: Record<string, string> };

/** A run with a relay; `shell` runs a script in a sandbox of it, as the tool call `t1`. */
async function open(run: Run = {}) {
  const task: Task = {
    text: "Upload a file",
    endGoal: null,
    limits: wideLimits,
    startUrls: ["https://docs.acme.test/a"],
    productUrl: null,
    urlMap: { "docs.acme.test": site.url },
    declaredChecks: [],
    ...run,
  };
  const events: AgentEvent[] = [];
  const session = egress.open({
    addresses: task.productUrl ? [task.productUrl] : [],
    docsAddresses: task.startUrls,
    urlMap: task.urlMap,
    allowPrivate: [{ host: "127.0.0.1", port: null }],
    onEvent: (event) => events.push(event),
  });
  const home = mkdtempSync(join(folder, "run-"));
  const relay = await openRelay({
    folder: home,
    egress: { path: egress.socketPath, token: session.token },
    task,
    now: Date.now,
  });
  stops.push(session.close, () => relay[Symbol.asyncDispose]());
  const shell = (script: string) =>
    inSandbox({
      argv: ["sh", "-c", script],
      sockets: { egress: relay.wayOut("t1") },
      program: compiledProgram(executable),
    });
  const https = () => events.filter((event) => event.type === "http");
  return { shell, https, home, relay };
}

describe("programs fetch an https page of a mapped host", () => {
  test.each([
    ["curl", "curl -sS https://docs.acme.test/text"],
    ["curl, by a plain tunnel", "curl -sSp http://docs.acme.test/text"],
    ["wget", "wget -qO- https://docs.acme.test/text"],
    [
      "Python",
      `python3 -c "import urllib.request as u; print(u.urlopen('https://docs.acme.test/text').read().decode(), end='')"`,
    ],
  ])("%s", async (_, command) => {
    const { shell, https } = await open();
    expect(await shell(command)).toMatchObject({ exitCode: 0, out: "hello\n" });
    expect(https()).toMatchObject([
      { id: "t1", method: "GET", mappedUrl: `${site.url}/text`, status: 200, bytes: 6, error: null },
    ]);
  });
});

test("the run's own port on loopback is reached, and the program's own servers as well", async () => {
  const { shell, https } = await open({ startUrls: [`${site.url}/a`], urlMap: {} });
  const own =
    "python3 -m http.server 8765 >/dev/null 2>&1 & echo mine >mine; until curl -s http://localhost:8765/mine; do sleep 0.1; done";
  expect(await shell(`curl -sS ${site.url}/text; ${own}`)).toMatchObject({ out: "hello\nmine\n", err: "" });
  expect(https()).toMatchObject([{ id: "t1", url: `${site.url}/text`, status: 200 }]);
});

test("a host outside the run is refused by name", async () => {
  const { shell, https } = await open();
  const { exitCode, err } = await shell("curl -sSv https://other.test/");
  expect(exitCode).not.toBe(0);
  expect(err).toContain("403");
  expect(https()).toMatchObject([{ method: "CONNECT", url: "https://other.test/", error: { kind: "refused" } }]);
});
