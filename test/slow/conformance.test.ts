import { expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { Surface } from "../../src/mcp/endpoint.ts";
import { fixtures } from "../conformance/fixtures.ts";
import { testApp } from "../support/app.ts";
import { niceGrade, runWithReport } from "../support/reports.ts";

const root = join(import.meta.dir, "..", "..");
const suite = join(root, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
// The numbers are from the suite's own list for each revision.
const revisions = [
  ["2025-11-25", 30],
  ["2026-07-28", 37],
] as const;

/** Serves an app on loopback to a suite without a key: each request gets one. `answer` may handle a request before the app. */
function serve(surface?: Surface, answer: (message: Message) => Response | null = () => null) {
  let handle: (request: Request) => Response | Promise<Response>;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const headers = new Headers(request.headers);
      headers.set("authorization", `Bearer ${app.a.key}`);
      const body = request.method === "POST" ? await request.text() : undefined;
      return (
        answer(JSON.parse(body ?? "{}")) ?? handle(new Request(request.url, { method: request.method, headers, body }))
      );
    },
  });
  const url = `http://127.0.0.1:${server.port}`;
  const app = testApp({ env: { EVALD_BASE_URL: url }, surface });
  handle = app.app.handle;
  return { url: `${url}/api/mcp`, app, stop: () => server.stop(true) };
}

type Message = { id?: string | number; method?: string };

/**
 * Passes a client's response to the transport that sent the request: the service itself has no sessions and sends no
 * requests, but fixtures do.
 */
function answersFindTheirWay() {
  const asking = new Map<unknown, WebStandardStreamableHTTPServerTransport>();
  const transports = WebStandardStreamableHTTPServerTransport.prototype;
  const { send } = transports;
  const spy = spyOn(transports, "send").mockImplementation(function (
    this: WebStandardStreamableHTTPServerTransport,
    message,
    options,
  ) {
    if ("method" in message && "id" in message) asking.set(message.id, this);
    return send.call(this, message, options);
  });
  return {
    restore: () => spy.mockRestore(),
    answer(message: Message): Response | null {
      if (message.method !== undefined || message.id === undefined) return null;
      asking.get(message.id)?.onmessage?.(message as never);
      return new Response(null, { status: 202 });
    },
  };
}

/** Runs a revision's requirements for servers. `baseline`: expected failures; any other failure, and any unexpected success, is an error. */
async function conform(url: string, revision: string, baseline?: string) {
  const out = mkdtempSync(join(tmpdir(), "evald-conformance-"));
  const expected = baseline === undefined ? [] : ["--expected-failures", join(root, "test", "conformance", baseline)];
  const child = Bun.spawn(
    [process.execPath, "--bun", suite, "server", "--url", url, "--requirements", revision, ...expected, "-o", out],
    { cwd: root, stdout: "pipe", stderr: "pipe" },
  );
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  rmSync(out, { recursive: true });
  const summary = /=== SUMMARY ===\n([\s\S]*)\nTotal: /.exec(stdout)?.[1] ?? "";
  const others = new Set([...stdout.matchAll(/^ {2}[✓✗] (\S+) \(/gm)].map(([, name]) => name));
  const scored = [...summary.matchAll(/^([✓✗]) ([\w-]+):/gm)].filter(([, , name]) => !others.has(name ?? ""));
  const failed = scored.filter(([, mark]) => mark === "✗").map(([, , name]) => name);
  return { code, output: stdout + stderr, scored: scored.length, failed };
}

test.each(revisions)(
  "the endpoint conforms to %s in all %d scored scenarios, with the suite's fixtures in place of the tools",
  async (revision, count) => {
    const { answer, restore } = answersFindTheirWay();
    const { url, stop } = serve(fixtures, answer);
    try {
      const { code, output, scored, failed } = await conform(url, revision);
      expect([failed, scored, code], output).toEqual([[], count, 0]);
    } finally {
      restore();
      await stop();
    }
  },
  300_000,
);

test.each(revisions)(
  "the product conforms to %s except for the fixtures that it lacks",
  async (revision) => {
    const { url, app, stop } = serve();
    try {
      runWithReport(app, niceGrade);
      const { code, output } = await conform(url, revision, `baseline-${revision}.yml`);
      expect(code, output).toBe(0);
    } finally {
      await stop();
    }
  },
  300_000,
);
