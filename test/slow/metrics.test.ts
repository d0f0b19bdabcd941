import { afterAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Metrics, respondToScrape } from "../../src/telemetry/metrics.ts";
import { buildExecutables, call, emptyFolder, instant, serve } from "../support/executable.ts";
import { answer, judgedApps, says } from "../support/judged.ts";
import { until } from "../support/until.ts";

await buildExecutables();
const cwd = emptyFolder();
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const evald = async (...args: string[]) => {
  const { code, stdout, stderr } = await call(args, { cwd });
  if (code !== 0) throw new Error(stderr);
  return stdout.trim();
};

test("the executable serves metrics at their own address, and promtool accepts them", async () => {
  const service = await serve({ cwd, file: instant, env: { EVALD_METRICS_ADDRESS: "127.0.0.1:0" } });
  try {
    const [, address = ""] = await service.said(/^metrics on (http:\/\/\S+)$/m);
    await evald("org", "create", "Acme");
    const key = await evald("key", "create", "--org", "Acme", "--name", "ci");
    const prompt = await evald("prompt", "create", "--org", "Acme", "--text", "See https://docs.example.com/");
    const before = Date.now() / 1000;
    await evald("backup", join(cwd, "first.backup"));
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const run = { method: "POST", headers, body: '{"urlMap": {}}' };
    expect((await fetch(`${service.url}/api/v1/prompts/${prompt}/run`, run)).status).toBe(200);
    const text = await until("the run is counted", async (): Promise<string> => {
      const said = await (await fetch(address)).text();
      return said.includes('evald_runs_total{status="completed",outcome="not_judged",cause=""} 1') ? said : "";
    });
    const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
    expect(value("evald_last_backup_timestamp_seconds")).toBeGreaterThan(before - 1);
    expect(value("evald_wal_bytes")).toBeGreaterThan(0);
    expect(value("evald_database_bytes")).toBeGreaterThan(0);
    expect(value("evald_disk_free_bytes")).toBeGreaterThan(0);
    await until("the delay of the event loop is measured", async () =>
      /^evald_event_loop_delay_seconds_count [1-9]/m.test(await (await fetch(address)).text()),
    );
    const promtool = Bun.spawn(["promtool", "check", "metrics"], {
      stdin: new Blob([text]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const said = await Promise.all([new Response(promtool.stdout).text(), new Response(promtool.stderr).text()]);
    expect([said.join(""), await promtool.exited]).toEqual(["", 0]);
  } finally {
    await service.stop();
  }
});

const { judged } = judgedApps();

test("judgings are counted by result", async () => {
  const app = judged({
    turns: [says("no answer"), says("no answer"), says(answer())],
    env: { EVALD_METRICS_ADDRESS: "127.0.0.1:0" },
  });
  await app.run();
  await app.run();
  const response = await respondToScrape(
    app.service.telemetry.metrics as Metrics,
    new Request("http://localhost/metrics"),
  );
  expect((await response.text()).match(/^evald_judgings_total.*$/gm)).toEqual([
    'evald_judgings_total{result="failed"} 1',
    'evald_judgings_total{result="judged"} 1',
  ]);
});

test("an unusable metrics address is named in the error", async () => {
  const { code, stderr } = await call(["serve"], { cwd, env: { EVALD_METRICS_ADDRESS: "nowhere.invalid:9464" } });
  expect(code).not.toBe(0);
  expect(stderr).toContain("EVALD_METRICS_ADDRESS");
});
