import type { OrgId } from "../../src/context.ts";
import { withOwnParts } from "./openapi.ts";
import { withPages } from "./page-routes.ts";
import { signedIn } from "./people.ts";
import {
  type ApiDocument,
  foreignProbes,
  idsOf,
  ownProbes,
  type Probe,
  probesOn,
  shapeOf,
  toolProbes,
} from "./probes.ts";
import { borders } from "./tenant-borders.ts";
import { deletionBorders } from "./tenant-deletions.ts";
import { inboxBorders } from "./tenant-inbox.ts";
import { lookupBorders } from "./tenant-lookups.ts";
import { pageBorders } from "./tenant-pages.ts";
import { policyBorders } from "./tenant-policies.ts";
import { settingBorders } from "./tenant-settings.ts";
import { suiteBorders } from "./tenant-suites.ts";
import { rowsOf, type Tenants, tenants } from "./tenants.ts";

const uuids = /[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** The part in which two texts differ. */
function differenceOf(before: string, after: string): string {
  let from = 0;
  while (from < before.length && before[from] === after[from]) from++;
  return `${before.slice(Math.max(0, from - 80), from + 80)} → ${after.slice(from, from + 80)}`;
}

/** IDs that only this organization has. */
function secretsOf(world: Tenants, org: OrgId): string[] {
  const ids = idsOf(world, org, 1000);
  const own = [
    "slug",
    "runId",
    "promptId",
    "providerId",
    "archiveId",
    "keyId",
    "evalId",
    "gateId",
    "regradeId",
    "shareId",
    "destinationId",
    "deliveryId",
  ];
  return [...own.flatMap((kind) => ids[kind] ?? []), org];
}

/** The same request with unknown IDs of the same form in place of the ones in `rows`. */
function withUnknown(probe: Probe, rows: string): Probe {
  const unknown = (id: string) => {
    if (!rows.includes(id.toLowerCase())) return id;
    const other = id.replace(/[0-9a-f]{8}$/i, (end) =>
      (0xffffffff - Number.parseInt(end, 16)).toString(16).padStart(8, "0"),
    );
    return id === id.toLowerCase() ? other : other.toUpperCase();
  };
  return JSON.parse(JSON.stringify(probe).replace(/[\w-]*[0-9a-f]{8}(?![\w])/gi, unknown));
}

export type Findings = { wrong: string[]; counts: { reads: number; foreign: number; own: number } };

/**
 * Looks for leaks between organizations. Two organizations get the same data in turn. What one of them does must not change a
 * row or a response of the other, and no request of B may read or change data of A. `onlyFirst`: ends with the first leak.
 */
export async function findLeaks({ onlyFirst = false } = {}): Promise<Findings> {
  const world = tenants();
  try {
    const attacker = await enter(world);
    const [asA, asB] = [world.as(world.a), world.as(world.b)];
    await world.furnish(asB);
    const first = await attacker.unseenBy(world.b.org, () => world.furnish(asA));
    const none = { reads: first.reads, foreign: 0, own: 0 };
    if (onlyFirst && first.wrong.length > 0) return { wrong: first.wrong, counts: none };
    world.pass(world.hourMs);
    const second = await attacker.unseenBy(world.a.org, () => world.goOn(asB));
    if (onlyFirst && second.wrong.length > 0) return { wrong: second.wrong, counts: none };
    await world.goOn(asA);
    const { wrong, ...counts } = await attacker.attack(onlyFirst);
    if (wrong.length === 0 || !onlyFirst) for await (const problem of problemsAtBorders(world)) wrong.push(problem);
    return {
      wrong: [...first.wrong, ...second.wrong, ...wrong],
      counts: { reads: first.reads + second.reads, ...counts },
    };
  } finally {
    await world.stop();
  }
}

/** What is wrong with the steps at the borders. */
async function* problemsAtBorders(world: Tenants): AsyncGenerator<string, undefined> {
  // Other steps end unfinished runs, which the inbox shows.
  const steps = { ...inboxBorders(world), ...borders(world), ...settingBorders(world), ...lookupBorders(world) };
  for (const [name, step] of Object.entries(steps)) {
    const problem = await step().catch(String);
    if (problem !== undefined) yield `${name}: ${problem}`;
  }
}

/** What is wrong with the first step of `borders` that fails. This takes a fifth of the time of `findLeaks`. */
export async function findBorderLeak(): Promise<string | undefined> {
  const world = tenants();
  try {
    const [asA, asB] = [world.as(world.a), world.as(world.b)];
    for (const own of [asB, asA]) await world.furnish(own);
    world.pass(world.hourMs);
    for (const own of [asB, asA]) await world.goOn(own);
    for await (const problem of problemsAtBorders(world)) return problem;
  } finally {
    await world.stop();
  }
}

/** What is wrong with the first step of the policies, suites, pages and deletions that fails. This takes a second. */
export async function findQuickLeak(): Promise<string | undefined> {
  const world = tenants();
  try {
    for (const own of [world.a, world.b]) await world.furnish(world.as(own));
    const steps = {
      ...policyBorders(world),
      ...suiteBorders(world),
      ...pageBorders(world),
      ...deletionBorders(world),
    };
    for (const [name, step] of Object.entries(steps)) {
      const problem = await step().catch(String);
      if (problem !== undefined) return `${name}: ${problem}`;
    }
  } finally {
    await world.stop();
  }
}

async function enter(world: Tenants) {
  const { app, a, b, service, baseUrl } = world;
  const api: ApiDocument = withOwnParts(
    (await world.send("GET", "/openapi.json", { headers: { authorization: "" } })).body,
  );
  const document = withPages(api, await app.loadRoutes());
  const cookies: Record<string, string> = {};
  for (const { org } of [a, b]) cookies[org] = (await signedIn(world, { org })).cookie();
  const keys: Record<string, string> = { [a.org]: a.key, [b.org]: b.key };

  /** Sends a probe as an organization: to the API with its key, to pages as its owner. A stream is not read. */
  async function ask(org: OrgId, { method, path, body, form }: Probe) {
    const isApi = path.startsWith("/api/");
    const headers: Record<string, string> = isApi
      ? { authorization: `Bearer ${keys[org]}`, ...(body !== undefined && { "content-type": "application/json" }) }
      : { accept: "text/html", cookie: cookies[org] ?? "", origin: new URL(baseUrl).origin };
    if (!isApi && method === "POST") headers["content-type"] = "application/x-www-form-urlencoded";
    const sent = isApi
      ? body && JSON.stringify(body)
      : method === "POST"
        ? new URLSearchParams(form).toString()
        : undefined;
    const response = await app.handle(new Request(new URL(path, baseUrl), { method, headers, body: sent as string }));
    const { status } = response;
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
      await response.body?.cancel();
      return { status, text: "" };
    }
    return { status, text: `${response.headers.get("location") ?? ""} ${await response.text()}` };
  }

  const ofResource = { ref: { type: "ref/resource", uri: "evald://reports/{slug}" } };
  const resourceReads: Probe[] = [
    { method: "resources/list", params: {} },
    { method: "completion/complete", params: { ...ofResource, argument: { name: "slug", value: "" } } },
  ].map((call) => ({ method: "POST", path: "/api/mcp", body: { jsonrpc: "2.0", id: 1, ...call } }));

  const readsOf = (org: OrgId): Probe[] => {
    const ids = idsOf(world, org, 1);
    const calls = toolProbes(service, ids).filter(({ body }) => !JSON.stringify(body).includes("request_eval"));
    // The runs of both organizations have this prefix.
    const search: Probe = { method: "GET", path: `/search?q=${ids.runId?.[0]?.slice(0, 8)}` };
    // Each redirect to the identity provider is different.
    const own = ownProbes(document, ids, "reads").filter(({ path }) => path !== "/sign-in/oidc");
    return [...own, ...calls, ...resourceReads, search];
  };

  /** Responses by their probes, without IDs that were made for the response, as in a form. */
  async function read(org: OrgId, probes: Probe[]) {
    const known = new Set(`${rowsOf(world, a.org)}${rowsOf(world, b.org)}`.match(uuids));
    const answers = new Map<string, string>();
    for (const probe of probes) {
      const { status, text } = await ask(org, probe);
      const stored = text.replace(uuids, (id) => (known.has(id) ? id : "ID"));
      answers.set(`${probe.method} ${probe.path} ${JSON.stringify(probe.body ?? "")}`, `${status} ${stored}`);
    }
    return { answers, rows: rowsOf(world, org) };
  }

  /** Every link and every form of an organization's pages, one of each kind. */
  async function linksOf(org: OrgId): Promise<Probe[]> {
    const found = new Map<string, Probe>();
    const queue = ["/", "/settings/members", "/account"];
    for (let path = queue.shift(); path !== undefined; path = queue.shift())
      for (const probe of probesOn((await ask(org, { method: "GET", path })).text)) {
        if (found.has(shapeOf(probe))) continue;
        found.set(shapeOf(probe), probe);
        if (probe.method === "GET") queue.push(probe.path);
      }
    return [...found.values()];
  }

  return {
    /** Rows and responses of an organization that change while another one works. */
    async unseenBy(org: OrgId, work: () => unknown) {
      const probes = readsOf(org);
      const before = await read(org, probes);
      world.answers.length = 0;
      await work();
      const secrets = secretsOf(world, org);
      const told = world.answers.find((answer) => secrets.some((secret) => answer.includes(secret)));
      const after = await read(org, probes);
      const wrong = [...after.answers]
        .filter(([name, answer]) => before.answers.get(name) !== answer)
        .map(([name, answer]) => `${name}: ${differenceOf(before.answers.get(name) ?? "", answer)}`);
      if (after.rows !== before.rows) wrong.push(differenceOf(before.rows, after.rows));
      if (told !== undefined) wrong.push(`an answer to another organization: ${told}`);
      return { wrong, reads: probes.length };
    },

    /** What B finds or changes of A. */
    async attack(onlyFirst: boolean) {
      const [theirs, mine] = [idsOf(world, a.org, 8), idsOf(world, b.org, 1)];
      // These end the attacker's own organization or account.
      const isLast = ({ method, path }: Probe) =>
        (method === "DELETE" && path.startsWith("/api/v1/organization")) ||
        /^\/(settings\/data|account)\/delete\b/.test(path);
      const foreign = [
        ...foreignProbes(document, theirs, mine),
        ...toolProbes(service, theirs),
        ...(await linksOf(a.org)).map((probe) => ({ ...probe, needs404: /^[^?]*[0-9a-f-]{36}/.test(probe.path) })),
      ].filter((probe) => !isLast(probe));
      const secrets = secretsOf(world, a.org);
      const rows = rowsOf(world, a.org);
      const wrong: string[] = [];
      for (const probe of foreign) {
        const { method, path, body, form, needs404 } = probe;
        const { status, text } = await ask(b.org, probe);
        const name = `${method} ${path} ${JSON.stringify(body ?? form ?? "")}`;
        if (needs404 ? ![404, 400, 403].includes(status) : status >= 500) wrong.push(`${status}: ${name}`);
        const other = withUnknown(probe, rows);
        const unknown = JSON.stringify(other) === JSON.stringify(probe) ? null : await ask(b.org, other);
        if (unknown !== null && unknown.status !== status)
          wrong.push(`${status}, but ${unknown.status} for an unknown ID: ${name}`);
        const sent = JSON.stringify(probe).toLowerCase();
        const told = secrets.find((secret) => text.includes(secret) && !sent.includes(secret));
        if (told !== undefined) wrong.push(`shows ${told}: ${name}`);
        if (method !== "GET" && rowsOf(world, a.org) !== rows) wrong.push(`changes rows: ${name}`);
        if (wrong.length > 0 && (onlyFirst || wrong.at(-1)?.startsWith("changes")))
          return { wrong, foreign: 0, own: 0 };
      }
      const own = [
        ...ownProbes(document, mine, "writes"),
        ...(await linksOf(b.org)).filter(({ method }) => method === "POST"),
      ].filter((probe) => !isLast(probe));
      for (const probe of own) await ask(b.org, probe);
      if (rowsOf(world, a.org) !== rows) wrong.push("requests of B for its own objects change rows of A");
      return { wrong, foreign: foreign.length, own: own.length };
    },
  };
}
