import { afterEach, beforeAll, expect, test } from "bun:test";
import { buildInstant, client } from "../support/executable.ts";
import { createLoad, createRandom, createWorld, endAll, findBreaches, times } from "../support/torture.ts";
import { until } from "../support/until.ts";

beforeAll(buildInstant, 300_000);
afterEach(endAll);

const kills = times(100);

test(
  `a service killed ${kills} times under load loses no accepted run and creates no second report`,
  async () => {
    const random = createRandom();
    const world = await createWorld("At once.", "At once, too.", "Work for 60 ms.");
    const load = createLoad(world, random);
    // The jobs of the last process are requeued before this one listens.
    const ofOthers = "select count(*) from jobs where state = 'running' and owner not like '% pid ' || ?";
    let killed = 0;
    while (killed < kills || load.accepted.size < kills * 50) {
      const service = await world.start();
      expect(world.count(ofOthers, service.pid)).toBe(0);
      const { ended } = load.run(service.url, 48);
      await Bun.sleep(50 + random() * 600);
      await service.stop("SIGKILL");
      await ended;
      killed++;
    }
    const cutOff = load.cutOff();
    const last = await world.start();
    await load.settle(last.url);
    await world.finished(60_000 + kills * 1000);
    expect([load.refused, await load.missing(last.url)]).toEqual([[], []]);
    expect(await last.stop()).toBe(0);
    expect(findBreaches(world)).toEqual({});
    expect(world.count("select count(*) from runs where status != 'completed'")).toBe(0);
    const rescued = world.count("select count(*) from attempts where outcome = 'lost'");
    expect(rescued).toBeGreaterThan(kills);
    console.log(
      `${killed} kills: ${load.accepted.size} runs accepted, ${rescued} attempts taken back, ${load.again()} requests repeated, ${cutOff} cut off last; 0 lost, 0 doubled`,
    );
  },
  120_000 + kills * 30_000,
);

test(
  "a service stopped under load is immediately not ready, starts nothing more and ends in time, and the next start finishes its requeued runs",
  async () => {
    const drains = times(10);
    const world = await createWorld("Work for 100 ms.");
    const load = createLoad(world, createRandom());
    const env = { EVALD_DRAIN_SECONDS: "1", EVALD_CONCURRENCY: "64" };
    const begun = () => world.count("select count(*) from attempts");
    for (let drain = 0; drain < drains; drain++) {
      const service = await world.start(env);
      const ask = client(service.url, world.first.key);
      const long = await ask("POST", "/api/v1/prompts", { text: "Work for 2500 ms. See https://docs.test/" });
      await ask("POST", `/api/v1/prompts/${long.body.id}/run`, { urlMap: {} });
      const { ended } = load.run(service.url, 4, 20);
      const running = "select count(*) from runs where status = 'running' and prompt_id = ?";
      await until("the long run is under way", () => world.count(running, long.body.id));
      service.signal("SIGTERM");
      await until("/readyz says 503", async () => (await fetch(`${service.url}/readyz`)).status === 503);
      const before = begun();
      expect([await service.stop("SIGCONT"), begun()]).toEqual([0, before]);
      await ended;
      const ofLong =
        "from attempts a join jobs j on j.id = a.job_id join runs r on r.id = j.subject where r.prompt_id = ?";
      expect(world.count(`select group_concat(outcome) = 'released' ${ofLong}`, long.body.id)).toBe(1);
    }
    expect(world.count("select count(*) from attempts where outcome = 'released'")).toBeGreaterThanOrEqual(drains);
    const last = await world.start();
    await world.finished();
    await load.settle(last.url);
    await world.finished();
    expect([load.refused, await load.missing(last.url), await last.stop()]).toEqual([[], [], 0]);
    expect(findBreaches(world)).toEqual({});
    expect(world.count("select count(*) from runs where status != 'completed'")).toBe(0);
    expect(world.count("select count(*) from earlier_attempts where outcome = 'retried'")).toBe(0);
  },
  180_000 + times(10) * 10_000,
);

test(
  "a run cancelled under load is stopped and never completed",
  async () => {
    const random = createRandom();
    const world = await createWorld("Work for 50 ms.");
    const load = createLoad(world, random);
    const service = await world.start({ EVALD_CONCURRENCY: "64" });
    const ask = client(service.url, world.first.key);
    const { stop } = load.run(service.url, 8, 10);
    const text = "Work for {{ms}} ms as {{name}} See https://docs.test/";
    const prompt = (await ask("POST", "/api/v1/prompts", { text })).body.id;
    const request = async (name: string, ms: number): Promise<string> =>
      (await ask("POST", `/api/v1/prompts/${prompt}/run`, { urlMap: {}, templateArgs: { name, ms: String(ms) } })).body
        .runId;

    const running = "select count(*) from runs where id = ? and status = 'running'";
    for (let i = 0; i < times(10); i++) {
      const runId = await request(`long-${i}`, 60_000);
      await until("the run is under way", () => world.count(running, runId));
      const answer = await ask("POST", `/api/v1/runs/${runId}/cancel`);
      // It would have ended by itself only after a minute, and without this log line.
      await service.said(new RegExp(`^long-${i} was told to stop$`, "m"));
      const failureReason = 'cancelled: by the API key "load"';
      expect(answer).toMatchObject({ status: 200, body: { status: "failed", failureReason, report: null } });
    }

    // The run is killed at any moment: before it starts, in its session, while it is settled, after.
    const outcomes = await Promise.all(
      Array.from({ length: Math.max(100, times(100)) }, async (_, i) => {
        const runId = await request(`short-${i}`, 800);
        await Bun.sleep(random() * 1600);
        return { runId, status: (await ask("POST", `/api/v1/runs/${runId}/cancel`)).status };
      }),
    );
    await stop();
    await world.finished();
    for (const { runId, status } of outcomes) {
      const { body } = await ask("GET", `/api/v1/runs/${runId}`);
      expect([status, body.status, body.report === null]).toEqual(
        status === 200 ? [200, "failed", true] : [409, "completed", false],
      );
    }
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set([200, 409]));
    expect([load.refused, await load.missing(service.url), await service.stop()]).toEqual([[], [], 0]);
    expect(findBreaches(world)).toEqual({});
  },
  180_000 + times(10) * 5_000,
);
