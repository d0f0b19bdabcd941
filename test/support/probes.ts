import type { OrgId } from "../../src/context.ts";
import { toTools } from "../../src/mcp-endpoints.ts";
import type { Tenants } from "./tenants.ts";

/** A request of an API client or, if it has a `form` or is a page, of a person. */
export type Probe = { method: string; path: string; body?: unknown; form?: Record<string, string>; needs404?: boolean };
type Ids = Record<string, string[]>;

/** Queries for the IDs of path parameters, by name. */
const idQueries: Record<string, string> = {
  slug: "select slug from reports where org_id = ?",
  runId: "select id from runs where org_id = ?",
  itemId: "select 'runs-' || id from runs where org_id = ?",
  promptId: "select id from prompts where org_id = ?",
  providerId: "select id from providers where org_id = ?",
  deletionId: "select id from deletions where org_id = ?",
  archiveId: "select id from archives where org_id = ?",
  keyId: "select id from api_keys where org_id = ?",
  id: "select id from eval_requests where org_id = ?",
  evalId: "select id from eval_requests where org_id = ?",
  gateId: "select id from gates where org_id = ?",
  bisectId: "select id from bisects where org_id = ?",
  calibrationId: "select id from calibrations where org_id = ?",
  experimentId: "select id from experiments where org_id = ?",
  regradeId: "select id from regrades where org_id = ?",
  proposalSetId: "select id from proposal_sets where org_id = ?",
  shareId: "select id from share_links where org_id = ?",
  gradingId: "select id from gradings where org_id = ?",
  destinationId: "select id from destinations where org_id = ?",
  deliveryId: "select id from deliveries where org_id = ?",
  trustId: "select id from trusts where org_id = ?",
  // Names that two organizations may both give.
  suiteId: "select 'none' where ? <> ''",
  // Workers belong to no organization.
  workerId: "select 'none' where ? <> ''",
  fieldId: "select id from field_friction where org_id = ?",
  dismissalId: "select id from dismissals where org_id = ?",
  fingerprint:
    "select distinct fingerprint from friction_points p where org_id = ?1 and not exists (select 1 from friction_points o where o.fingerprint = p.fingerprint and o.org_id <> ?1)",
  // Of pauses, which only operators of the service see.
  kind: "select 'organization' where ? <> ''",
  subject: "select id from orgs where id = ?",
  groupId: "select 'none' where ? <> ''",
  badge: "select id || '.svg' from prompts where org_id = ?",
  name: "select name from artifacts where org_id = ?",
  seq: "select 1 where ? <> ''",
  token: "select 'none' where ? <> ''",
  agent: "select 'none' where ? <> ''",
  page: "select 'start' where ? <> ''",
};
/** IDs that don't belong to an organization. */
const common = new Set(["seq", "token", "page", "name", "workerId", "suiteId", "agent", "kind", "groupId"]);

/** Which IDs a field of a query, a body or a tool takes, and in which form. */
const fields: Record<string, { kind: string; toValue?: (ids: string[]) => unknown }> = {
  promptId: { kind: "promptId" },
  promptIds: { kind: "promptId", toValue: (ids) => ids.slice(0, 2) },
  providerId: { kind: "providerId" },
  providerIds: { kind: "providerId", toValue: (ids) => ids.slice(0, 2) },
  targetProviderId: { kind: "providerId" },
  baselineRequestId: { kind: "evalId" },
  evalRequestId: { kind: "evalId" },
  base: { kind: "evalId" },
  head: { kind: "evalId" },
  slug: { kind: "slug" },
  slugs: { kind: "slug", toValue: (ids) => ids.slice(0, 2) },
  gradingId: { kind: "gradingId" },
  workspace: { kind: "archiveId", toValue: ([archive]) => ({ archive }) },
  sites: { kind: "archiveId", toValue: ([archiveId]) => ({ "https://docs.acme.dev/": { archiveId } }) },
  baseSites: { kind: "archiveId", toValue: ([archiveId]) => ({ "https://docs.acme.dev/": { archiveId } }) },
  of: { kind: "providerId" },
  from: { kind: "promptId" },
  before: { kind: "runId" },
};
function valueFor(field: string, ids: Ids): unknown {
  const { kind, toValue } = fields[field] ?? { kind: "" };
  const own = ids[kind] ?? [];
  return toValue ? toValue(own) : own[0];
}
const isIdField = (name: string) => name in fields || /Ids?$|^slugs?$/.test(name);

/** IDs of an organization by kind: at most `most` of each, the newest first. */
export function idsOf({ db: { $client } }: Pick<Tenants, "db">, org: OrgId, most: number): Ids {
  const list = (query: string) =>
    $client.query(`${query} order by 1 desc limit ${most}`).values(org).flat() as string[];
  return Object.fromEntries(Object.entries(idQueries).map(([kind, query]) => [kind, list(query)]));
}

type Schema = { properties?: Record<string, Schema>; examples?: unknown[]; enum?: string[]; $ref?: string };
type Parameter = { in: string; name: string; schema: Schema };
type Described = {
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema }> };
};
export type ApiDocument = {
  paths: Record<string, Record<string, Described>>;
  components: { schemas: Record<string, Schema> };
};

/** The path with these IDs; null if there is none of a kind. Throws for a parameter that isn't listed above. */
function fill(path: string, ids: Ids, nth: number): string | null {
  const missing: string[] = [];
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const known = ids[name];
    if (!known) throw new Error(`add a query for the parameter ${name} of ${path} to test/support/probes.ts`);
    if (known.length === 0) missing.push(name);
    return known[nth % Math.max(1, known.length)] ?? "";
  });
  return missing.length > 0 ? null : filled;
}

const parametersOf = (path: string) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
const ownParametersOf = (path: string) => parametersOf(path).filter((name) => !common.has(name));

function describe(document: ApiDocument) {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [], requestBody }]) => {
      const [schema] = Object.values(requestBody?.content ?? {}).map((each) => each.schema);
      const named = schema?.$ref?.split("/").at(-1);
      const body = named === undefined ? schema : document.components.schemas[named];
      return {
        method: method.toUpperCase(),
        path,
        queries: parameters.filter((each) => each.in === "query"),
        body,
        example: (body?.examples?.[0] ?? (body ? {} : undefined)) as Record<string, unknown> | undefined,
      };
    }),
  );
}

const exampleWith = (example: Record<string, unknown>, ids: Ids) =>
  Object.fromEntries(
    Object.entries(example).map(([name, value]) => [name, isIdField(name) ? valueFor(name, ids) : value]),
  );
const withQuery = (path: string, name: string, value: unknown) =>
  `${path}?${name}=${encodeURIComponent(String(value))}`;
/** These two queries only work together. */
const queriesOf = (path: string, ids: Ids): [string, string][] => {
  if (!/\/friction\/\{fingerprint\}$/.test(path)) return [];
  return [["promptId", String(valueFor("promptId", ids))]];
};

/** Requests that pass IDs of `theirs` in the path, the query or the body, and IDs of `mine` everywhere else. */
export function foreignProbes(document: ApiDocument, theirs: Ids, mine: Ids): Probe[] {
  return describe(document).flatMap(({ method, path, queries, body, example }): Probe[] => {
    const own = ownParametersOf(path);
    const sent = example && exampleWith(example, mine);
    const most = Math.max(1, ...own.map((name) => theirs[name]?.length ?? 0));
    const mixes =
      own.length === 0
        ? []
        : [theirs, ...(own.length > 1 ? own.map((name) => ({ ...mine, [name]: theirs[name] ?? [] })) : [])];
    const inPath = mixes.flatMap((ids) =>
      Array.from({ length: most }, (_, nth) => fill(path, ids, nth))
        .filter((filled) => filled !== null)
        .flatMap((filled) => {
          const extra = queriesOf(path, theirs).map(([name, value]) => `${name}=${value}`);
          const probe = { method, path: [filled, ...extra].join("?"), body: sent, needs404: true };
          // IDs are case-insensitive.
          return [probe, { ...probe, path: probe.path.replace(/[0-9a-f-]{36}/g, (id) => id.toUpperCase()) }];
        }),
    );
    const here = fill(path, mine, 0);
    if (here === null) return inPath;
    const inQuery = queries
      .filter(({ name }) => isIdField(name))
      .flatMap(({ name }) => {
        const others = queries.filter(
          (each) => isIdField(each.name) && each.name !== name && /^(base|head)$/.test(each.name),
        );
        const rest = others.map((each) => `&${each.name}=${valueFor(each.name, mine)}`).join("");
        return [{ method, path: withQuery(here, name, valueFor(name, theirs)) + rest, body: sent }];
      });
    const inBody = Object.keys(body?.properties ?? {})
      .filter(isIdField)
      .map((name) => ({ method, path: here, body: { ...sent, [name]: valueFor(name, theirs) }, needs404: false }));
    return [...new Map([...inPath, ...inQuery, ...inBody].map((each) => [JSON.stringify(each), each])).values()];
  });
}

/** Requests that read or change the objects with these IDs. A read is repeated for each ID and each value of a list in the query. */
export function ownProbes(document: ApiDocument, ids: Ids, which: "reads" | "writes"): Probe[] {
  return describe(document)
    .filter(
      ({ method, path }) =>
        (method === "GET") === (which === "reads") && !/\/events$|^\/shared|^\/docs(\/|$)|^\/example/.test(path),
    )
    .flatMap(({ method, path, queries, example }): Probe[] => {
      const most = Math.max(1, ...parametersOf(path).map((name) => ids[name]?.length ?? 0));
      const paths = Array.from({ length: most }, (_, nth) => fill(path, ids, nth)).filter((each) => each !== null);
      const given = queriesOf(path, ids).map(([name, value]) => `${name}=${value}`);
      const bare = paths.map((each) => ({
        method,
        path: [each, ...given].join("?"),
        body: example && exampleWith(example, ids),
      }));
      const [first] = paths;
      if (first === undefined || which === "writes") return bare;
      return [
        ...bare,
        ...queries.flatMap(({ name, schema }) =>
          (isIdField(name) ? [valueFor(name, ids)] : (schema.enum ?? [])).map((value) => ({
            method,
            path: withQuery(first, name, value),
          })),
        ),
        ...(path.endsWith("/compare") && path.startsWith("/api")
          ? [{ method, path: `${first}?base=${ids.evalId?.at(-1)}&head=${ids.evalId?.[0]}` }]
          : []),
      ];
    });
}

/** Calls of every MCP tool, with each ID field alone and with all of them. */
export function toolProbes(service: Tenants["service"], ids: Ids): Probe[] {
  return toTools(service.ctx).flatMap(({ name, input }) => {
    const idFields = Object.keys((input as Schema).properties ?? {}).filter(isIdField);
    const calls = [...idFields.map((field) => [field]), idFields].map((used) =>
      Object.fromEntries(used.map((field) => [field, valueFor(field, ids)])),
    );
    return calls.map((args) => ({
      method: "POST",
      path: "/api/mcp",
      body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } },
    }));
  });
}

const attribute = (tag: string, name: string) =>
  new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1]?.replaceAll("&amp;", "&").replaceAll("&quot;", '"');

/** The links and forms of a page, as requests of the person who sees it. */
export function probesOn(html: string): Probe[] {
  const links = [...html.matchAll(/<a\s[^>]*>/g)].map(([tag]) => attribute(tag, "href") ?? "");
  const forms = [...html.matchAll(/(<form\s[^>]*>)(.*?)<\/form>/gs)].map(([, tag = "", inner = ""]): Probe => {
    const inputs = [...inner.matchAll(/<(?:input|button|select|textarea)\s[^>]*>(?:<option\s[^>]*>)?/g)].map(
      ([each]) => each,
    );
    const filled = inputs.map((each) => [attribute(each, "name"), attribute(each, "value") ?? "x"] as const);
    const form = Object.fromEntries(filled.filter(([name]) => name !== undefined)) as Record<string, string>;
    const [method, path] = [(attribute(tag, "method") ?? "get").toUpperCase(), attribute(tag, "action") ?? ""];
    return method === "GET" ? { method, path: `${path}?${new URLSearchParams(form)}` } : { method, path, form };
  });
  return [...links.map((path) => ({ method: "GET", path })), ...forms].filter(
    ({ path }) =>
      /^\/(?!docs|swagger|example|api\/|style|client|sign-|shared|\/)/.test(path) && !path.endsWith("/live"),
  );
}

/** A probe without its IDs and values, to find probes that do the same. */
export function shapeOf({ method, path, form }: Probe): string {
  const [place = "", query = ""] = path.split("#")[0]?.split("?") ?? [];
  const names = [...new URLSearchParams(query).keys(), ...Object.keys(form ?? {})];
  return `${method} ${place.replace(/(?<=\/)[^/]*[0-9a-f]{8}[^/]*|(?<=\/session\/)\d+/g, "ID")} ${names}`;
}
