import { beforeAll, expect, test } from "bun:test";
import { table } from "../../src/cli/terminal.ts";
import { buildExecutable, call, client, emptyFolder, executable, serve } from "../support/executable.ts";
import { until } from "../support/until.ts";

beforeAll(buildExecutable, 300_000);

/** Docs that never answer, so that runs of them go on. */
function silentDocs() {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: () => new Promise<Response>(() => {}),
  });
  return { url: server.url.origin, stop: () => server.stop(true) };
}

/** Starts a command, and interrupts it as soon as its messages match. */
async function interrupt(args: string[], { cwd, env }: { cwd: string; env: Record<string, string> }, when: RegExp) {
  const child = Bun.spawn([executable, ...args], {
    cwd,
    env: { PATH: process.env.PATH ?? "", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  let said = "";
  for await (const chunk of child.stderr) {
    const wasSaid = when.test(said);
    said += new TextDecoder().decode(chunk);
    if (!wasSaid && when.test(said)) child.kill("SIGINT");
  }
  return { code: await child.exited, said, stdout: await new Response(child.stdout).text() };
}

test("an interrupted run, gate or evaluation says what goes on, and runs and gates can be cancelled", async () => {
  const docs = silentDocs();
  const cwd = emptyFolder();
  const allowed = { EVALD_ALLOW_PRIVATE: "127.0.0.1" };
  await call(["org", "create", "Acme"], { cwd });
  const key = (await call(["key", "create", "--name", "ci"], { cwd })).stdout.trim();
  const service = await serve({ cwd, env: allowed });
  const away = { cwd: emptyFolder(), env: { EVALD_URL: service.url, EVALD_KEY: key } };
  const send = client(service.url, key);
  const text = `Upload a file. ${docs.url}/`;
  await call(["prompt", "create", "--title", "Upload", "--text", text, "--agent", "explorer"], away);

  const run = await interrupt(["run", "Upload", "--wait", "--json"], away, /: running/);
  const [, runId = ""] = /^Run (\S+):/.exec(run.said) ?? [];
  expect([run.code, JSON.parse(run.stdout)]).toEqual([
    130,
    { error: "interrupted", detail: expect.stringContaining(`evald cancel ${runId}`) },
  ]);
  expect((await send("GET", `/api/v1/runs/${runId}`)).body.completedAt).toBeNull();
  const cancelled = await call(["cancel", runId], away);
  expect([cancelled.code, cancelled.stdout]).toEqual([0, `${runId}\n`]);
  expect((await send("GET", `/api/v1/runs/${runId}`)).body.failureReason).toStartWith("cancelled: ");
  expect((await call(["cancel", runId], away)).code).toBe(2);

  const map = ["--url-map", `docs.acme.example=${docs.url}`];
  const gate = await interrupt(["gate", "Upload", ...map], away, /of \d+ runs finished/);
  const [, gateId = ""] = /^Gate (\S+)$/m.exec(gate.said) ?? [];
  expect([gate.code, gate.said]).toEqual([130, expect.stringContaining(`evald cancel ${gateId}`)]);
  const cancelledGate = JSON.parse((await call(["cancel", gateId, "--json"], away)).stdout);
  expect([cancelledGate.id, cancelledGate.progress]).toEqual([gateId, { ended: 2, of: 2 }]);
  await until("the gate has ended", async () => {
    const { status } = (await send("GET", `/api/v1/gates/${gateId}`)).body;
    return status === "error";
  });
  expect((await call(["cancel", gateId], away)).code).toBe(2);
  const unknown = await call(["cancel", crypto.randomUUID(), "--json"], away);
  expect([unknown.code, JSON.parse(unknown.stdout).error]).toEqual([2, "not_found"]);
  await service.stop();

  const alone = { cwd: emptyFolder(), env: allowed };
  const evaluated = await interrupt(["eval", docs.url, "--goal", "Upload a file", "--json"], alone, /^· /m);
  expect([evaluated.code, JSON.parse(evaluated.stdout).error]).toEqual([130, "cancelled"]);
  docs.stop();
}, 300_000);

test("runs of a server that has exactly the specified fields are listed, and waited for", async () => {
  const at = "2026-11-21T09:30:00.000Z";
  const [promptId, runId] = [crypto.randomUUID(), crypto.randomUUID()];
  const prompt = {
    ...{ id: promptId, title: "Upload", text: "Upload a file.", endGoal: null, status: "active" },
    ...{ templateVars: null, createdAt: at },
  };
  let report: object | null = null;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname, origin } = new URL(request.url);
      const urls = { statusUrl: `${origin}/api/v1/runs/${runId}`, runUrl: `${origin}/runs/${runId}` };
      const run = {
        ...{ runId, ...urls, status: report ? "completed" : "pending", report, prompt, failureReason: null },
        ...{ createdAt: at, completedAt: report ? at : null },
      };
      if (pathname === "/api/v1/prompts") return Response.json([prompt]);
      if (pathname === `/api/v1/prompts/${promptId}/run`) return Response.json({ runId, ...urls });
      if (pathname === "/api/v1/runs") return Response.json([run]);
      if (pathname !== `/api/v1/runs/${runId}`)
        return Response.json({ error: "not_found", detail: "No such route." }, { status: 404 });
      report = { slug: "upload-1", url: `${origin}/reports/upload-1`, score: 81.5, grade: "B-" };
      return Response.json(run);
    },
  });
  const away = { cwd: emptyFolder(), env: { EVALD_URL: server.url.origin, EVALD_KEY: `evals_${"0".repeat(36)}` } };
  const waited = await call(["run", "Upload", "--min-score", "80"], away);
  expect([waited.code, waited.stdout]).toEqual([0, expect.stringContaining("81.5")]);
  expect(waited.stdout).toContain("/reports/upload-1");
  expect((await call(["run", "Upload", "--min-score", "90"], away)).code).toBe(1);
  const listed = await call(["runs"], away);
  expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining("upload-1")]);
  await server.stop(true);
}, 300_000);

test("the help for an unknown command says so, and suggests one", async () => {
  const cwd = emptyFolder();
  for (const [args, suggestion] of [
    [["help", "gat"], "gate"],
    [["key", "help", "creat"], "create"],
    [["help", "nope"], null],
  ] as const) {
    const { code, stdout, stderr } = await call([...args], { cwd });
    expect([code, stdout, stderr]).toEqual([2, "", expect.stringMatching(`unknown command '${args.at(-1)}'`)]);
    if (suggestion) expect(stderr).toContain(suggestion);
  }
  for (const [args, usage] of [
    [["help", "prompt", "create"], "evald prompt create"],
    [["help", "destination", "replay"], "evald destination replay"],
    // Nothing is cancelled.
    [["help", "cancel", crypto.randomUUID()], "evald cancel"],
  ] as const) {
    const { code, stdout } = await call([...args], { cwd });
    expect([args, code, stdout]).toEqual([args, 0, expect.stringContaining(`Usage: ${usage}`)]);
  }
  for (const args of [["help"], ["help", "gate"], ["key", "help", "create"], ["key", "help"]])
    expect([args, (await call(args, { cwd })).code]).toEqual([args, 0]);
}, 60_000);

test("a table is as wide as the terminal at most, and keeps its first column", () => {
  const id = crypto.randomUUID();
  const rows = [
    ["RUN", "STATUS", "RESULT", "PROMPT"],
    [id, "completed", "x".repeat(80), "y".repeat(300)],
  ];
  for (const width of [40, 80, 120]) {
    const lines = table(rows, width).split("\n");
    const hasId = lines.some((line) => line.startsWith(id));
    expect([width, lines.every((line) => line.length <= width), hasId]).toEqual([width, true, true]);
  }
  expect(table(rows, 120).split("\n")[1]).toContain("completed");
  expect(table(rows)).toContain("y".repeat(300));
});
