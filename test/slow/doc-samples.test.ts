import { beforeAll, expect, test } from "bun:test";
import { dirname, join } from "node:path";
import { buildExecutable, call, client, emptyFolder, executable, serve, untilRun } from "../support/executable.ts";

beforeAll(buildExecutable, 300_000);

const codeOf = (markdown: string, language: string) =>
  [...markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , code = ""]) => code);

/** The expected output of each bash sample of a page, in order. */
const samples: Record<string, RegExp[]> = {
  "start.md": [
    /^# \S[\s\S]*\| Docs quality +\|/,
    /^$/,
    /"organization":\{"id":"[^"]+","name":"Test"/,
    /"title": "First report"/,
    /"statusUrl": "http/,
    /"status": "completed",\n {2}"score": \d/,
  ],
  "rest.md": [
    /^x-total-count: 1\r$/m,
    /"name":"Test"/,
    /^\[\{"id":"[^"]+","title":"First report"/,
    /^\{"id":"[^"]+","title":null,"text":"Find out/,
    /^\{"id":"[^"]+","title":null,"text":"Find out/,
    /^\{"id":"[^"]+","title":"Error codes","text":"Find out/,
    /^\{"runId":"[^"]+","statusUrl":"http/,
    /^\[\{"runId":"[^"]+","status":"completed"/,
    /^\{"runId":"[^"]+","status":"completed"/,
    /^\[\{"slug":"error-codes-/,
    /^\{"slug":"error-codes-/,
    /^error-codes-\w+ published\n$/,
    /^revoked\n$/,
    /^\{"events":\[\{"seq":\d+,.*"type":"http"/,
    /"ready"[\s\S]*^\/api\/v1\/runs$/m,
  ],
  "runs.md": [
    /^\{\n {2}"slug": "error-codes-/,
    / event\n +\d+ run\n$/,
    /"outcome": "done"/,
    /^(cancelled: by the API key "test"|The run has already ended with status completed\.)$/m,
    /^http\S+\/api\/v1\/runs\/\S+$/m,
    /"successBar":\{"scope":"docs_only","minScore":80\}/,
    /^\{"runId":"[^"]+","statusUrl":"http/,
    /\tcompleted\t\S*\tError codes\n/,
  ],
  "reports.md": [/^# \S[\s\S]*"outcome": "not_judged"/, /^\d+\tend\t\w/m],
  "regrading.md": [
    /^\{\n {2}"status": "planned",\n {2}"total": \d+,\n {2}"graded": 0,/,
    /^[0-9a-f-]{36}\n$/,
    /^3\tno judge\t\S*\ttrue\n$/,
  ],
  "exports.md": [
    /^acme\.jsonl\nslug,createdAt,/,
    /^error-codes-[0-9a-f]{8}\t\d/m,
    /^0\n$/,
    /^report\.jsonl\nverified\n$/,
  ],
  "gates.md": [
    /^## \S.*Error codes\n/,
    /^\{\n {2}"status": "(running|passed)",[\s\S]*"warnings": \[/,
    /^\{\n {2}"verdict": /,
  ],
  "history.md": [
    /^$|^\{\n {2}"kind": "/,
    /^$|^(high|medium|low)\t(new|open)\t\d+ of \d+\t/,
    /^[1-9]\d*\n/,
    /"n": \d+,\n {2}"mean": \d/,
    // No prompt has this tag.
    /^$/,
    /"totals": \{\n {4}"pages": [1-9]/,
  ],
  "mcp.md": [
    /"structuredContent":\{"reports":\[\{"slug":"error-codes-/,
    /^\{\n {2}"grade": [^\n]+\n {2}"keyFinding": "/,
  ],
  "prompts.md": [
    /^\{"id":"[^"]+","title":"Upload a file"/,
    /^[0-9a-f-]{36}\n$/,
    /^[0-9a-f-]{36}\n$/,
    /^[0-9a-f-]{36}\n$/,
    /"status":"paused"[\s\S]*"status":"active"/,
  ],
  "scoring.md": [/^82\.5\n$/],
  "keys.md": [
    /^[0-9a-f-]{36}\nevals_\w{36}\n$/,
    /^$/,
    /^$/,
    /"name":"Test"/,
    /^<!doctype html>[\s\S]*<title>Run: /,
    /^ID +KEY[\s\S]* laptop [\s\S]* ci /,
    /^\{\n {2}"name": "test",\n {2}"createdBy": null,/,
    /^[0-9a-f-]{36}\n$/,
    /^$/,
  ],
  "field.md": [
    /^$/,
    /^\{"id":"[0-9a-f-]{36}","receivedAt":"[^"]+"\}$/,
    /^open\t1\thttp\S+\/upload\tAttributeError/,
    /^"resolved"\n$/,
  ],
  "schedules.md": [/^[0-9a-f-]{36}\n$/, /^[0-9a-f-]{36}\n$/, /^\[\]\n$/],
  "people.md": [/^[0-9a-f-]{36}\nhttp\S+\/setup\/\S+\n$/, /^$/, /^$/],
};

test("every bash sample prints the expected output, page by page, with the executable", async () => {
  const cwd = emptyFolder();
  // Only the samples are tested here, so short runs are enough.
  const short = { EVALD_MAX_PAGES: "3", EVALD_MAX_REQUESTS: "20", EVALD_SECRET_KEY: "0".repeat(64) };
  const service = await serve({ cwd, env: short });
  await call(["org", "create", "Test"], { cwd });
  const key = (await call(["key", "create", "--name", "test"], { cwd })).stdout.trim();
  const ask = client(service.url, key);
  const env = { ...short, PATH: `${dirname(executable)}:${process.env.PATH}`, EVALD_URL: service.url, EVALD_KEY: key };

  async function run(sample: string): Promise<string> {
    const code = sample
      .replace("evals_your_key_here", key)
      .replace("http://localhost:3000", service.url)
      .replace(/https:\/\/docs\.(example\.com|acme\.example)/, `${service.url}/docs`);
    const shell = Bun.spawn(["bash", "-euo", "pipefail", "-c", code], { cwd, env, stdout: "pipe", stderr: "pipe" });
    const outputs = [new Response(shell.stdout).text(), new Response(shell.stderr).text(), shell.exited] as const;
    const [stdout, stderr, exit] = await Promise.all(outputs);
    expect([code, exit, exit === 0 || stderr]).toEqual([code, 0, true]);
    for (const { runId } of (await ask("GET", "/api/v1/runs")).body) await untilRun(ask, runId, "completed", "failed");
    return stdout;
  }

  for (const [page, prints] of Object.entries(samples)) {
    const codes = codeOf(await (await fetch(`${service.url}/docs/${page}`)).text(), "bash");
    expect([page, codes.length]).toEqual([page, prints.length]);
    for (const [i, code] of codes.entries()) expect(await run(code), code).toMatch(prints[i] as RegExp);
  }
  const readme = await Bun.file(join(import.meta.dir, "..", "..", "README.md")).text();
  const rest = codeOf(readme, "sh").filter((code) => code.includes("curl"));
  expect(rest.length).toBe(1);
  for (const code of rest) expect(await run(code)).toMatch(/^\{\n {2}"status": "(pending|running|completed)",/);
  expect(await service.stop()).toBe(0);
}, 300_000);
