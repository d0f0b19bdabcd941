import { afterEach, expect, test } from "bun:test";
import { createKey } from "../src/auth/keys.ts";
import { emitEvent } from "../src/notifications/outbox.ts";
import { deliveringApp } from "./support/deliveries.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const dayMs = 24 * 3600_000;
const open: ReturnType<typeof deliveringApp>[] = [];
afterEach(() => {
  for (const { receiver } of open.splice(0)) receiver.close();
});

const everyEvent = [
  ...["run.completed", "run.failed", "evaluation.completed", "friction.opened", "gate.decided", "digest.weekly"],
  ...["schedule.missed", "score.changed"],
];

/** A service with two prompts, and a webhook for which the events of a run of each wait. */
async function setUp() {
  const app = deliveringApp();
  open.push(app);
  const { id } = await app.addWebhook(everyEvent);
  const make = (title: string): Promise<{ id: string }> =>
    app.post("/api/v1/prompts", { title, text: `${title} of https://docs.test` });
  const [gone, kept] = [await make("Zanzibar"), await make("Kept")];
  const runs = [gone, kept].map((prompt) => evaluation(app, prompt.id, [niceGrade])[0]);
  const path = `/api/v1/destinations/${id}`;
  const counts = async () => {
    const list: { status: string; failure: string | null }[] = await app.deliveriesOf(id);
    return Object.fromEntries(
      Map.groupBy(list, ({ status, failure }) => failure ?? status)
        .entries()
        .map(([key, each]) => [key, each.length]),
    );
  };
  /** What the receiver has got since the last call. */
  const received = () => app.receiver.received.splice(0).map(({ body }) => body);
  return { app, id, path, gone, kept, runs, counts, received };
}

test("what is deleted before it is sent is not sent, and can be replayed once it is restored", async () => {
  const { app, path, gone, kept, counts, received } = await setUp();
  const { body: deletion } = await app.send("DELETE", `/api/v1/prompts/${gone.id}`);
  await app.deliver();
  const bodies = received();
  expect(bodies.length).toBeGreaterThan(1);
  for (const body of bodies) expect([body.includes("Zanzibar"), body.includes(kept.id)]).toEqual([false, true]);
  expect(await counts()).toEqual({ delivered: bodies.length });
  const restored = await app.send("POST", `/api/v1/deletions/${deletion.id}/restore`);
  expect(restored.body.status).toBe("restored");
  expect(await counts()).toEqual({ delivered: bodies.length, deleted: bodies.length });
  await app.deliver();
  expect(received()).toEqual([]);
  expect((await app.send("POST", `${path}/replay`)).body).toEqual({ replayed: bodies.length });
  await app.deliver();
  const replayed = received();
  expect(replayed.length).toBe(bodies.length);
  for (const body of replayed) expect(body).toContain(gone.id);
});

test("nothing about a deleted run is sent, whichever of its IDs an event has", async () => {
  const { app, runs, gone, received } = await setUp();
  const [run] = runs;
  const { body: deletion } = await app.send("DELETE", `/api/v1/runs/${run?.runId}`);
  await app.deliver();
  const bodies = received();
  expect(bodies.length).toBeGreaterThan(1);
  for (const name of [run?.runId, run?.slug, run?.evalRequestId, gone.id])
    expect(bodies.filter((body) => body.includes(name ?? "?"))).toEqual([]);
  app.pass(dayMs);
  await app.service.upkeep.runOnce();
  expect((await app.send("GET", `/api/v1/deletions/${deletion.id}`)).body.status).toBe("erased");
  const left = app.db.$client.query<{ data: string }, []>("select data from notifications").all();
  expect(left.filter(({ data }) => data.includes(run?.slug ?? "?"))).toEqual([]);
  expect(left.length).toBeGreaterThan(1);
});

test("a message about several prompts is neither sent nor shown while one of them is deleted", async () => {
  const { app, id, path, gone, kept, runs, received } = await setUp();
  await app.deliver();
  received();
  const digest = (prompt: { id: string }, slug: string) => {
    const link = { slug, url: `https://evald.test/reports/${slug}` };
    const fix = { title: "Fix", action: "Do it.", pageUrl: null, prompt: { id: prompt.id, title: "T" }, report: link };
    return {
      from: "2026-11-16T08:00:00.000Z",
      until: "2026-11-23T08:00:00.000Z",
      runs: { completed: 1, failed: 0 },
      scores: [],
      problems: [],
      regressed: [],
      fixFirst: [fix],
    };
  };
  const { ctx } = app.service;
  await ctx.commit((tx) => {
    for (const [i, prompt] of [gone, kept].entries())
      emitEvent(ctx, tx, app.a.org, "digest.weekly", () => digest(prompt, runs[i]?.slug ?? ""));
  });
  const { body: deletion } = await app.send("DELETE", `/api/v1/reports/${runs[0]?.slug}`);
  await app.deliver();
  expect(received().map((body) => body.includes(kept.id))).toEqual([true]);
  const shown = await app.deliveriesOf(id);
  const payloads = await Promise.all(
    shown.map(async (each: { id: string }) => (await app.send("GET", `${path}/deliveries/${each.id}`)).body.payload),
  );
  expect([payloads.length > 1, payloads.includes(undefined)]).toEqual([true, false]);
  expect(JSON.stringify(payloads)).not.toContain(runs[0]?.slug ?? "?");
  await app.send("POST", `/api/v1/deletions/${deletion.id}/erase`);
  await app.service.upkeep.runOnce();
  const left = app.db.$client.query("select data from notifications where type = 'digest.weekly'").values();
  expect(left.map(([data]) => String(data).includes(kept.id))).toEqual([true]);
});

test("the digest names the prompts of its problems and friction by their IDs, so that it is not sent after they are deleted", async () => {
  const { app, gone, received } = await setUp();
  for (let i = 0; i < 3; i++) evaluation(app, gone.id, ["infrastructure: out of order"]);
  await app.deliver();
  received();
  const { db } = app;
  app.pass(2 * dayMs);
  await app.service.notifier.digests.tick();
  const { body: deletion } = await app.send("DELETE", `/api/v1/prompts/${gone.id}`);
  const data = db.$client.query<{ data: string }, []>("select data from notifications where type = 'digest.weekly'");
  expect(JSON.parse(data.get()?.data ?? "{}").problems).toMatchObject([{ kind: "runs_failed", promptId: gone.id }]);
  await app.deliver();
  expect(received()).toEqual([]);
  await app.send("POST", `/api/v1/deletions/${deletion.id}/erase`);
  await app.service.upkeep.runOnce();
  expect(data.all()).toEqual([]);
});

test("nothing about a deleted organization is sent, and operators don't see what of it failed", async () => {
  const { app, received } = await setUp();
  const { ctx } = app.service;
  const operator = {
    headers: { authorization: `Bearer ${createKey(ctx, app.b.org, "op", { scopes: ["operate"] }).key}` },
  };
  evaluation(app, (await app.send("GET", "/api/v1/prompts")).body[0].id, ["infrastructure: out of order"]);
  const failures = async () => (await app.send("GET", "/api/v1/queue/failures", operator)).body;
  expect(await failures()).toMatchObject([{ kind: "run", organizations: ["A"] }]);
  await app.send("DELETE", "/api/v1/organization");
  await app.deliver();
  expect([received(), await failures()]).toEqual([[], []]);
  expect((await app.send("GET", "/api/v1/queue", operator)).body).toMatchObject({ organizations: [] });
});
