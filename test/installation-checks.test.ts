import { expect, test } from "bun:test";
import { mkdtempSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { weeklyDigestOf } from "../src/inbox/digest.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

type Line = { kind: string; id: string; cause: string; state: string; title: string };

/** A service with a collector that refuses traces until it is mended, on a clock that the test moves. */
function setUp() {
  const state = { isBroken: true, aheadMs: 0, jumpMs: 0 };
  const startedAt = Date.now();
  const trueTime = () => startedAt + state.aheadMs;
  const collector = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () =>
      new Response("{}", {
        status: state.isBroken ? 404 : 200,
        headers: { date: new Date(trueTime() + state.jumpMs).toUTCString() },
      }),
  });
  const logged: { level: number; check?: string; cause?: string }[] = [];
  const dataDir = mkdtempSync(join(tmpdir(), "evald-checks-"));
  const app = testApp({
    dataDir,
    now: () => trueTime() + state.jumpMs,
    monotonicNow: () => state.aheadMs,
    env: { EVALD_DATA_DIR: dataDir, EVALD_OTLP_URL: `${collector.url}v1/traces` },
    log: pino({ level: "info" }, { write: (line: string) => void logged.push(JSON.parse(line)) }),
  });
  const removeOther = () => {
    app.db.$client.run("delete from api_keys where org_id = ?", [app.b.org]);
    app.db.$client.run("delete from orgs where id = ?", [app.b.org]);
  };
  const check = async (ms = 0) => {
    state.aheadMs += ms;
    await app.service.healthChecks.runOnce();
  };
  const lines = async (): Promise<Line[]> =>
    (await app.send("GET", "/api/v1/inbox")).body.problems.filter(({ kind }: Line) => kind === "check_failed");
  const isOtlp = ({ check }: { check?: string }) => check === "otlp";
  return {
    ...{ ...app, state, check, lines, removeOther, dataDir },
    logged: () => logged.filter(isOtlp),
    close: () => collector.stop(true),
  };
}

test("a problem of the installation is a line of the inbox until it is gone, for the only organization", async () => {
  const app = setUp();
  createPrompt(app.service.ctx, app.a.org, { text: "See https://docs.example.com/" });
  await app.check();
  expect(await app.lines()).toEqual([]);
  app.removeOther();
  const [line, ...others] = await app.lines();
  expect([line, others]).toMatchObject([{ cause: "otlp_failed", state: "failed" }, []]);
  expect((await app.send("GET", "/")).body).toContain(line?.title ?? "none");
  const { problems } = weeklyDigestOf(app.service.ctx, app.a.org, app.service.ctx.now() - dayMs, app.service.ctx.now());
  expect(problems).toContainEqual(expect.objectContaining({ kind: "check_failed", subject: line?.title }));
  // The same problem keeps its line, and so its snooze.
  await app.check(5 * minuteMs);
  expect((await app.lines()).map(({ id }) => id)).toEqual([line?.id ?? ""]);
  app.state.isBroken = false;
  await app.check(5 * minuteMs);
  expect(await app.lines()).toEqual([]);
  expect(app.logged().map(({ level, cause }) => [level, cause])).toEqual([
    [40, "otlp_failed"],
    [30, "otlp_failed"],
  ]);
  // A day later all checks run, and what comes back is another line.
  app.state.isBroken = true;
  await app.check(5 * minuteMs);
  expect(await app.lines()).toEqual([]);
  await app.check(dayMs);
  const [again] = await app.lines();
  expect([again?.cause, again?.id === line?.id]).toEqual(["otlp_failed", false]);
  app.close();
});

test("readiness names problems without what they are about, and stays 200", async () => {
  const app = setUp();
  await app.service.runner.start();
  expect((await app.send("GET", "/readyz")).body).toEqual({ status: "ready" });
  await app.check();
  const { status, body } = await app.send("GET", "/readyz", { headers: { authorization: "" } });
  expect([status, body.problems]).toEqual([200, [{ check: "otlp", cause: "otlp_failed", state: "failed" }]]);
  expect(JSON.stringify(body)).not.toContain("127.0.0.1");
  await app.service.runner.stop(0);
  app.close();
});

test("a clock that jumps is a problem for a day, and the free space is recorded once a day", async () => {
  const app = setUp();
  app.removeOther();
  app.state.isBroken = false;
  await app.check();
  const { bavail, bsize } = statfsSync(app.dataDir);
  const history = async () => await Bun.file(join(app.dataDir, "evald.disk")).json();
  expect((await history()).length).toBe(1);
  expect(Math.abs((await history())[0].freeBytes - bavail * bsize)).toBeLessThan(1024 ** 3);
  app.state.jumpMs = 3 * 3600_000;
  await app.check(dayMs);
  expect((await app.lines()).map(({ cause }) => cause)).toEqual(["clock_jumped"]);
  expect((await history()).length).toBe(2);
  await app.check(5 * minuteMs);
  expect((await history()).length).toBe(2);
  await app.check(dayMs + minuteMs);
  await app.check(5 * minuteMs);
  expect(await app.lines()).toEqual([]);
  // A damaged history is none.
  writeFileSync(join(app.dataDir, "evald.disk"), "[");
  await app.check(dayMs);
  expect((await history()).length).toBe(1);
  app.close();
});
