import { beforeAll, describe, expect, test } from "bun:test";
import { createKey } from "../src/auth/keys.ts";
import { requestBisect } from "../src/bisects/requests.ts";
import { requestCalibration } from "../src/calibration/requests.ts";
import { artifacts } from "../src/db/tables/runs.ts";
import { requestExperiment } from "../src/experiments/requests.ts";
import { listFieldFriction } from "../src/field/field.ts";
import { reportFriction } from "../src/field/reports.ts";
import { requestGate } from "../src/gates/requests.ts";
import { testDestination } from "../src/notifications/deliveries.ts";
import { createDestination } from "../src/notifications/destinations.ts";
import { requestProposals } from "../src/proposals/proposal-sets.ts";
import { createProvider } from "../src/providers/providers.ts";
import { getReport } from "../src/reports/reports.ts";
import { testApp } from "./support/app.ts";
import { isFormAddress } from "./support/page-routes.ts";
import { browse, signedIn } from "./support/people.ts";
import { niceGrade, runWithReport } from "./support/reports.ts";

const app = testApp({ env: { EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") } });
const { runId, slug } = runWithReport(app, niceGrade);
const [row] = app.db.$client
  .query<{ prompt_id: string; eval_request_id: string }, []>("select prompt_id, eval_request_id from runs")
  .all();
const promptId = row?.prompt_id ?? "";
const provider = createProvider(app.service.ctx, app.a.org, { name: "CANARY of A" });
const { apiKey } = createKey(app.service.ctx, app.a.org, "spare");

const picture = "screenshot-1.webp";
app.db
  .insert(artifacts)
  .values(
    [picture, "agent-output-0001.jsonl"].map((name) => ({
      ...{ orgId: app.a.org, runId, attempt: 1, name },
      data: Buffer.from("RIFF"),
    })),
  )
  .run();
const [friction] = getReport(app.service.ctx, app.a.org, slug).frictionPoints;

const preview = { "docs.example.com": "https://preview.example.com" };
const gate = await requestGate(app.service.ctx, app.a.org, { promptId, urlMap: preview });

const destination = createDestination(app.service.ctx, app.a.org, {
  ...{ kind: "webhook", url: "https://hooks.example.com/", events: ["run.completed"] },
});
const delivery = testDestination(app.service.ctx, app.a.org, destination.id);

reportFriction(app.service.ctx, app.a.org, "key", { where: "upload", tried: "x", happened: "y" });
const [fieldFriction] = listFieldFriction(app.service.ctx, app.a.org, {}, { limit: 1, offset: 0 }).items;

const docs = { docsUrl: "https://docs.example.com/" };
const hidden = { hidden: ["https://docs.acme.dev/llms.txt"], replacements: [] };
const experiment = await requestExperiment(app.service.ctx, app.a.org, {
  promptIds: [promptId],
  arms: [{ name: "baseline" }, { name: "no llms.txt", edits: hidden }],
  trigger: "api",
});
const bisect = await requestBisect(app.service.ctx, app.a.org, {
  ...{ promptId, urlTemplate: "https://{commit}.preview.example.com", commits: ["a1b2c3d", "c7d8e9f"], trigger: "api" },
});
const calibration = await requestCalibration(app.service.ctx, app.a.org, { sites: 1, trigger: "api" });
const { proposalSetId } = await requestProposals(app.service.ctx, app.a.org, docs);

/** Values of path parameters: objects of A. */
const ids: Record<string, string> = {
  slug,
  runId,
  promptId,
  proposalSetId,
  experimentId: experiment.id,
  bisectId: bisect.id,
  calibrationId: calibration.id,
  providerId: provider.id,
  keyId: apiKey.id,
  token: "none",
  badge: "none.svg",
  page: "start",
  itemId: "none",
  seq: "0",
  gateId: gate.id,
  deletionId: "none",
  dismissalId: "none",
  evalId: row?.eval_request_id ?? "",
  shareId: "none",
  trustId: "none",
  workerId: "none",
  agent: "none",
  destinationId: destination.id,
  deliveryId: delivery.id,
  name: picture,
  fieldId: fieldFriction?.id ?? "",
  fingerprint: friction?.fingerprint ?? "",
};

/** Public pages. */
const isPublic = (path: string) =>
  /^\/($|style\.css|client\.js|inter\.woff2|theme$|llms\.txt|robots\.txt|sitemap\.xml|docs|swagger|openapi|healthz|readyz|sign-in|sign-out|badges\/|example|setup\/|invite\/|reset\/|shared\/|results\/|\.well-known\/)/.test(
    path,
  );
/** The body streams until the client disconnects. */
const isStream = (path: string) => path.endsWith("/live");
/** These pages are about a person, in any organization. */
const isOwn = (path: string) => /^\/account\b/.test(path);

/** Forms that a member may submit besides their own account. All others require an admin or an owner. */
const memberMay: RegExp[] = [
  /^\/first-steps\/hide$/,
  /^\/inbox\/:itemId$/,
  /^\/reports\/:slug\/dismissals/,
  /^\/prompts(\/derived-fields|\/schedule|\/:promptId\/(edit|status|run)|\/propose(\/:proposalSetId)?)?$/,
  /^\/reports\/:slug\/done\/:fingerprint$/,
  /^\/calibration(\/:calibrationId\/cancel)?$/,
  /^\/experiments\/(new|:experimentId\/cancel)$/,
  /^\/bisects\/(new|:bisectId\/cancel)$/,
  /^\/schedules\/(pause|resume)$/,
  /^\/friction\/field\/:fieldId\/state$/,
  /^\/runs\/:runId\/(cancel|rerun)$/,
  /^\/(runs|reports|prompts)\/selected\/(re)?run$/,
];
/** Forms that require an owner. */
const ownerOnly: RegExp[] = [
  /^\/settings\/(members|sign-in|ci|workers|data)\b/,
  /^\/settings$/,
  /^\/spending\/budgets$/,
  /^\/reports\/:slug\/shares/,
];

/** Pages that members can't read. */
const adminOnly = /^\/settings\/audit-log/;

const routes = await app.app.loadRoutes();
const pages = routes
  // The address of a form leads to its page, which has its own access rules.
  .filter(
    ({ method, path, hooks }) => ["GET", "POST"].includes(method) && !path.startsWith("/api/") && !isFormAddress(hooks),
  )
  .map(({ method, path }) => ({ method, path }));
const pathOf = (path: string) =>
  path.replace(/:(\w+)/g, (_, name: string) => {
    const id = ids[name];
    if (id === undefined) throw new Error(`add an ID for :${name} of ${path} to this test`);
    return id;
  }) + (path === "/friction/:fingerprint" ? `?promptId=${promptId}` : "");
/** Pages of operators, which is no role of an organization: test/queue-pauses.test.ts and test/backups.test.ts have them. */
const isOfOperators = (path: string) => /^\/settings\/(queue|backups)/.test(path);
const closed = pages.filter(({ path }) => !isPublic(path) && !isStream(path) && !isOfOperators(path));
const [reads, forms] = [
  closed.filter(({ method }) => method === "GET"),
  closed.filter(({ method }) => method === "POST"),
];

type Who = "owner" | "admin" | "member" | "foreigner";
const people = {} as Record<Who, Awaited<ReturnType<typeof signedIn>>>;
beforeAll(async () => {
  for (const role of ["owner", "admin", "member"] as const) people[role] = await signedIn(app, { role });
  people.foreigner = await signedIn(app, { org: app.b.org });
});
/** Routes of pages that responded with 200. */
const shown = new Set<string>();
const names = (routes: { path: string }[]) => routes.map(({ path }) => [path] as const);

describe.each(names(reads))("GET %s", (path) => {
  test("is restricted to people of the organization", async () => {
    const stranger = await browse(app).get(pathOf(path));
    expect([stranger.status, stranger.location]).toEqual([303, expect.stringMatching(/^\/sign-in(\?next=|$)/)]);
    for (const who of ["owner", "admin", "member"] as const) {
      // No token of a link is valid here.
      const allowed =
        who === "member" && adminOnly.test(path) ? [403] : path.endsWith("/:token") ? [404] : [200, 303, 400];
      expect(allowed).toContain((await people[who].get(pathOf(path))).status);
    }
    const foreign = await people.foreigner.get(pathOf(path));
    expect(path.includes(":") ? [404] : [200, 303, 400]).toContain(foreign.status);
    // The error may quote the request, but nothing else of A.
    const told = [slug, runId, promptId, provider.id, apiKey.id].filter((id) => !pathOf(path).includes(id));
    for (const secret of [...told, provider.name, "Upload a file", people.owner.email, apiKey.display])
      expect([secret, JSON.stringify(foreign.body).includes(secret)]).toEqual([secret, false]);
  });
});

/** Media types of pages that are not only HTML. */
const mediaTypes: Record<string, string[]> = {
  "/style.css": ["text/css"],
  "/client.js": ["text/javascript"],
  "/inter.woff2": ["font/woff2"],
  "/llms.txt": ["text/plain"],
  "/robots.txt": ["text/plain"],
  "/sitemap.xml": ["application/xml"],
  "/account/data.json": ["application/json"],
  "/.well-known/evald-signing-key": ["text/plain"],
  "/healthz": ["application/json"],
  "/readyz": ["application/json"],
  "/openapi.json": ["application/json"],
  "/docs": ["text/html", "text/markdown"],
  "/docs.md": ["text/markdown"],
  "/docs/webhooks.json": ["application/json"],
  "/docs/:page": ["text/html", "text/markdown"],
  "/example": ["text/html", "text/markdown"],
  "/example.md": ["text/markdown"],
  "/example/:page": ["text/html", "text/markdown"],
  "/badges/:badge": ["image/svg+xml"],
  "/reports/:slug": ["text/html", "text/markdown"],
  "/reports/:slug/artifacts/:name": ["image/webp"],
  "/runs/:runId/output": ["application/x-ndjson"],
  "/reports/selected/export": ["application/json"],
  "/runs/selected/export": ["application/json"],
  "/spending/export": ["application/json"],
  "/matrix/export": ["application/json"],
  "/settings/audit-log/export": ["text/csv"],
  "/experiments/:experimentId/runs.csv": ["text/csv"],
  "/settings/data/export": ["application/x-ndjson"],
  "/live": ["text/event-stream"],
  "/runs/live": ["text/event-stream"],
  "/runs/:runId/events": ["text/event-stream"],
  "/evals/:evalId/live": ["text/event-stream"],
  "/prompts/propose/:proposalSetId/live": ["text/event-stream"],
  "/settings/workers/live": ["text/event-stream"],
};
/** Pages with an ETag for everyone who isn't signed in. */
const isTagged = (path: string) =>
  /^\/(llms\.txt|robots\.txt|sitemap\.xml|openapi\.json|docs|badges\/|results\/|example(?!-report))/.test(path);
const queries: Record<string, string> = {
  "/reports/selected/export": `?select=${slug}`,
  "/runs/selected/export": `?select=${runId}`,
};

/** The status, type and ETag of a response. The body of a stream is not read. */
async function ask(path: string, headers: Record<string, string>) {
  const response = await app.app.handle(new Request(new URL(path, app.baseUrl), { headers }));
  await response.body?.cancel();
  const [type] = (response.headers.get("content-type") ?? "").split(";");
  return { status: response.status, type, hasEtag: response.headers.has("etag") };
}

describe.each(names(pages.filter(({ method }) => method === "GET")))("GET %s", (path) => {
  const url = pathOf(path) + (queries[path] ?? "");

  test("is served as its media types, with an ETag if everyone sees the same", async () => {
    const cookie = isPublic(path) ? "" : people.owner.cookie();
    for (const type of mediaTypes[path] ?? ["text/html"]) {
      const answer = await ask(url, { accept: type, cookie });
      if (answer.status === 200) {
        shown.add(path);
        expect(answer).toEqual({ status: 200, type, hasEtag: isTagged(path) });
      }
    }
  });

  test("returns an error to programs without access", async () => {
    if (isPublic(path)) return;
    const { status, type } = await ask(url, { accept: "application/json" });
    expect([status, type]).toEqual([401, "text/html"]);
    if (!path.includes(":")) return;
    const cookie = people.foreigner.cookie();
    expect(await ask(url, { accept: "text/html", cookie })).toEqual({ status: 404, type: "text/html", hasEtag: false });
    expect((await ask(url, { accept: "application/json", cookie })).status).toBe(404);
  });
});

test("a report is also served as a JSON file", async () => {
  const answer = await ask(`/reports/${slug}.json`, { cookie: people.owner.cookie() });
  expect(answer).toEqual({ status: 200, type: "application/json", hasEtag: false });
});

test("most pages are shown", () => {
  expect([...shown].length).toBeGreaterThan(55);
});

/** The minimum role for a form, as an index into member, admin, owner. */
const leastOf = (path: string) =>
  memberMay.some((each) => each.test(path)) ? 0 : ownerOnly.some((each) => each.test(path)) ? 2 : 1;

test.each(["key", "member", "admin", "owner"] as const)(
  "pages show a %s only forms that the role may submit",
  async (who) => {
    const rank = ["key", "member", "admin", "owner"].indexOf(who) - 1;
    const [shown, refused] = [new Set<string>(), new Set<string>()];
    for (const { path } of reads) {
      const { body } = who === "key" ? await app.send("GET", pathOf(path)) : await people[who].get(pathOf(path));
      for (const [, action = ""] of String(body).matchAll(/<form[^>]* method="post"[^>]* action="([^"]+)"/g)) {
        const route = forms.find((each) => new RegExp(`^${each.path.replace(/:\w+/g, "[^/]+")}$`).test(action))?.path;
        if (route === undefined || isOwn(route)) continue;
        shown.add(route);
        if (leastOf(route) > rank) refused.add(`${route} on ${path}`);
      }
    }
    expect([...refused]).toEqual([]);
    expect(shown.size).toBeGreaterThanOrEqual([0, 5, 8, 12][rank + 1] as number);
  },
);

describe.each(names(forms))("POST %s", (path) => {
  test("requires a page of this service and a signed-in person", async () => {
    const stranger = await browse(app).post(pathOf(path));
    expect([stranger.status, stranger.location]).toEqual(isOwn(path) ? [303, "/sign-in"] : [401, null]);
    for (const origin of ["https://evil.example", "null", ""])
      expect([origin, (await people.owner.post(pathOf(path), {}, { origin })).status]).toEqual([origin, 403]);
    const key = await browse(app).post(pathOf(path), {}, { authorization: `Bearer ${app.a.key}` });
    expect(key.status).toBe(403);
  });

  test("requires the documented role, and can't reach another organization's objects", async () => {
    if (isOwn(path)) return;
    const least = leastOf(path);
    for (const [rank, who] of (["member", "admin", "owner"] as const).entries()) {
      if (rank >= least) continue;
      expect([who, (await people[who].post(pathOf(path))).status]).toEqual([who, 403]);
    }
    if (path.includes(":")) {
      const { status } = await people.foreigner.post(pathOf(path));
      expect([400, 404]).toContain(status);
    }
    // This comes last because it may succeed: a person with the role is not rejected.
    const who = (["member", "admin", "owner"] as const)[least] ?? "owner";
    expect((await people[who].post(pathOf(path))).status).not.toBe(403);
  });
});

test("there are pages and forms to test", () => {
  expect([reads.length > 5, forms.length > 10]).toEqual([true, true]);
});

test("names of JavaScript properties name nothing, and every response forbids guesses of its type", async () => {
  const app = testApp();
  const names = ["constructor", "__proto__", "toString", "hasOwnProperty"];
  for (const name of names) {
    const paths = [`/example/${name}`, `/docs/${name}`, `/api/v1/reports?sort=${name}`, `/runs?sort=${name}`];
    for (const path of [...paths, `/api/v1/runs/${name}`, `/badges/${name}.svg`])
      expect([path, (await app.send("GET", path)).status < 500]).toEqual([path, true]);
    for (const body of [
      { text: "x https://docs.test", agent: name },
      { text: "x https://docs.test", model: `${name}/x` },
    ])
      expect((await app.send("POST", "/api/v1/prompts", { body })).status).toBe(400);
    const rpc = { jsonrpc: "2.0", id: 1, method: name, params: { name } };
    for (const method of [name, "tools/call", "prompts/get", "resources/read"]) {
      const headers = { accept: "application/json, text/event-stream" };
      const answer = await app.send("POST", "/api/v1/mcp", { body: { ...rpc, method }, headers });
      expect([method, answer.status < 500, answer.body?.result?.isError !== false]).toEqual([method, true, true]);
    }
  }
  const { body } = await app.send("POST", "/api/v1/prompts", { body: { text: "{{constructor}} https://docs.test" } });
  expect(body.templateVars).toEqual(["constructor"]);
  const form = await (await signedIn(app)).get(`/prompts/${body.id}`);
  expect([form.status, form.body.includes("native code")]).toEqual([200, false]);
  const request = await app.send("POST", `/api/v1/prompts/${body.id}/run`, { body: { urlMap: {} } });
  expect([request.status, request.body.error]).toEqual([400, "missing_template_vars"]);
  for (const path of ["/healthz", "/readyz", "/api/v1/runs", "/api/v1/nothing", "/docs"])
    expect((await app.send("GET", path)).headers.get("x-content-type-options")).toBe("nosniff");
});
