import { afterEach, beforeAll, expect, test } from "bun:test";
import { buildInstant, client } from "../support/executable.ts";
import {
  createLoad,
  createRandom,
  createWorld,
  endAll,
  findBreaches,
  shareDatabase,
  times,
  type World,
} from "../support/torture.ts";
import { until } from "../support/until.ts";

beforeAll(buildInstant, 300_000);
afterEach(endAll);

// Each of the two processes is frozen at least once.
const freezes = Math.max(2, times(6));
const lease = { LEASE_MS: "1000" };

type Process = Awaited<ReturnType<World["start"]>>;

const held = "select count(*) from jobs where state = 'running' and owner like '% pid ' || ?";

/** Two services over one database, each with its own data lock. */
async function startTwo(world: World): Promise<[Process, Process]> {
  const first = await world.start(lease);
  return [first, await world.start({ ...lease, EVALD_DATA_DIR: `${shareDatabase(world)}/data` })];
}

/** Stops a process, but not inside a transaction, where it would block the other process. */
async function freeze(world: World, service: Process, most: number): Promise<number> {
  return await until("it is frozen with work in its hands", () => {
    if (world.count(held, service.pid) < most) return 0;
    service.signal("SIGSTOP");
    const left = world.isWritable() ? world.count(held, service.pid) : 0;
    if (left === 0) service.signal("SIGCONT");
    return left;
  });
}

test(
  `one of two processes is frozen ${freezes} times past its lease, the other takes over, and late writes don't count`,
  async () => {
    const world = await createWorld("Work for 300 ms.", "At once.");
    const load = createLoad(world, createRandom());
    const services = await startTwo(world);
    const driving = services.map(({ url }) => load.run(url, 4, 25));
    let frozen = 0;
    for (let i = 0; i < freezes; i++) {
      const service = services[i % 2] as Process;
      frozen += await freeze(world, service, 4);
      await until("the other one has taken over", () => world.count(held, service.pid) === 0);
      service.signal("SIGCONT");
      await until("it works again", () => world.count(held, service.pid) > 0);
    }
    await Promise.all(driving.map(({ stop }) => stop()));
    await world.finished();
    expect([load.refused, await load.missing(services[0].url)]).toEqual([[], []]);
    expect([await services[0].stop(), await services[1].stop()]).toEqual([0, 0]);
    expect(findBreaches(world)).toEqual({});
    expect(world.count("select count(*) from runs where status != 'completed'")).toBe(0);
    expect(world.count("select count(*) from earlier_attempts where outcome = 'retried'")).toBe(0);
    const lost = world.count("select count(*) from attempts where outcome = 'lost'");
    const late = services.flatMap(({ stderr }) => stderr().match(/"result discarded/g) ?? []).length;
    expect([lost >= frozen, late >= freezes]).toEqual([true, true]);
    console.log(
      `${freezes} freezes: ${load.accepted.size} runs accepted, ${lost} attempts taken over, ${late} late results refused; 0 lost, 0 doubled`,
    );
  },
  180_000 + freezes * 15_000,
);

test("a session that continues after its run was taken over stores nothing more", async () => {
  const world = await createWorld("Work for 6000 ms as the-run.");
  const [one, other] = await startTwo(world);
  const ask = client(one.url, world.first.key);
  const { runId } = (await ask("POST", `/api/v1/prompts/${world.first.prompts[0]}/run`, { urlMap: {} })).body;
  const events = (attempt: number) =>
    world.count("select count(*) from session_events where run_id = ? and attempt = ?", runId, attempt);
  await until("events of the first attempt are stored", () => events(1) > 20);
  const [holder, heir] = world.count(held, one.pid) > 0 ? [one, other] : [other, one];
  await freeze(world, holder, 1);
  await until("the other one is at it", () => world.count(held, heir.pid) === 1 && events(2) > 0);
  const stored = events(1);
  holder.signal("SIGCONT");
  await holder.said(/^the-run\. was told to stop$/m);
  await world.finished();
  expect([events(1), holder.stderr().match(/told to stop/g)?.length, heir.stderr()]).toEqual([
    stored,
    1,
    expect.not.stringContaining("told to stop"),
  ]);
  expect([await one.stop(), await other.stop()]).toEqual([0, 0]);
  expect(findBreaches(world)).toEqual({});
  expect(world.count("select attempt from reports where run_id = ?", runId)).toBe(2);
});

test(
  "a single process that was frozen past its lease continues its jobs",
  async () => {
    const world = await createWorld("Work for 500 ms.", "At once.");
    const load = createLoad(world, createRandom());
    const service = await world.start(lease);
    const { stop } = load.run(service.url, 4, 25);
    for (let i = 0; i < times(3); i++) {
      await freeze(world, service, 4);
      const past = "select min(lease_until) < ? from jobs where state = 'running'";
      await until("its leases have run out", () => world.count(past, Date.now() - 2_000));
      const begun = load.accepted.size;
      service.signal("SIGCONT");
      await until("it answers again", () => load.accepted.size > begun + 20);
    }
    await stop();
    await world.finished();
    expect([load.refused, await load.missing(service.url), await service.stop()]).toEqual([[], [], 0]);
    expect(findBreaches(world)).toEqual({});
    expect(world.count("select count(*) from attempts where attempt != 1 or outcome != 'done'")).toBe(0);
  },
  180_000 + times(3) * 10_000,
);
