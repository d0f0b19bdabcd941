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
import { withOwnParts } from "../support/openapi.ts";

const folder = mkdtempSync(join(tmpdir(), "evald-plans-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Tables that grow with the number of reports. */
const large =
  /\b(SCAN) (runs|reports|exposures|session_events|friction_points|friction_lifecycles|score_days|page_months|listed_pages|eval_requests|fixes|recommendations)\b/;

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

test("no list scans a large table, with any filter and any order", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "evald-lists-"));
  const { key, promptIds, providerId, slugs, evalRequestIds } = seedHistory(dataDir, 3000);
  const samples: Record<string, string> = {
    promptId: promptIds[3] ?? "",
    providerId,
    evalRequestId: evalRequestIds[0] ?? "",
    ids: promptIds.slice(0, 3).join(),
    slugs: slugs.slice(0, 3).join(),
    since: "2020-01-01T00:00:00.000Z",
    until: "2099-01-01T00:00:00.000Z",
    from: "2020-01-01T00:00:00.000Z",
    to: "2099-01-01T00:00:00.000Z",
    agent: "explorer",
    limit: "20",
    offset: "40",
  };
  const paths: Record<string, { get?: { parameters?: Parameter[] } }> = withOwnParts(openApi).paths as never;
  const lists = Object.entries(paths).flatMap(([path, { get }]) => {
    const query = get?.parameters?.filter((parameter) => parameter.in === "query") ?? [];
    return !path.includes("{") && query.some(({ name }) => name === "limit") ? [{ path, query }] : [];
  });
  expect(lists.length).toBeGreaterThan(12);
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
  let app: ReturnType<typeof testApp> | undefined;
  const statements = await statementsOf(async () => {
    app = testApp({ dataDir });
    const { org } = app.db.$client.query<{ org: OrgId }, []>("select org_id org from prompts limit 1").get() ?? {};
    // Only keys that name the scope read the audit log.
    const { key: auditKey } = createKey(app.service.ctx, org as OrgId, "audit", { scopes: ["audit"] });
    for (const url of new Set(urls)) {
      const headers = { authorization: `Bearer ${url.startsWith("/api/v1/audit-log") ? auditKey : key}` };
      let { status } = await app.send("GET", url, { headers });
      const ofPrompt = `${url}${url.includes("?") ? "&" : "?"}promptId=${samples.promptId}`;
      // Some lists are those of one prompt.
      if (status === 400) ({ status } = await app.send("GET", ofPrompt, { headers }));
      expect([url, status]).toEqual([url, 200]);
    }
  });
  expect(urls.length).toBeGreaterThan(80);
  const client = app?.db.$client as Database;
  const scans = statements
    .filter((sql) => !/"scheduled_evaluations"|"next_evaluation_at"|where \(?false /.test(sql))
    .flatMap((sql) =>
      client
        .query<{ detail: string }, []>(`explain query plan ${sql}`)
        .all()
        .filter(({ detail }) => large.test(detail))
        .map(({ detail }) => `${detail}: ${sql}`),
    );
  expect(scans).toEqual([]);
  rmSync(dataDir, { recursive: true });
}, 120_000);
