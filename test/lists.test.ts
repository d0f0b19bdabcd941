import { describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { createKey } from "../src/auth/keys.ts";
import { runs } from "../src/db/tables/runs.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { createProvider } from "../src/providers/providers.ts";
import { setReportStatus } from "../src/reports/reports.ts";
import { listRunPage } from "../src/runs/lists.ts";
import type { EvalRequestInput } from "../src/runs/requests.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { evaluation, niceGrade, runWithReport } from "./support/reports.ts";

const app = testApp();
const page = async (path: string) => (await app.send("GET", path)).body as string;
/** The rows of the table of a page that match `pattern`. */
const found = (html: string, pattern: RegExp) => [...html.matchAll(pattern)].map(([, value = ""]) => value);
const headOf = (html: string, label: string) =>
  /<th[^>]*?(?:aria-sort="(\w+)")?><a class="sort" href="([^"]+)">/
    .exec(
      html
        .slice(0, html.indexOf(`>${label}</a>`) + 1)
        .split("<th")
        .map((each) => `<th${each}`)
        .at(-1) ?? "",
    )
    ?.slice(1)
    .map((each) => each?.replaceAll("&amp;", "&"));

// Each of the three prompts has two evaluations. The last ones score 60, 95 and 78.4.
const prompts = ["Bravo", "alpha", "Charlie"].map(
  (title) => createPrompt(app.service.ctx, app.a.org, { title, text: "Do it. https://docs.example.com" }).id,
);
const ended = prompts.flatMap((id, i) =>
  [30, [60, 95, 78.4][i] as number].map((score, nth) => {
    const [run] = evaluation(app, id, [{ ...niceGrade, score, grade: "C" }]);
    const startedAt = 1_000_000;
    const completedAt = startedAt + [5000, 1000, 9000][i]! + nth;
    app.db
      .update(runs)
      .set({ startedAt, completedAt })
      .where(eq(runs.id, run?.runId ?? ""))
      .run();
    return { ...run, score, ms: completedAt - startedAt };
  }),
);

test("the URL of a filtered list has no empty parameters", async () => {
  const sent = await app.send("GET", "/runs?promptId=&status=completed&agent=&trigger=");
  expect([sent.status, sent.headers.get("location")]).toEqual([303, "/runs?status=completed"]);
  const bare = await app.send("GET", "/reports?worst=&best=");
  expect([bare.status, bare.headers.get("location")]).toEqual([303, "/reports"]);
});

describe("a list", () => {
  const titles = (html: string) => found(html, /href="\/prompts\/[0-9a-f-]{36}">([^<]+)<\/a>/g);

  test("of prompts can be sorted by title, score and change", async () => {
    expect(titles(await page("/prompts"))).toEqual(["Charlie", "alpha", "Bravo"]);
    expect(titles(await page("/prompts?sort=title"))).toEqual(["alpha", "Bravo", "Charlie"]);
    expect(titles(await page("/prompts?sort=-title"))).toEqual(["Charlie", "Bravo", "alpha"]);
    expect(titles(await page("/prompts?sort=-score"))).toEqual(["alpha", "Charlie", "Bravo"]);
    expect(titles(await page("/prompts?sort=score"))).toEqual(["Bravo", "Charlie", "alpha"]);
    expect(titles(await page("/prompts?sort=change")).length).toBe(3);
    expect((await app.send("GET", "/prompts?sort=owner")).status).toBe(400);
  });

  test("has headings that link to the other order, keep filters, and name the order", async () => {
    const html = await page("/reports?status=published&sort=-score");
    expect(headOf(html, "Score")).toEqual(["descending", "/reports?status=published&sort=score"]);
    expect(headOf(html, "Created")).toEqual([undefined as unknown as string, "/reports?status=published"]);
    expect(html).toContain('<input type="hidden" name="sort" value="-score"');
    expect(headOf(await page("/reports"), "Created")).toEqual(["descending", "/reports?sort=created"]);
  });

  test("of reports can be sorted by score and time", async () => {
    const scores = async (path: string) => found(await page(path), /<td class="number">([\d.]+)<\/td>/g);
    expect(await scores("/reports?sort=-score")).toEqual(["95.0", "78.4", "60.0", "30.0", "30.0", "30.0"]);
    expect((await scores("/reports?sort=score")).slice(3)).toEqual(["60.0", "78.4", "95.0"]);
    expect(await scores(`/reports?sort=-score&promptId=${prompts[0]}`)).toEqual(["60.0", "30.0"]);
    expect(await scores("/reports?sort=created")).toEqual(ended.map(({ score }) => score.toFixed(1)));
  });

  test.each(["duration", "-duration", "created", "-created"] as const)(
    "of runs by %s continues on the next page without gaps",
    (sort) => {
      for (const filter of [{}, { trigger: "api" as const }, { status: "completed" as const, agent: "explorer" }]) {
        const seen: string[] = [];
        for (let before: string | undefined; ; ) {
          const { items, next } = listRunPage(app.service.ctx, app.a.org, { ...filter, sort }, { limit: 2, before });
          seen.push(...items.map(({ runId }) => runId));
          if (next === null) break;
          before = next;
        }
        const byKey = ended.toSorted((a, b) => (sort.endsWith("duration") ? a.ms - b.ms : 0));
        const wanted = byKey.map(({ runId }) => runId ?? "");
        expect(seen).toEqual(sort.startsWith("-") ? wanted.toReversed() : wanted);
      }
    },
  );

  test("of friction or keys can be sorted too", async () => {
    const [high] = niceGrade.frictions;
    const low = { ...high, fingerprint: "00000000000000a2", severity: "low" } as NonNullable<typeof high>;
    evaluation(app, prompts[0] ?? "", [{ ...niceGrade, frictions: [...niceGrade.frictions, low] }]);
    const seen = found(await page("/friction?sort=severity"), /pill severity">(\w+)</g);
    const worstFirst = found(await page("/friction?sort=-severity"), /pill severity">(\w+)</g);
    expect(seen).toEqual(["low", "high"]);
    expect(worstFirst).toEqual(["high", "low"]);
    for (const name of ["zulu", "kilo"]) createKey(app.service.ctx, app.a.org, name);
    const names = async (path: string) => found(await page(path), /<th scope="row">([^<]+)<\/th>/g);
    expect(await names("/settings/keys?sort=name")).toEqual(["kilo", "test", "zulu"]);
    expect(await names("/settings/keys?sort=-name")).toEqual(["zulu", "test", "kilo"]);
  });
});

test("items of a preview are marked", async () => {
  const urlMap = { "docs.example.com": "https://preview.example.com" };
  const [run] = evaluation(app, prompts[0] ?? "", [niceGrade], { urlMap });
  const [live] = ended;
  const marks = async (path: string) => (await page(path)).split('data-preview="true"').length - 1;
  for (const path of ["/runs", "/reports", `/runs/${run?.runId}`, `/reports/${run?.slug}`])
    expect([path, await marks(path)]).toEqual([path, 1]);
  expect(await marks(`/reports/${run?.slug}/session`)).toBe(1);
  expect(await marks(`/evals/${run?.evalRequestId}`)).toBe(1);
  expect(await marks(`/compare?slugs=${live?.slug},${run?.slug}`)).toBe(1);
  expect(await marks(`/evals/${live?.evalRequestId}`)).toBe(0);
  setReportStatus(app.service.ctx, app.a.org, run?.slug ?? "", "archived");
});

test("runs and reports with edited docs are marked, and those of a changed prompt are not", async () => {
  const edits = { hidden: ["https://docs.example.com/a"], replacements: [] };
  const requests: Partial<EvalRequestInput>[] = [{ edits }, { changes: { without: ["skills"] } }];
  const ended = requests.map((more) => evaluation(app, prompts[0] ?? "", [niceGrade], more)[0]);
  const marks = async (path: string) => (await page(path)).split('data-edited="true"').length - 1;
  for (const path of ["/runs", "/reports"]) expect([path, await marks(path)]).toEqual([path, 1]);
  const ofEvals = ended.map((run) => marks(`/evals/${run?.evalRequestId}`));
  expect(await Promise.all(ofEvals)).toEqual([1, 0]);
  for (const run of ended) setReportStatus(app.service.ctx, app.a.org, run?.slug ?? "", "archived");
});

test("an evaluation lists its runs", async () => {
  const app = testApp();
  const { id } = createPrompt(app.service.ctx, app.a.org, {
    title: "Group",
    text: "Do it. https://docs.example.com",
  });
  const [one] = evaluation(app, id, [niceGrade]);
  const many = evaluation(app, id, [niceGrade, niceGrade, "timeout: too slow"]);
  const groups = async (path: string) => {
    const { body } = await app.send("GET", path);
    return body
      .split("<tbody>")
      .slice(1)
      .map((group: string) => [
        /data-eval="([^"]+)"/.exec(group)?.[1] ?? null,
        group.split('class="plain" href="/runs/').length - 1,
      ]);
  };
  const evalId = many[0]?.evalRequestId;
  expect(await groups("/runs")).toEqual([
    [evalId, 3],
    [null, 1],
  ]);
  expect(await groups("/runs?status=failed")).toEqual([[evalId, 1]]);
  expect(await groups("/runs?sort=duration")).toEqual([[null, 4]]);
  expect(one?.runId).toBeString();
});

describe("the search", () => {
  const hits = async (text: string, who: string | null = null, headers = {}) => {
    const { body } = await app.send("GET", `/search?q=${encodeURIComponent(text)}`, {
      headers: { "hx-request": "true", ...(who === null ? {} : { authorization: "", cookie: who }), ...headers },
    });
    expect(body).not.toContain("<html");
    return [...body.matchAll(/<a href="([^"]+)">/g)].map(([, path]: string[]) => path ?? "");
  };
  const [first] = ended;

  test("finds prompts, their reports and runs, pages and actions", async () => {
    const found = await hits("bravo");
    expect(found[0]).toBe(`/prompts/${prompts[0]}`);
    expect(found.some((path) => path.startsWith("/reports/bravo-"))).toBe(true);
    expect(found.some((path) => path.startsWith("/runs/"))).toBe(true);
    expect(await hits(first?.slug ?? "")).toEqual([`/reports/${first?.slug}`]);
    expect(await hits(first?.runId ?? "")).toEqual([`/runs/${first?.runId}`]);
    expect(await hits("trends")).toContain("/trends");
    expect(await hits("compare and gate")).toEqual(["/docs/gates"]);
    expect(await hits("no such thing")).toEqual([]);
    expect((await hits("")).slice(0, 2)).toEqual(["/", "/prompts"]);
  });

  test("offers only actions that the role allows, and nothing of another organization", async () => {
    const [owner, viewer] = [await signedIn(app), await signedIn(app, { role: "viewer" })];
    expect(await hits("new prompt", owner.cookie())).toEqual(["/prompts/new"]);
    expect(await hits("bravo", owner.cookie())).toContain(`/prompts/${prompts[0]}#run-form`);
    expect(await hits("new prompt", viewer.cookie())).toEqual([]);
    const foreign = { authorization: `Bearer ${app.b.key}` };
    for (const text of ["bravo", first?.slug ?? "", first?.runId ?? ""])
      expect(await hits(text, null, foreign)).toEqual([]);
  });

  test("is a normal page without JavaScript", async () => {
    const html = await page("/search?q=bravo");
    expect(html).toContain(`href="/prompts/${prompts[0]}"`);
    expect(html).toContain('<form method="get" action="/search"');
    expect(html).toContain('<dialog id="palette"');
  });
});

test("providers and members are sorted by column, and a second click reverses the order", async () => {
  const app = testApp();
  const { service, a } = app;
  const owner = await signedIn(app, { email: "z@example.com" });
  for (const [name, docsUrl] of [
    ["Beta", "https://a.example.com"],
    ["Alpha", "https://b.example.com"],
    ["Gamma", null],
  ] as const)
    createProvider(service.ctx, a.org, { name, docsUrl });
  const names = async (path: string, pattern: RegExp) => {
    const { body, status } = await owner.get(path);
    return status === 200 ? [...body.matchAll(pattern)].map(([, name]) => name) : status;
  };
  const listed = (query: string) => names(`/providers${query}`, /href="\/providers\/[0-9a-f-]{36}">(\w+)</g);
  expect(await listed("")).toEqual(["Gamma", "Alpha", "Beta"]);
  expect(await listed("?sort=name")).toEqual(["Alpha", "Beta", "Gamma"]);
  expect(await listed("?sort=-docs")).toEqual(["Alpha", "Beta", "Gamma"]);
  expect(await listed("?sort=age")).toBe(400);
  expect((await owner.get("/providers?sort=name")).body).toContain('href="/providers?sort=-name"');

  await signedIn(app, { role: "viewer", email: "a@example.com" });
  const members = (query: string) => names(`/settings/members${query}`, /class="aside block">(\w)@/g);
  expect(await members("")).toEqual(["z", "a"]);
  expect(await members("?sort=-role")).toEqual(["a", "z"]);
  expect(await members("?sort=name")).toEqual(["z", "a"]);
  expect(await members("?sort=age")).toBe(400);
});

test("lists find reports by index as soon as a new database has grown", async () => {
  const app = testApp();
  runWithReport(app, niceGrade);
  // This also happens when the service stops.
  app.db.$client.run("analyze");
  const readsAll = () =>
    app.db.$client
      .query<{ detail: string }, []>(
        "explain query plan select slug from runs left join reports on reports.run_id = runs.id order by runs.id",
      )
      .all()
      .some(({ detail }) => detail.startsWith("SCAN reports"));
  for (let i = 0; i < 30; i++) runWithReport(app, niceGrade);
  expect(readsAll()).toBe(true);
  await app.service.upkeep.runOnce();
  expect(readsAll()).toBe(false);
});
