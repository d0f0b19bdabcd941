import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import openApi from "../../openapi.json";
import { createKey } from "../../src/auth/keys.ts";
import type { OrgId } from "../../src/context.ts";
import { seedHistory } from "../bench/history.ts";
import { testApp } from "../support/app.ts";
import { seedExperiments } from "../support/many-experiments.ts";
import { withOwnParts } from "../support/openapi.ts";

const folder = mkdtempSync(join(tmpdir(), "evald-plans-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Tables that grow with the number of reports. */
const large =
  /\b(SCAN) (runs|reports|exposures|session_events|friction_points|friction_lifecycles|score_days|page_months|listed_pages|eval_requests|fixes|recommendations)\b/;
/** A line of a plan that reads a table which grows with time, or all jobs of a kind, of all organizations. An index of unfinished jobs is short. */
const growing =
  /\bSCAN (suites|field_traffic|proposal_sets|deletions|jobs(?! USING (COVERING )?INDEX jobs_(claim|held|running))|earlier_attempts|audit_entries|notifications|deliveries|delivery_tries|spending|spending_details|score_changes|field_friction|field_reports|gates|gradings|regrades|experiments|experiment_runs|calibrations|calibration_runs|run_hours|bisects|bisect_runs)\b|SEARCH jobs USING (COVERING )?INDEX jobs_subject \(kind=\?\)/;

/** All statements prepared during `work`. */
async function statementsOf(work: () => unknown): Promise<string[]> {
  const seen = new Set<string>();
  const { prepare } = Database.prototype;
  Database.prototype.prepare = function (this: Database, sql: string, ...rest: never[]) {
    seen.add(sql);
    return prepare.call(this, sql, ...rest);
  } as typeof prepare;
  try {
    await work();
  } finally {
    Database.prototype.prepare = prepare;
  }
  return [...seen].filter((sql) => /^\s*(select|with)\b/i.test(sql));
}

test("trends, friction, docs map and fixes scan no large table, with and without statistics", async () => {
  // There are statistics: in a table of a single organization, the planner may consider an index useless.
  const { key, promptIds, providerId, slugs } = seedHistory(folder, 3000);
  let app: ReturnType<typeof testApp> | undefined;
  const statements = await statementsOf(async () => {
    app = testApp({ dataDir: folder });
    const get = async (path: string) => {
      const answer = await app?.send("GET", `/api/v1/${path}`, { headers: { authorization: `Bearer ${key}` } });
      expect([path, answer?.status]).toEqual([path, 200]);
      return answer?.body;
    };
    const scopes = [`promptId=${promptIds[3]}`, `providerId=${providerId}`];
    for (const scope of scopes) {
      const things = await get(`friction?${scope}`);
      expect(things.length).toBeGreaterThan(20);
      await get(`friction/${things[0].fingerprint}?${scope}`);
      await get(`friction?${scope}&state=open&severity=high`);
    }
    for (const of of ["", `promptId=${promptIds[3]}&`])
      for (const interval of ["day", "week", "month", ...(of ? ["eval"] : [])])
        expect((await get(`trends?${of}interval=${interval}`)).points.length).toBeGreaterThan(0);
    expect((await get(`providers/${providerId}/docs-map`)).pages.length).toBe(100);
    await get(`prompts/${promptIds[3]}/docs-map?agent=explorer&since=2026-01-01`);
    await get(`recommendations/done?promptId=${promptIds[3]}`);
    await get(`reports/${slugs[0]}`);
  });
  const read = statements.filter((sql) => /friction_lifecycles|score_days|page_months|listed_pages/.test(sql));
  expect(read.length).toBeGreaterThan(8);
  const client = app?.db.$client as Database;
  const scans = (sql: string) =>
    client
      .query<{ detail: string }, []>(`explain query plan ${sql}`)
      .all()
      .filter(({ detail }) => large.test(detail))
      .map(({ detail }) => `${detail}: ${sql}`);
  // Statements of the queue, the schedules and maintenance were prepared too; only those for the responses above count.
  const own = statements.filter((sql) => !/"jobs"|"scheduled_evaluations"|"attempts"|"next_evaluation_at"/.test(sql));
  expect(own.flatMap(scans)).toEqual([]);
  client.run("delete from sqlite_stat1");
  client.run("analyze sqlite_schema");
  expect(own.flatMap(scans)).toEqual([]);
});

type Parameter = { name: string; in: string; schema: Schema };
type Schema = {
  $ref?: string;
  type?: string;
  enum?: string[];
  const?: string;
  anyOf?: Schema[];
  default?: unknown;
  format?: string;
};

/** What a caller may pass for a parameter of a list: each value of a closed set, else one that it would have. */
function valuesOf({ name, schema: given }: Parameter, samples: Record<string, string>): string[] {
  const schemas: Record<string, Schema> = openApi.components.schemas as never;
  const schema = schemas[given.$ref?.split("/").at(-1) ?? ""] ?? given;
  const closed = [schema, ...(schema.anyOf ?? [])].flatMap((each) => each.enum ?? each.const ?? []);
  if (closed.length > 0) return closed;
  if (samples[name] !== undefined) return [samples[name]];
  if (schema.type === "boolean") return ["true"];
  return schema.type === "integer" || schema.type === "number" ? ["50"] : ["upload"];
}

/** Adds something to the lists that a history of reports leaves empty. Returns the IDs of objects that have lists. */
async function furnish(
  send: (method: string, path: string, body?: object) => ReturnType<ReturnType<typeof testApp>["send"]>,
  { providerId, promptId }: { providerId: string; promptId: string },
): Promise<{ destinationId: string; experimentId: string }> {
  const post = async (path: string, body: object) => {
    const answer = await send("POST", `/api/v1${path}`, body);
    expect([path, answer.body.detail]).toEqual([path, undefined]);
    return answer.body;
  };
  const values = { product: "Acme", primaryTask: "store a note", versionCommand: "acme --version" };
  await post("/suites/baseline/prompts", { providerId, values });
  await post("/suites/baseline/run", {});
  const page = { month: "2026-11", kind: "coding", name: "Codex", url: "https://docs.example.com/a" };
  const counts = { reads: 1, markdown: 0, missing: 0 };
  await post("/field-traffic", { log: "0".repeat(64), pages: [{ ...page, ...counts }] });
  await post("/proposals", { docsUrl: "https://docs.example.com/" });
  await post("/queue/pauses", { kind: "agent", subject: "explorer" });
  await send("DELETE", `/api/v1/prompts/${promptId}`);
  const url = "https://hooks.example.com/evald";
  const { id: destinationId } = await post("/destinations", { kind: "webhook", url, events: ["digest.weekly"] });
  const { id: ownId } = await post("/prompts", { text: "Read https://docs.example.com/" });
  const edits = { hidden: ["https://docs.example.com/llms.txt"], replacements: [] };
  const arms = [{ name: "baseline" }, { name: "no llms.txt", edits }];
  const { id: experimentId } = await post("/experiments", { promptIds: [ownId], arms });
  await post("/calibrations", { agent: "explorer", sites: 1 });
  return { destinationId, experimentId };
}

test("no list scans a large table, with any filter and any order", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "evald-lists-"));
  const { key, promptIds, providerId, slugs, evalRequestIds } = seedHistory(dataDir, 3000);
  const samples: Record<string, string> = {
    promptId: promptIds[3] ?? "",
    providerId,
    evalRequestId: evalRequestIds[0] ?? "",
    ids: promptIds.slice(0, 3).join(),
    slugs: slugs.slice(0, 3).join(),
    slug: slugs[0] ?? "",
    suiteId: "baseline",
    types: "thought",
    since: "2020-01-01T00:00:00.000Z",
    until: "2099-01-01T00:00:00.000Z",
    from: "2020-01-01T00:00:00.000Z",
    to: "2099-01-01T00:00:00.000Z",
    agent: "explorer",
    limit: "20",
    offset: "40",
  };
  const paths: Record<string, { get?: { parameters?: Parameter[] } }> = withOwnParts(openApi).paths as never;
  // These lists have no pages.
  const whole = ["/api/v1/queue", "/api/v1/queue/failures", "/api/v1/schedules", "/api/v1/suites/{suiteId}/comparison"];
  const lists = Object.entries(paths).flatMap(([path, { get }]) => {
    const query = get?.parameters?.filter((parameter) => parameter.in === "query") ?? [];
    const ofObject = path.replaceAll(/\{(\w+)\}/g, (_, name) => samples[name] ?? name);
    return query.some(({ name }) => name === "limit") || whole.includes(path) ? [{ path: ofObject, query }] : [];
  });
  expect(lists.length).toBeGreaterThan(28);
  const urls = lists.flatMap(({ path, query }) => {
    const pairs = query.flatMap((parameter) =>
      valuesOf(parameter, samples).map((value) => `${parameter.name}=${value}`),
    );
    const sorts = pairs.filter((pair) => pair.startsWith("sort="));
    return [
      path,
      ...pairs.flatMap((pair) =>
        ["", ...sorts].map((sort) => `${path}?${[...new Set([pair, sort])].filter(Boolean).join("&")}`),
      ),
    ];
  });
  const app = testApp({ dataDir, env: { EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") } });
  const { org } = app.db.$client.query("select org_id org from prompts limit 1").get() as { org: OrgId };
  const statements = await statementsOf(async () => {
    // Only keys that name the scope read the audit log, or the queue.
    const keyOf = (scope: "audit" | "operate") => createKey(app.service.ctx, org, scope, { scopes: [scope] }).key;
    const keys = { "/api/v1/audit-log": keyOf("audit"), "/api/v1/queue": keyOf("operate") };
    const send = (method: string, path: string, body?: object) => {
      const [, own = key] = Object.entries(keys).find(([start]) => path.startsWith(start)) ?? [];
      return app.send(method, path, { body, headers: { authorization: `Bearer ${own}` } });
    };
    const ids = await furnish(send, { providerId, promptId: promptIds[9] ?? "" });
    for (const url of new Set(
      urls.map((each) => each.replace(/(destination|experiment)Id/, (name) => ids[name as keyof typeof ids])),
    )) {
      let { status } = await send("GET", url);
      const ofPrompt = `${url}${url.includes("?") ? "&" : "?"}promptId=${samples.promptId}`;
      // Some lists are those of one prompt.
      if (status === 400) ({ status } = await send("GET", ofPrompt));
      expect([url, status]).toEqual([url, 200]);
    }
  });
  expect(urls.length).toBeGreaterThan(80);
  const client = app.db.$client;
  const own = statements.filter(
    (sql) => !/"scheduled_evaluations"|"next_evaluation_at"|where \(?false |and false\)/.test(sql),
  );
  expectNoScans(client, own);
  expectIndexedPages(client, own);
  rmSync(dataDir, { recursive: true });
}, 120_000);

/** Expects that the rows before a page of runs, evaluations or reports are skipped in an index that has all that is asked of them. */
function expectIndexedPages(client: Database, statements: string[]): void {
  const pages = statements.filter((sql) =>
    /select "id" from "(runs|eval_requests|reports)".* offset|select "run_id" from "reports".* offset/.test(sql),
  );
  expect(pages.length).toBeGreaterThan(4);
  const reading = pages.flatMap((sql) =>
    client
      .query<{ detail: string }, []>(`explain query plan ${sql}`)
      .all()
      .filter(({ detail }) => /^SEARCH (runs|eval_requests|reports) USING INDEX \w+ \(org_id=/.test(detail))
      .map(({ detail }) => `${detail}: ${sql}`),
  );
  expect(reading).toEqual([]);
}

/** Expects that no statement scans a large table, with the statistics of the tables and without. */
function expectNoScans(client: Database, statements: string[]): void {
  const scans = () =>
    statements.flatMap((sql) =>
      client
        .query<{ detail: string }, []>(`explain query plan ${sql}`)
        .all()
        .filter(({ detail }) => large.test(detail) || growing.test(detail))
        .map(({ detail }) => `${detail}: ${sql}`),
    );
  expect(scans()).toEqual([]);
  client.run("delete from sqlite_stat1");
  client.run("analyze sqlite_schema");
  expect(scans()).toEqual([]);
}

test("the pages of experiments scan no large table", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "evald-experiments-"));
  const size = { experiments: 12, arms: 3, prompts: 4, repeats: 3, running: 1 };
  const { key, ids } = await seedExperiments(dataDir, size);
  let app: ReturnType<typeof testApp> | undefined;
  const statements = await statementsOf(async () => {
    app = testApp({ dataDir });
    const paths = ["", `/${ids[0]}`, `/${ids.at(-1)}`, `/${ids[0]}/runs.csv`].map((path) => `/experiments${path}`);
    for (const path of [...paths, "/api/v1/experiments", `/api/v1/experiments/${ids[0]}/runs`]) {
      const answer = await app.send("GET", path, { headers: { authorization: `Bearer ${key}`, accept: "text/html" } });
      expect([path, answer.status]).toEqual([path, 200]);
    }
  });
  const own = statements.filter((sql) => sql.includes('"experiment'));
  expect(own.length).toBeGreaterThan(7);
  expectNoScans(app?.db.$client as Database, own);
  rmSync(dataDir, { recursive: true });
});
