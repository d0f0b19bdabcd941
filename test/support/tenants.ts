import { createKey } from "../../src/auth/keys.ts";
import { listMembers } from "../../src/auth/members.ts";
import { advanceCalibrations } from "../../src/calibration/progress.ts";
import type { OrgId } from "../../src/context.ts";
import { invitations } from "../../src/db/tables/people.ts";
import { artifacts } from "../../src/db/tables/runs.ts";
import { listedPages } from "../../src/db/tables/trends.ts";
import { advanceExperiments } from "../../src/experiments/progress.ts";
import { advanceGates } from "../../src/gates/progress.ts";
import { setModelKey } from "../../src/models/models.ts";
import { subscribableTypes } from "../../src/notifications/events.ts";
import { updatePrompt } from "../../src/prompts/prompts.ts";
import { requestEval } from "../../src/runs/requests.ts";
import { answer, judgedApp, says } from "./judged.ts";
import { oidcEnv, startOidc } from "./oidc.ts";
import { join } from "./people.ts";
import { evaluation, finishRuns, judge, niceGrade, steps } from "./reports.ts";

const docsUrl = "https://docs.acme.dev/";
const hourMs = 3600_000;
const [friction] = niceGrade.frictions as [(typeof niceGrade.frictions)[number]];
/** A friction point that only one organization has. */
const ofOneOrg = (org: string) => ({ ...friction, fingerprint: Bun.hash(org).toString(16).padStart(16, "0") });

/** The organization that people of joins.example join. */
export const joinedOrgId = "01920000-0000-7000-8000-000000000001";

/** A service with two organizations whose clock stands still, and the steps that give each the same data. */
export function tenants() {
  let at = Date.UTC(2026, 10, 21, 9, 30);
  const client = { id: "evald", secret: "s3cret" };
  const oidc = startOidc(client);
  const app = judgedApp({
    turns: [says(answer())],
    env: {
      EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
      ...oidcEnv(oidc.issuer, client),
      EVALD_METRICS_ADDRESS: "127.0.0.1:0",
      EVALD_OIDC_JOIN: `joins.example=${joinedOrgId}`,
    },
    now: () => at,
  });
  const { service, db } = app;
  // Reading a page must not change what the next one shows.
  db.$client.run(`create temp trigger reads_leave_no_entry before insert on audit_entries
    when new.action in ('account.exported', 'audit_log.downloaded', 'export.downloaded')
    begin select raise(ignore); end`);

  const same = new Bun.Archive({ "b.txt": "b" }, { compress: "gzip" }).bytes();
  /** Responses to the requests below. */
  const answers: string[] = [];

  /** The same service, with this organization in the place of A. */
  const as = (own: typeof app.a) => ({
    ...app,
    a: own,
    send: ((method, path, options = {}) =>
      app.send(method, path, {
        ...options,
        headers: { authorization: `Bearer ${own.key}`, ...options.headers },
      })) as typeof app.send,
  });
  type Own = ReturnType<typeof as>;

  async function post({ send }: Own, path: string, body: unknown = {}, headers?: Record<string, string>) {
    const { status, body: made } = await send("POST", path, { body, ...(headers && { headers }) });
    if (status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(made)}`);
    answers.push(`${path} ${JSON.stringify(made)}`);
    return made;
  }

  /** Everything that the organization has once its work has ended. Names, hosts, pages and fingerprints are the same for all. */
  async function furnish(own: Own): Promise<void> {
    const { org } = own.a;
    const archive = await new Bun.Archive({ "a.txt": org }, { compress: "gzip" }).bytes();
    const { id: archiveId } = await post(own, "/api/v1/archives", archive, { "content-type": "application/gzip" });
    // The same file in each organization.
    await post(own, "/api/v1/archives", Buffer.from(await same), { "content-type": "application/gzip" });
    const { id: providerId } = await post(own, "/api/v1/providers", { name: "Acme", docsUrl });
    setModelKey(service.ctx, org, "openai", `sk-${org}`);
    createKey(service.ctx, org, "spare");
    await post(own, "/api/v1/oidc/trusts", { provider: "github", repository: `acme/${org}` });
    const url = "https://hooks.acme.example/evald";
    const events = subscribableTypes;
    const destination = await post(own, "/api/v1/destinations", {
      kind: "webhook",
      url,
      events,
      headers: { "X-Org": org },
    });
    await post(own, `/api/v1/destinations/${destination.id}/test`);
    for (const role of ["owner", "admin", "member"] as const) join(app, org, role, `${role}@${org}.example`);
    const [owner] = listMembers(service.ctx, org);
    const invited = { orgId: org, role: "member" as const, status: "pending" as const, inviterId: owner?.id ?? "" };
    const times = { createdAt: new Date(at), expiresAt: new Date(at + 48 * hourMs) };
    db.insert(invitations)
      .values({ ...invited, ...times, id: service.ctx.newId(at), email: `new@${org}.example` })
      .run();
    const text = `Query it. Docs: ${docsUrl} (${org})`;
    const goal = { endGoal: "The SDK was installed. Its three rows were printed." };
    const judged = await post(own, "/api/v1/prompts", { title: `Of ${org}`, text, ...goal, tags: ["nightly"] });
    await post(own, `/api/v1/prompts/${judged.id}/run`, { urlMap: {} });
    await app.runJobs();
    await post(own, "/api/v1/regrades", { since: "2020-01-01", judge: "openai-compatible/agent", maxUsd: 1 });
    await app.runJobs();
    const { regradeId } = await post(own, "/api/v1/regrades", { since: "0001-01-01" });
    await post(own, `/api/v1/regrades/${regradeId}/cancel`);
    await own.send("PUT", "/api/v1/secrets/TOKEN", { body: { value: `the secret of ${org}` } });
    const prompt = await post(own, "/api/v1/prompts", {
      title: "Nightly",
      text: `Upload a {{thing}} for ${org}.`,
      frequency: "daily",
      templateDefaults: { thing: "file" },
      targetProviderId: providerId,
      additionalUrls: [{ url: `${docsUrl}llms.txt` }],
      declaredChecks: [{ url: docsUrl, contains: "Acme", headers: { "X-Token": "{{secret.TOKEN}}" } }],
      tags: ["nightly"],
    });
    await post(own, "/api/v1/prompts", { text: `Set up ${docsUrl}`, ...goal, workspace: { archive: archiveId } });
    const canary = await post(own, "/api/v1/prompts", { text: `Look at ${docsUrl}`, isCanary: true });
    const args = { templateArgs: { thing: "file" } };
    const grade = { ...niceGrade, frictions: [...niceGrade.frictions, ofOneOrg(org)] };
    const grades = [{ ...grade, judge }, grade, "infrastructure: no network"];
    const drafts = evaluation(own, prompt.id, grades, args, steps(prompt.title, 120));
    updatePrompt(service.ctx, org, prompt.id, { baselineRequestId: drafts[0]?.evalRequestId ?? null });
    evaluation(own, prompt.id, ["timeout: too long"], {
      ...args,
      urlMap: { "docs.acme.dev": "https://preview.example" },
    });
    evaluation(own, canary.id, [niceGrade, { ...niceGrade, score: 60 }]);
    await addReport(own, prompt.id, 70);
    await own.send("PATCH", `/api/v1/reports/${drafts[1]?.slug}`, { body: { status: "draft" } });
    for (const withSession of [true, false])
      await post(own, `/api/v1/reports/${drafts[0]?.slug}/shares`, { days: 7, withSession });
    const dismissed = { fingerprints: [ofOneOrg(org).fingerprint], reason: `Not a problem for ${org}` };
    await post(own, "/api/v1/dismissals", dismissed);
    const report = { where: `${docsUrl}upload`, tried: `Uploaded for ${org}`, happened: "It failed" };
    await post(own, "/api/v1/field-friction", report);
    const data = Buffer.from("RIFF");
    const name = "screenshot-1.webp";
    db.insert(artifacts)
      .values({ orgId: org, runId: drafts[0]?.runId ?? "", attempt: 1, name, data })
      .run();
    const named = { page: `docs.acme.dev/${org}`, url: `${docsUrl}${org}`, linkAt: at };
    db.insert(listedPages)
      .values({ orgId: org, promptId: prompt.id, ...named })
      .run();
    const gate = { promptId: prompt.id, ...args, urlMap: { "docs.acme.dev": "https://preview.example" }, minScore: 60 };
    await post(own, "/api/v1/gates", gate);
    finishRuns(own, ({ urlMap }) => (Object.keys(urlMap).length > 0 ? 55 : 78), 0.02);
    await advanceGates(service.ctx);
    const edits = { hidden: [`${docsUrl}llms.txt`], replacements: [] };
    const arms = [{ name: "baseline" }, { name: "no llms.txt", edits }];
    await post(own, "/api/v1/experiments", { promptIds: [prompt.id], ...args, arms, repeats: 2, seed: 1 });
    finishRuns(own, ({ editsDigest }) => (editsDigest === null ? 78 : 55), 0.02);
    await advanceExperiments(service.ctx);
    await post(own, "/api/v1/calibrations", { agent: "explorer", sites: 1, budgetUsd: 100 });
    finishRuns(own, () => niceGrade, 0.01);
    await advanceCalibrations(service.ctx);
    const builds = { urlTemplate: "https://{commit}.preview.example", commits: ["a1b2c3d", "e4f5a6b", "c7d8e9f"] };
    await post(own, "/api/v1/bisects", { promptId: prompt.id, ...args, ...builds });
    // These are runs that ended without an agent.
    db.$client.run("update jobs set state = 'done', completed_at = ? where org_id = ? and state = 'queued'", [at, org]);
  }

  async function addReport(own: Own, promptId: string, score: number): Promise<void> {
    const args = { templateArgs: { thing: "file" } };
    await requestEval(service.ctx, own.a.org, promptId, { urlMap: {}, trigger: "schedule", ...args });
    finishRuns(own, () => ({ ...niceGrade, score }), 0.01);
  }

  /** More results, and work that hasn't ended: a claimed fix, pending runs and a gate. */
  async function goOn(own: Own): Promise<void> {
    const { org } = own.a;
    const { body: listed } = await own.send("GET", "/api/v1/prompts");
    const promptId = listed.find(({ title }: { title: string }) => title === "Nightly").id;
    await addReport(own, promptId, 40);
    const done = { promptId, note: `Fixed by ${org}` };
    await post(own, `/api/v1/recommendations/${friction.fingerprint}/done`, done);
    finishRuns(own, () => 90, 0.01);
    await post(own, "/api/v1/gates", { promptId, templateArgs: { thing: "file" }, urlMap: {}, runs: 1 });
    await post(own, `/api/v1/prompts/${promptId}/run`, { urlMap: {}, templateArgs: { thing: "file" } });
    await advanceGates(service.ctx);
  }

  const pass = (ms: number) => {
    at += ms;
  };
  async function stop(): Promise<void> {
    await app.stop();
    oidc.close();
  }
  return { ...app, oidc, stop, as, answers, furnish, goOn, pass, hourMs };
}
export type Tenants = ReturnType<typeof tenants>;

/** What is wrong if a value isn't the expected one. */
export const unlike = (what: string, found: unknown, wanted: unknown): string | undefined =>
  Bun.deepEquals(found, wanted) ? undefined : `${what}: ${JSON.stringify(found)} in place of ${JSON.stringify(wanted)}`;

/** The rows of an organization as text, without columns that reading changes. */
export function rowsOf({ db: { $client } }: Pick<Tenants, "db">, org: OrgId): string {
  const tables = $client
    .query<{ name: string; own: string }, []>(
      `select m.name, c.name own from sqlite_master m join pragma_table_info(m.name) c on c.name = 'org_id'
       where m.type = 'table' and m.name <> 'sign_ins' order by 1`,
    )
    .all();
  const ofOthers = [
    "select * from attempts where job_id in (select id from jobs where org_id = ?)",
    "select id, name, time_zone from orgs where id = ?",
    "select people.* from people join members on person_id = people.id where org_id = ?",
  ];
  const queries = [...tables.map(({ name }) => `select * from "${name}" where org_id = ?`), ...ofOthers];
  return queries
    .map((query) => {
      const rows = $client.query<Record<string, unknown>, [string]>(query).all(org);
      return `${query}\n${rows.map((row) => JSON.stringify({ ...row, last_used_at: 0, left_at: 0 })).join("\n")}`;
    })
    .join("\n");
}
