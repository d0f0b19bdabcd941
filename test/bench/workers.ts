import type { SessionBench } from "./load.ts";
import { openStage } from "./worker-stage.ts";

/** Sessions of one worker, real or simulated, whose costs are compared. */
const alone = { slots: 4, sessions: 24 };
/** Sessions of each slot in the other measurements. */
const rounds = 4;
/** Simulated workers: what few and some of them cost the service gives an estimate for many. */
const herd = { few: 25, some: 50, many: 100, slots: 2 };

const rate = (perMinute: number) => `${perMinute.toFixed(1)} per minute`;
const times = (value: number, floor: number) => `${(value / floor).toFixed(2)} ×`;

/** How sessions that wait for their model scale with workers, what a session costs the service, and whether 100 simulated workers confirm it. */
export async function benchWorkers(bench: SessionBench): Promise<void> {
  const stage = await openStage(bench);
  await benchThroughput(bench, stage);
  await benchHerd(bench, stage);
  await benchWorker(bench, stage);
  await stage.close();
}

type Stage = Awaited<ReturnType<typeof openStage>>;

/** Sessions of all slots, after one of each that isn't measured. */
async function measureSlots({ measure }: Stage, slots: number) {
  await measure(slots);
  return await measure(slots * rounds);
}

async function benchThroughput({ row }: SessionBench, stage: Stage): Promise<void> {
  const rates: number[] = [];
  let workers = 0;
  for (const count of [1, 2, 4]) {
    for (; workers < count; workers++) await stage.simulate(1, alone.slots);
    rates.push((await measureSlots(stage, count * alone.slots)).perMinute);
  }
  await stage.disperse();
  const [one = 0, two = 0, four = 0] = rates;
  const what = "Sessions that wait for their model";
  row(`${what}, 1 worker with ${alone.slots} slots`, rate(one), "", "", "");
  row(`${what}, 2 workers (floor: 1 worker)`, rate(two), rate(one), times(two, one), "≥ 1.9 ×");
  row(`${what}, 4 workers (floor: 1 worker)`, rate(four), rate(one), times(four, one), "≥ 3.6 ×");
}

/**
 * The CPU time of a service is a part that it needs while sessions run, however many, and a part for each session with its share of the
 * worker. Two measurements give both, and many workers check them.
 */
async function benchHerd({ row }: SessionBench, stage: Stage): Promise<void> {
  let workers = 0;
  /** What the service needs for so many workers, in processes of the few. */
  async function measureWorkers(count: number) {
    for (; workers < count; workers += herd.few) await stage.simulate(herd.few, herd.slots);
    return await measureSlots(stage, count * herd.slots);
  }
  const few = await measureWorkers(herd.few);
  const some = await measureWorkers(herd.some);
  const many = await measureWorkers(herd.many);
  await stage.disperse();

  const each = (some.share - few.share) / (some.perMinute - few.perMinute);
  const basis = some.share - each * some.perMinute;
  const expected = basis + each * many.perMinute;
  const percent = (share: number) => `${(share * 100).toFixed(0)}% of a core`;
  const what = (count: number) => `CPU of the service, ${count} simulated workers with ${herd.slots} slots`;
  const share = (measured: typeof few) => `${percent(measured.share)}, ${rate(measured.perMinute)}`;
  row(what(herd.few), share(few), "", "", "");
  row(what(herd.some), share(some), "", "", "");
  row(
    `${what(herd.many)} (floor: estimate from ${herd.few} and ${herd.some})`,
    share(many),
    percent(expected),
    times(many.share, expected),
    "0.7 to 1.3 ×",
  );
  const line = `${percent(basis)} and ${(each * 60_000).toFixed(0)} ms for each session`;
  row(`CPU of the service, estimate from ${herd.few} and ${herd.some} simulated workers`, line, "", "", "");
}

/** What a session costs a service with one worker, real or simulated, with what the service needs in the meantime. */
async function benchWorker({ row }: SessionBench, stage: Stage): Promise<void> {
  async function measureOne() {
    await stage.measure(alone.slots, 1);
    return await stage.measure(alone.sessions, 1);
  }
  await stage.simulate(1, alone.slots);
  const simulated = await measureOne();
  await stage.disperse();
  const own = await stage.withWorker(alone.slots, measureOne);
  const cpu = ({ cpuMs, perMinute }: typeof own) => `${cpuMs.toFixed(0)} ms, ${rate(perMinute)}`;
  const kb = ({ bytes }: typeof own) => `${(bytes / 1024).toFixed(0)} KB`;
  const what = `for each session, 1 worker with ${alone.slots} slots (floor: simulated)`;
  row(`CPU of the service ${what}`, cpu(own), cpu(simulated), times(own.cpuMs, simulated.cpuMs), "");
  row(`Bytes in and out of Redis ${what}`, kb(own), kb(simulated), times(own.bytes, simulated.bytes), "");
}
