import { afterEach, beforeAll, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { buildInstant, client } from "../support/executable.ts";
import { startReceiver } from "../support/receiver.ts";
import { createRandom, createWorld, endAll } from "../support/torture.ts";
import { until } from "../support/until.ts";

beforeAll(buildInstant, 300_000);
afterEach(endAll);

/** `bun run torture:deliveries` is the long form. */
const [kills, total] = process.env.DELIVERIES === "long" ? [20, 1_000] : [4, 120];

test(`${total} events reach their webhook at least once with stable IDs, although the service is killed ${kills} times`, async () => {
  const random = createRandom();
  let secret = "";
  /** IDs of the received events, by run. */
  const idsOf = new Map<string, Set<string>>();
  const seen = new Set<string>();
  // Every tenth event fails once; a second failure would delay it by minutes. Signatures are valid for minutes, so they are checked here.
  const receiver = startReceiver(({ headers, body }) => {
    const { type, data } = new Webhook(secret).verify(body, headers) as { type: string; data: { run: { id: string } } };
    const id = headers["webhook-id"] as string;
    if (!seen.has(id) && seen.add(id).size % 10 === 0) return new Response(null, { status: 500 });
    if (type === "run.completed") idsOf.set(data.run.id, (idsOf.get(data.run.id) ?? new Set()).add(id));
    return new Response(null, { status: 204 });
  });
  const world = await createWorld("At once.");
  const env = {
    EVALD_ALLOW_PRIVATE: receiver.host,
    EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
    EVALD_CONCURRENCY: "32",
  };
  const { key, prompts } = world.first;
  let killed = 0;
  /** IDs of runs whose acceptance was read. */
  const accepted = new Set<string>();
  while (killed < kills || accepted.size < total) {
    const service = await world.start(env);
    const ask = client(service.url, key);
    if (secret === "") {
      const body = { kind: "webhook", url: receiver.url, events: ["run.completed"] };
      secret = (await ask("POST", "/api/v1/destinations", body)).body.secret;
    }
    const share = Math.ceil(total / kills);
    const requests = Array.from({ length: Math.min(share, Math.max(0, total - accepted.size)) }, async () => {
      const { status, body } = await ask("POST", `/api/v1/prompts/${prompts[0]}/run`, { urlMap: {} });
      if (status === 200) accepted.add(body.runId);
    });
    const sent = Promise.allSettled(requests);
    if (killed < kills) {
      // The kill comes in the middle of requests, runs and deliveries.
      await Bun.sleep(50 + random() * 500);
      await service.stop("SIGKILL");
      killed++;
    } else {
      await sent;
      await service.stop();
    }
    await sent;
  }
  const last = await world.start(env);
  await world.finished();
  const pending = "select count(*) from deliveries where status = 'pending'";
  await until("every delivery has ended", () => world.count(pending) === 0);
  expect(await last.stop()).toBe(0);

  // Each completed run has one event, and each event was received.
  const completed = world.list("select id from runs where status = 'completed'");
  expect(completed).toEqual(expect.arrayContaining([...accepted]));
  expect([...idsOf.keys()].sort()).toEqual(completed.sort());
  expect([...idsOf.values()].filter((ids) => ids.size !== 1)).toEqual([]);
  const stored = world.list("select id from notifications").sort();
  expect([...idsOf.values()].flatMap((ids) => [...ids]).sort()).toEqual(stored);
  expect(world.count("select count(*) from deliveries where status != 'delivered'")).toBe(0);
  console.log(
    `${killed} kills: ${completed.length} events, ${receiver.received.length} requests; 0 lost, 0 IDs changed`,
  );
  receiver.close();
}, 600_000);
