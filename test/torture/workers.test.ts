import { afterEach, beforeAll, expect, test } from "bun:test";
import { buildInstant } from "../support/executable.ts";
import { networkProblem } from "../support/network.ts";
import { createLoad, createRandom, createWorld, endAll, findBreaches, times } from "../support/torture.ts";
import { until } from "../support/until.ts";
import { createFleet } from "../support/worker-fleet.ts";

beforeAll(buildInstant, 300_000);
let closeFleet = async () => {};
afterEach(async () => {
  endAll();
  await closeFleet();
});

/** `bun run torture:workers` is the full size. */
const isFull = times(100) >= 1000;
const size = isFull
  ? { sessions: 1000, workers: 30, services: 5, redis: 5, cuts: 5, cutMs: 10_000, answerMs: 1000, goneMs: 30_000 }
  : { sessions: 60, workers: 2, services: 1, redis: 1, cuts: 1, cutMs: 3_000, answerMs: 300, goneMs: 6_000 };
const calls = 3;
const machines = 4;
const problem = networkProblem();
if (problem !== null) console.log(`skipped: this machine can't have network namespaces: ${problem}`);

test.skipIf(problem !== null)(
  `${size.sessions} sessions on ${machines} machines survive crashes and network cuts`,
  async () => {
    const random = createRandom();
    const fleet = await createFleet({ machines, slots: 8, ...size });
    closeFleet = fleet.close;
    const world = await createWorld(`Please call ${calls} times.`);
    const load = createLoad(world, random);
    const start = () => world.start(fleet.env);
    let service = await start();
    for (const machine of fleet.network.machines) fleet.startWorker(machine);
    const pick = <T>(items: Iterable<T>): T => [...items][Math.floor(random() * [...items].length)] as T;
    const cuts = new Set<Promise<void>>();

    const faults = {
      async workers() {
        const worker = pick(fleet.workers);
        await worker.stop("SIGKILL");
        fleet.startWorker(worker.machine);
      },
      async services() {
        await service.stop("SIGKILL");
        service = await start();
      },
      redis: fleet.crashRedis,
      async cuts() {
        const machine = pick(fleet.network.machines);
        machine.unplug();
        const cut = Bun.sleep(size.cutMs).then(machine.plug);
        cuts.add(cut);
        // The other workers continue meanwhile, and may meet the next fault.
        await Bun.sleep(size.cutMs / 2);
      },
    };
    const names = Object.keys(faults) as (keyof typeof faults)[];
    const plan = names
      .flatMap((name) => Array.from({ length: size[name] }, () => ({ name, at: random() })))
      .sort((a, b) => a.at - b.at);
    for (const [i, { name }] of plan.entries()) {
      const due = Math.ceil((size.sessions * (i + 1)) / plan.length);
      await load.burst(service.url, due - load.accepted.size);
      await Bun.sleep(500 + random() * 2 * size.answerMs * calls);
      await faults[name]();
    }
    await load.burst(service.url, size.sessions - load.accepted.size);
    await Promise.all(cuts);
    await world.finished(isFull ? 600_000 : 90_000);

    expect([load.refused, await load.missing(service.url)]).toEqual([[], []]);
    expect(world.list("select failure_detail from runs where status != 'completed'")).toEqual([]);
    await until("every worker has started, and none has a session", () =>
      [...fleet.workers].every(({ isIdle }) => isIdle()),
    );
    const stopped = await fleet.stopWorkers();
    expect(stopped).toEqual(Array.from({ length: machines }, () => [0, [], []]));
    await until("nothing is left of the workers", async () => (await fleet.redis.command("keys", "*worker-*")) === "");
    expect(await service.stop()).toBe(0);
    expect(findBreaches(world)).toEqual({});
    // The stream of messages from workers is bounded and stays.
    expect(["", "evald:from:shared"]).toContain(await fleet.redis.command("keys", "*"));

    const ofSession = (type: string) =>
      `select count(*) from reports r where ${calls} != (select count(*) from session_events e
        where e.run_id = r.run_id and e.attempt = r.attempt and e.type = '${type}')`;
    expect([world.count(ofSession("thought")), world.count(ofSession("usage"))]).toEqual([0, 0]);
    const answered = world.list(
      "select substr(json_extract(data, '$.text'), 1, 36) from session_events where type = 'thought' and source = 'agent'",
    );
    expect(answered.length).toBe(new Set(answered).size);
    const asked = fleet.fake.requests.map(
      ({ body }) => (body as { messages: { content: string }[] }).messages[0]?.content,
    );
    expect(asked.length).toBe(new Set(asked).size);
    expect(answered.filter((id) => !asked.includes(id))).toEqual([]);
    // The cost of each call is once in the events of its session, and once in the organization's spending.
    const counted = world.count("select count(*) from session_events where type = 'usage'");
    expect(counted).toBeGreaterThanOrEqual(answered.length);
    expect(counted).toBeLessThanOrEqual(asked.length);
    const usd = "select sum(json_extract(data, '$.costUsd')) from session_events where type = 'usage'";
    expect(world.count("select sum(usd) from spending")).toBeCloseTo(world.count(usd), 6);
    const moved = world.count("select count(*) from attempts where outcome != 'done'");
    expect(moved).toBeGreaterThan(0);
    console.log(
      `${load.accepted.size} sessions, ${plan.length} faults: ${moved} attempts started over, ${asked.length} model calls, ${counted} counted; 0 lost, 0 doubled`,
    );
  },
  isFull ? 1_800_000 : 150_000,
);
