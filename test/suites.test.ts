import { expect, test } from "bun:test";
import type { Suite, SuiteComparison } from "../src/suites/schema.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { finishRuns, niceGrade } from "./support/reports.ts";

const app = testApp();
const { send, b } = app;
const asB = { headers: { authorization: `Bearer ${b.key}` } };

const promptIdsOf = ({ prompts = [] }: { prompts?: { promptId: string }[] }) => prompts.map(({ promptId }) => promptId);

/** A product as a provider with the prompts of the built-in suite. */
async function createProduct(name: string, more: object = {}, values: object = {}) {
  const body = { name, docsUrl: `https://${name}.example/docs/` };
  const providerId: string = (await send("POST", "/api/v1/providers", { body })).body.id;
  const created = await send("POST", "/api/v1/suites/baseline/prompts", {
    body: {
      providerId,
      values: { product: name, primaryTask: "store a note", versionCommand: `${name} --version`, ...values },
      ...more,
    },
  });
  return { providerId, status: created.status, promptIds: promptIdsOf(created.body), body: created.body };
}

const command = (name: string) => ({ command: `test -e ${name}` });
const checks = { core: [command("note")], errors: [command("mended")], cleanup: [command("gone")] };
const compare = async (): Promise<SuiteComparison> => (await send("GET", "/api/v1/suites/baseline/comparison")).body;
const met = { ...niceGrade, outcome: "succeeded" } as const;
const missed = { ...niceGrade, outcome: "goal_not_met" } as const;

test("products are compared by the share of slots that a scripted agent reached", async () => {
  const packageName = { packageName: "@evald/client" };
  const api = await createProduct("evald-api", { checks }, packageName);
  const cli = await createProduct("cowsay", { checks }, packageName);
  // A library without checks of its own: three holes, and never a zero.
  const library = await createProduct("picocolors");
  expect(api.promptIds).toHaveLength(5);
  const first = (await send("GET", `/api/v1/prompts/${api.promptIds[0]}`)).body;
  expect(first.suite).toEqual({ id: "baseline", version: 1, slot: "discover" });
  expect(first.text).toContain("{{primaryTask}}");
  expect(first.declaredChecks).toEqual([{ file: "answer.json", contains: "@evald/client" }]);

  const started = await send("POST", "/api/v1/suites/baseline/run", { body: { runs: 4 } });
  expect(started.status).toBe(202);
  expect(started.body.runs).toBe(60);
  expect(new Set(started.body.evalRequestIds).size).toBe(15);
  // The API is always reached, the CLI in the last of its four runs of each slot, the library where it is judged.
  const ended = new Map<string, number>();
  finishRuns(app, (run) => {
    const nth = (ended.get(run.promptId) ?? 0) + 1;
    ended.set(run.promptId, nth);
    if (cli.promptIds.includes(run.promptId)) return nth === 4 ? met : nth === 1 ? "timeout: too slow" : missed;
    return met;
  });

  const { products, changed, slots } = await compare();
  expect([slots.length, changed]).toEqual([5, []]);
  const of = ({ providerId }: { providerId: string }) => products.find((each) => each.providerId === providerId);
  // Wilson by hand: z² = 3.8415; 20 of 20 → low 20 / (20 + z²); 5 of 20 and 4 of 4 likewise.
  expect(of(api)?.share).toEqual({ value: 1, low: 0.839, high: 1 });
  expect(of(cli)?.share).toEqual({ value: 0.25, low: 0.112, high: 0.469 });
  expect(of(library)?.share).toEqual({ value: 1, low: 0.51, high: 1 });
  expect(of(library)?.slots.map(({ state, judged }) => [state, judged])).toEqual([
    ["not_judged", 0],
    ["judged", 4],
    ["not_judged", 0],
    ["not_judged", 0],
    ["not_judged", 0],
  ]);
  expect(of(api)?.seconds).toEqual({ value: 4.2, low: null, high: null });
  // A timeout has no report, so it is unknown what came before the first success.
  expect(of(cli)?.seconds).toBeNull();
  expect(of(cli)?.slots[2]).toMatchObject({ judged: 4, reached: 1 });
  expect([of(api)?.standing, of(cli)?.standing, of(library)?.standing]).toEqual(["tied", "behind", "tied"]);
});

test("a prompt whose text was changed is named, not compared, and not run", async () => {
  const { products } = await compare();
  const [row] = products;
  const slot = row?.slots[1];
  const path = `/api/v1/prompts/${slot?.promptId}`;
  const { text, title } = (await send("GET", path)).body;
  await send("PATCH", path, { body: { text: `${text} Hurry.` } });
  const after = await compare();
  expect(after.changed).toEqual([title]);
  const own = after.products.find(({ providerId }) => providerId === row?.providerId);
  expect(own?.slots[1]).toMatchObject({ state: "changed", judged: 0, reached: 0 });
  const refused = await send("POST", "/api/v1/suites/baseline/run", { body: {} });
  expect([refused.status, refused.body.detail.includes(title)]).toEqual([409, true]);
  await send("PATCH", path, { body: { text } });
  expect((await compare()).products).toEqual(products);
});

test("invalid products are refused and create nothing", async () => {
  const count = async () => (await send("GET", "/api/v1/prompts?limit=1000")).body.length;
  const before = await count();
  const told = await createProduct("chalk", {}, { packageName: "chalk" });
  expect([told.status, told.body.detail.includes("values")]).toEqual([400, true]);
  const untold = await createProduct("ink", {}, { primaryTask: "" });
  expect(untold.status).toBe(400);
  const unknown = await createProduct("ora", { checks: { spin: [] } });
  expect([unknown.status, unknown.body.detail.includes("checks")]).toEqual([400, true]);
  expect(await count()).toBe(before);
});

test("an organization has versions of its own suites", async () => {
  const slot = {
    slot: "upload",
    title: "Upload with {{product}}",
    text: "Upload a file with {{product}}.",
    endGoal: null,
  };
  const body = {
    ...{ id: "storage", version: 1, title: "Storage", limits: { toolCalls: 20 }, agents: null },
    slots: [{ ...slot, declaredChecks: [{ command: "test -e {{file}}" }] }],
  };
  expect((await send("POST", "/api/v1/suites", { body })).body.version).toBe(1);
  expect((await send("POST", "/api/v1/suites", { body: { ...body, version: 2 } })).body.version).toBe(2);
  expect((await send("POST", "/api/v1/suites", { body })).status).toBe(409);
  const listed: Suite[] = (await send("GET", "/api/v1/suites")).body;
  expect(listed.map(({ id, version }) => [id, version])).toEqual([
    ["baseline", 1],
    ["storage", 2],
  ]);
  const reserved = await send("POST", "/api/v1/suites", { body: { ...body, id: "baseline" } });
  const twice = await send("POST", "/api/v1/suites", {
    body: { ...body, version: 3, slots: [body.slots[0], body.slots[0]] },
  });
  expect([reserved.status, twice.status]).toEqual([400, 400]);
  const providerId = (await send("GET", "/api/v1/providers")).body[0].id;
  const product = { providerId, values: { product: "Acme", file: "a b" } };
  const { body: created } = await send("POST", "/api/v1/suites/storage/prompts", { body: product });
  const prompt = (await send("GET", `/api/v1/prompts/${promptIdsOf(created)[0]}`)).body;
  expect([prompt.declaredChecks, prompt.limits]).toEqual([[{ command: "test -e a b" }], { toolCalls: 20 }]);
  expect((await send("GET", "/api/v1/suites", asB)).body).toHaveLength(1);
  for (const path of ["comparison", "run"])
    expect(
      (
        await send(path === "run" ? "POST" : "GET", `/api/v1/suites/storage/${path}`, {
          ...asB,
          ...(path === "run" && { body: {} }),
        })
      ).status,
    ).toBe(404);
});

test("the page shows what the comparison says, holes as not judged and ties as not distinguishable", async () => {
  const browser = await signedIn(app);
  const html: string = (await browser.get("/suites")).body;
  const { products, slots } = await compare();
  const cellsOf = (attribute: string) =>
    [...html.matchAll(new RegExp(`data-label="([^"]+)" data-${attribute}="(\\w+)"`, "g"))].map(([, ...cell]) => cell);
  expect(cellsOf("standing")).toEqual(products.map(({ product, standing }) => [product, standing ?? ""]));
  expect(cellsOf("state")).toEqual(
    slots.flatMap((_, i) => products.map(({ product, slots }) => [product, slots[i]?.state ?? ""])),
  );
  const cell = (product: string, state: string) =>
    new RegExp(`data-label="${product}" data-state="${state}">(.*?)</td>`).exec(html)?.[1];
  expect(cell("picocolors", "not_judged")).toContain("not judged");
  expect(cell("cowsay", "judged")).toContain("1 of 4");
  expect(html).toContain("25% (11.2% to 46.9%)");
  expect(html.split("Not distinguishable")).toHaveLength(3);
  expect((await browser.get("/suites?suite=unknown")).status).toBe(404);
  // The choice works without JavaScript.
  expect(html).toMatch(/<form[^>]* method="get" action="[^"]*\/suites"/);
  expect((await browser.get("/prompts")).body).toContain(`href="/suites"`);
});
