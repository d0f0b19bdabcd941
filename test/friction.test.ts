import { afterEach, describe, expect, test } from "bun:test";
import { createExplorer } from "../src/agents/explorer/explorer.ts";
import type { Grade } from "../src/grading/grade.ts";
import { createPrompt, updatePrompt } from "../src/prompts/prompts.ts";
import { createProvider } from "../src/providers/providers.ts";
import { testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { evaluation, niceGrade } from "./support/reports.ts";
import { type Site, serveSite } from "./support/site.ts";

const sites: Site[] = [];
afterEach(() => {
  for (const site of sites.splice(0)) site.stop();
});

const page = (title: string, body: string) => ({
  body: `<!doctype html><html lang="en"><title>${title}</title><main><h1>${title}</h1><p>${"Words about it. ".repeat(30)}</p>${body}</main></html>`,
});
const install = page(
  "Install",
  '<h2>Install the client</h2><p>Install it.</p><pre><code class="language-sh">npm install acme</code></pre>',
);

/** Docs of a provider with a link on the start page that can be broken, and a prompt that runs against them. */
function docs(now?: () => number) {
  let isBroken = true;
  const links = '<a href="/guide/setup">Setup</a> <a href="/install">Install the client</a>';
  const start = () => new Response(page("Acme", links).body, { headers: { "content-type": "text/html" } });
  const setup = () =>
    isBroken
      ? new Response("gone", { status: 404 })
      : new Response(page("Setup", "Set up").body, { headers: { "content-type": "text/html" } });
  const site = serveSite({ "/": start, "/install": install, "/guide/setup": setup });
  sites.push(site);
  const app = testApp({
    agent: createExplorer({ version: "test" }),
    env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` },
    now,
  });
  const { service, a, send } = app;
  const provider = createProvider(service.ctx, a.org, { name: "Acme", docsUrl: `${site.url}/` });
  const prompt = createPrompt(service.ctx, a.org, {
    title: "Install",
    text: "Install the client.",
    targetProviderId: provider.id,
  });
  const run = async (body: object = { urlMap: {} }) => {
    const { body: run } = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body });
    await app.runJobs();
    return (await send("GET", `/api/v1/runs/${run.runId}`)).body.report.slug as string;
  };
  const list = async (query: string) => (await send("GET", `/api/v1/friction?${query}`)).body as Thing[];
  /** The dead link, from different endpoints. */
  const dead = async () => {
    const [byPrompt, byProvider] = [
      await list(`promptId=${prompt.id}`),
      await list(`providerId=${provider.id}&severity=medium`),
    ].map((things) => things.filter(({ category }) => category === "dead_link"));
    const overMcp = (await rpc(app).call("get_friction_points", { promptId: prompt.id })).frictionPoints.filter(
      ({ category }: Thing) => category === "dead_link",
    );
    expect(byProvider).toEqual(byPrompt as Thing[]);
    expect(overMcp).toEqual(byPrompt);
    return byPrompt as Thing[];
  };
  return {
    app,
    site,
    run,
    list,
    dead,
    prompt,
    provider,
    mend: (isMended: boolean) => {
      isBroken = !isMended;
    },
  };
}

type Thing = { fingerprint: string; category: string; title: string; state: string; seenIn: object; slug: string };

test("a link that breaks, is fixed and breaks again is one friction point with a lifecycle", async () => {
  let now = Date.UTC(2026, 10, 1, 9);
  const { app, run, dead, mend, prompt } = docs(() => now);
  const states: unknown[] = [];
  const slugs: string[] = [];
  for (const isMended of [false, false, true, false]) {
    mend(isMended);
    slugs.push(await run());
    const [thing, ...more] = await dead();
    expect(more).toEqual([]);
    states.push([thing?.state, thing?.seenIn, slugs.indexOf(thing?.slug ?? "")]);
    now += 3600_000;
  }
  expect(states).toEqual([
    ["new", { runs: 1, of: 1 }, 0],
    ["open", { runs: 2, of: 2 }, 1],
    ["fixed", { runs: 2, of: 3 }, 1],
    ["regressed", { runs: 3, of: 4 }, 3],
  ]);
  const [thing] = await dead();
  const { body } = await app.send("GET", `/api/v1/friction/${thing?.fingerprint}?promptId=${prompt.id}`);
  expect(body).toMatchObject({
    firstSeenAt: "2026-11-01T09:00:00.000Z",
    lastSeenAt: "2026-11-01T12:00:00.000Z",
    fixedAt: null,
    prompts: [
      {
        promptId: prompt.id,
        state: "regressed",
        since: { met: 1, of: 1, missed: 0 },
        evaluations: [1, 1, 0, 1].map((met) => ({ met, of: 1 })),
      },
    ],
  });
  expect(body.cost.points).toBeGreaterThan(0);
  // All reports agree, including the oldest.
  const report = (await app.send("GET", `/api/v1/reports/${slugs[0]}`)).body;
  expect(report.frictionPoints.find((each: Thing) => each.category === "dead_link")).toMatchObject({
    fingerprint: thing?.fingerprint,
    state: "regressed",
    seenIn: { runs: 3, of: 4 },
  });
});

test("friction that only previews have is marked, and listed after friction of the live docs", async () => {
  const { site, run, list, dead, mend, prompt, app } = docs();
  mend(true);
  await run();
  mend(false);
  await run({ urlMap: { [`127.0.0.1:${site.port}`]: site.url } });
  const previewed = (each: Thing & { isPreview?: boolean }) => each.isPreview;
  const things = await list(`promptId=${prompt.id}`);
  expect(things.map(previewed)).toEqual([...things.slice(1).map(() => false), true]);
  const [link] = await dead();
  expect(things.at(-1)).toEqual(link as Thing);
  const pages = [`/friction?promptId=${prompt.id}`, `/friction/${link?.fingerprint}?promptId=${prompt.id}`];
  for (const path of pages) expect((await app.send("GET", path)).body).toContain('data-preview="true"');
  // Once it is live, it no longer belongs to a preview.
  await run();
  expect((await dead()).map(previewed)).toEqual([false]);
});

test("a run that never reached the page proves nothing", async () => {
  const { site, run, dead, app, prompt } = docs();
  await run();
  expect((await dead()).map(({ title }) => title)).toEqual(["Dead link on Acme: /guide/setup (404)"]);
  // Another start URL: the page with the dead link is not read, so nobody knows whether it is still there.
  updatePrompt(app.service.ctx, app.a.org, prompt.id, {
    targetProviderId: null,
    additionalUrls: [{ url: `${site.url}/install` }],
  });
  await run();
  const things = (await app.send("GET", `/api/v1/friction?promptId=${prompt.id}`)).body as Thing[];
  expect(things.find(({ category }) => category === "dead_link")).toMatchObject({
    state: "new",
    seenIn: { runs: 1, of: 1 },
  });
});

describe("the state of friction", () => {
  const [point] = niceGrade.frictions as [Grade["frictions"][number]];
  const withPoint: Grade = niceGrade;
  const without: Grade = { ...niceGrade, frictions: [], recommendations: [] };
  const byModel = (grade: Grade): Grade => ({ ...grade, exposure: { ...grade.exposure, byRules: false } });

  function prompted() {
    const app = testApp();
    const { id } = createPrompt(app.service.ctx, app.a.org, { text: "Upload. https://docs.example.com" });
    const evaluate = (...ends: (Grade | string)[]) => evaluation(app, id, ends);
    const told = async () => {
      const [thing] = (await app.send("GET", `/api/v1/friction?promptId=${id}`)).body;
      return thing ? [thing.state, thing.seenIn.runs, thing.seenIn.of] : null;
    };
    const set = (slug: string, status: string) => app.send("PATCH", `/api/v1/reports/${slug}`, { body: { status } });
    return { app, id, evaluate, told, set };
  }

  test("depends on published reports only; archived reports and drafts are ignored", async () => {
    const { app, id, evaluate, told, set } = prompted();
    const [first] = evaluate(withPoint);
    const [second] = evaluate(without);
    expect(await told()).toEqual(["fixed", 1, 2]);
    await set(second?.slug ?? "", "archived");
    expect(await told()).toEqual(["new", 1, 1]);
    await set(first?.slug ?? "", "draft");
    expect(await told()).toBeNull();
    await set(first?.slug ?? "", "published");
    await set(second?.slug ?? "", "published");
    expect(await told()).toEqual(["fixed", 1, 2]);
    updatePrompt(app.service.ctx, app.a.org, id, { reviewBeforePublishing: true });
    const [draft] = evaluate(withPoint);
    expect(await told()).toEqual(["fixed", 1, 2]);
    await set(draft?.slug ?? "", "published");
    expect(await told()).toEqual(["regressed", 2, 3]);
    const sums = (await app.send("GET", `/api/v1/friction?promptId=${id}`)).body[0].cost;
    expect(sums).toEqual({ points: 8.2, seconds: 2.8, usd: null });
  });

  test("of a model agent changes only after enough runs to keep chance below 5 %", async () => {
    const { evaluate, told } = prompted();
    evaluate(byModel(withPoint));
    // 1 of 1 counts as 1 of 2: the p of four misses is .0625, of five .031.
    evaluate(...Array.from({ length: 4 }, () => byModel(without)));
    expect(await told()).toEqual(["new", 1, 5]);
    evaluate(byModel(without));
    expect(await told()).toEqual(["fixed", 1, 6]);
  });

  test("ignores runs of another model, runs ended by a limit and failed runs", async () => {
    const { app, id, evaluate, told } = prompted();
    evaluate(withPoint);
    evaluate({ ...without, exposure: { ...without.exposure, isComplete: false } });
    evaluate({ ...without, exposure: { ...without.exposure, visits: [], done: [] } });
    evaluate("infrastructure: the host is gone");
    expect(await told()).toEqual(["new", 1, 1]);
    const model = evaluation(app, id, [withPoint]);
    app.db.$client.run("update runs set model = 'openai/gpt-5' where id = ?", [model[0]?.runId ?? ""]);
    expect(await told()).toEqual(["open", 2, 2]);
  });

  test("doesn't depend on the order in which the runs of an evaluation end", async () => {
    const { evaluate, told } = prompted();
    evaluate(without, without, withPoint, without);
    expect(await told()).toEqual(["new", 1, 4]);
    evaluate(withPoint, without, withPoint, withPoint);
    expect(await told()).toEqual(["open", 4, 8]);
  });

  test("can't be requested for an unknown prompt or provider", async () => {
    const { app, id } = prompted();
    const { send, b } = app;
    const got = async (query: string, key?: string) => {
      const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {};
      const { status, body } = await send("GET", `/api/v1/friction${query}`, { headers });
      return [status, body.detail];
    };
    const unknown = "0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11";
    const one = expect.stringMatching(/promptId.*providerId/);
    expect(await got("")).toEqual([400, one]);
    expect(await got(`?promptId=${id}&providerId=${unknown}`)).toEqual([400, one]);
    expect(await got(`?promptId=${id}`, b.key)).toEqual([404, `No prompt has the ID ${id}.`]);
    expect(await got(`?providerId=${unknown}`)).toEqual([404, `No provider has the ID ${unknown}.`]);
    expect(await got(`/${point.fingerprint}?promptId=${id}`)).toEqual([
      404,
      `No friction point has the fingerprint ${point.fingerprint}.`,
    ]);
  });
});
