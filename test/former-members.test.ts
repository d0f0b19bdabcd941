import { afterAll, expect, test } from "bun:test";
import { changeEmail } from "../src/auth/email-change.ts";
import { listKeys } from "../src/auth/keys.ts";
import { findPerson } from "../src/auth/people.ts";
import type { OrgId } from "../src/context.ts";
import { deletePerson } from "../src/deletions/people.ts";
import { scriptedAgent } from "./support/app.ts";
import { deliveringApp } from "./support/deliveries.ts";
import { type browse, join, signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";
import { until } from "./support/until.ts";

const dayMs = 24 * 3600_000;
/** What occurs nowhere else: the earlier and the later name and address of a person. */
const words = ["Zanzibara", "Quillona", "zq-before@example.com", "zq-after@example.com"];
const [firstName = "", lastName = "", firstEmail = "", lastEmail = ""] = words;

let started = 0;
const agent = scriptedAgent(async function* (signal) {
  started++;
  yield { type: "thought", text: "waiting", by: "rule" };
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
});
const mail = { EVALD_SMTP_URL: "smtp://127.0.0.1:9", EVALD_MAIL_FROM: "evald@example.com" };
const app = deliveringApp({ agent, env: mail });
const { db, service, a, b } = app;
const { ctx } = service;
const { $client } = db;
afterAll(app.receiver.close);

/** The tables that mention the person in rows of an organization, or that belong to none. */
const mentionsIn = (org: string): string[] =>
  $client
    .query<{ name: string; isOfOrg: number }, []>(
      `select name, exists (select 1 from pragma_table_info(m.name) where name = 'org_id') isOfOrg
      from sqlite_master m where type = 'table' and name not like 'sqlite%' order by name`,
    )
    .all()
    .filter(({ name, isOfOrg }) => {
      const rows = isOfOrg
        ? $client.query(`select * from "${name}" where org_id = ?`).all(org)
        : $client.query(`select * from "${name}"`).all();
      return words.some((word) => JSON.stringify(rows).includes(word));
    })
    .map(({ name }) => name);

const ask = async (method: string, path: string, body?: object) => {
  const answer = await app.send(method, `/api/v1${path}`, { body });
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
};

type Browser = Pick<ReturnType<typeof browse>, "post">;

/** Does everything that stores the name of who did it. */
async function leaveTraces(browser: Browser, email: string) {
  const post = async (path: string, form: Record<string, string> = {}) => {
    const { status, body } = await browser.post(path, { confirmed: "1", ...form });
    if (![200, 303].includes(status)) throw new Error(`${path}: ${status} ${String(body).replace(/<[^>]*>/g, " ")}`);
  };
  const newPrompt = async () => (await ask("POST", "/prompts", { title: "T", text: "See https://docs.test/" })).id;
  const promptId = await newPrompt();
  const newRun = async () => (await ask("POST", `/prompts/${promptId}/run`, { urlMap: {} })).runId;
  const runId = await newRun();
  if (started === 0) {
    await service.runner.start();
    await until("the run has started", () => started > 0);
    await post(`/runs/${runId}/cancel`);
    await service.runner.stop(1_000);
  }
  await post(`/runs/${await newRun()}/cancel`);
  await post(`/prompts/${promptId}/run`, { runs: "1" });
  await post(`/prompts/${await newPrompt()}/delete`, { typedName: "T" });
  evaluation(app, promptId, ["infrastructure: no network"]);
  const [line] = (await ask("GET", "/inbox?snoozed=true")).problems;
  await post(`/inbox/${encodeURIComponent(line.id)}`, { days: "7", assignee: email });
  const [report] = evaluation(app, promptId, [niceGrade]);
  const [friction] = niceGrade.frictions;
  const { fingerprint = "" } = friction ?? {};
  await post(`/reports/${report?.slug}/done/${fingerprint}`);
  await post(`/reports/${report?.slug}/dismissals`, { fingerprint, reason: "Meant" });
  const [dismissal] = await ask("GET", "/dismissals");
  await post(`/reports/${report?.slug}/dismissals/${dismissal.id}/undo`);
  const where = `https://docs.test/${crypto.randomUUID()}`;
  await ask("POST", "/field-friction", { where, tried: "To upload", happened: "It failed" });
  const [field] = await ask("GET", "/field-friction");
  await post(`/friction/field/${field.id}/state`, { state: "resolved" });
  await post("/settings/members/invite", { email: `invited-${crypto.randomUUID()}@example.com`, role: "member" });
  await post("/settings/keys", { name: `for ${crypto.randomUUID()}`, scopes: "read", days: "90" });
  await ask("POST", "/destinations", { kind: "email", recipients: [email], events: ["run.failed"] });
}

const keep = (people: number | null) => app.send("PATCH", "/api/v1/retention", { body: { people } });
const passDays = async (days: number) => {
  app.pass(days * dayMs);
  await service.upkeep.runOnce();
};
const spenders = async () =>
  (await ask("GET", "/spending")).breakdown.requester.map(({ name }: { name: string }) => name);
const creatorsOf = (org: OrgId, id: string) =>
  listKeys(ctx, org, { createdBy: id }).map(({ createdBy }) => createdBy?.name);

test("an organization forgets who left it after its own time, under all their names, and other organizations don't", async () => {
  join(app, a.org, "owner", "eve@example.com");
  const browser = await signedIn(app, { email: firstEmail });
  const { id = "" } = findPerson(ctx, firstEmail) ?? {};
  join(app, b.org, "member", firstEmail);
  await browser.post("/account/name", { name: firstName });
  await leaveTraces(browser, firstEmail);
  await browser.post("/account/name", { name: lastName });
  changeEmail(ctx, { id, name: lastName, email: firstEmail }, lastEmail, { isProven: true });
  await leaveTraces(browser, lastEmail);
  await passDays(0.1);
  const ofB = () =>
    JSON.stringify($client.query("select * from audit_entries where org_id = ? order by id").all(b.org));
  const before = ofB();
  const planted = mentionsIn(a.org);
  expect(planted).toEqual([
    ...["audit_entries", "deletions", "destinations", "dismissals", "field_friction", "fixes", "inbox_marks"],
    ...["jobs", "notifications", "people", "runs"],
  ]);
  const from = Date.UTC(2026, 10, 21);
  $client.run(
    `insert into spending_details select org_id, id, ?, ?, 'llm', 'openai/o', 'agent', 'web', ?, '', 2, 0 from prompts where org_id = ? limit 1`,
    [dayMs, from, id, a.org],
  );
  const names = { keys: creatorsOf(a.org, id), spenders: await spenders() };
  expect(names).toEqual({ keys: [lastName, lastName], spenders: [lastName] });

  expect((await keep(3)).body).toMatchObject({ people: 3, reports: null });
  await passDays(10);
  // Members are never forgotten.
  expect(mentionsIn(a.org)).toEqual(planted.filter((table) => table !== "deletions"));
  expect((await browser.post("/account/leave", { org: a.org, confirmed: "1" })).status).toBe(303);
  await passDays(0.01);
  await passDays(2.9);
  expect(mentionsIn(a.org)).toContain("dismissals");
  await passDays(0.2);
  expect(mentionsIn(a.org)).toEqual(["people"]);
  expect(creatorsOf(a.org, id)).toEqual([null, null]);
  expect(await spenders()).toEqual(["Former member"]);
  expect(ofB()).toBe(before);
  const isFormer = "select count(*) from audit_entries where org_id = ? and actor_name = 'former member'";
  expect($client.query(isFormer).values(a.org)).not.toEqual([[0]]);

  // Who comes back is named again, and forgotten again.
  join(app, a.org, "member", lastEmail);
  expect(creatorsOf(a.org, id)).toEqual([lastName, lastName]);
  await ask("POST", "/destinations", { kind: "email", recipients: [lastEmail], events: ["gate.decided"] });
  await browser.post("/account/leave", { org: a.org, confirmed: "1" });
  await passDays(0.01);
  expect(mentionsIn(a.org)).toContain("destinations");
  await passDays(3.1);
  expect(mentionsIn(a.org)).toEqual(["people"]);

  // So is who deletes their account, in all organizations.
  await deletePerson(ctx, id);
  expect([mentionsIn(a.org), mentionsIn(b.org)]).toEqual([[], []]);
});

test("who is invited to come back is not forgotten until the invitation has expired", async () => {
  const owner = await signedIn(app, { email: "oda@example.com" });
  const guest = await signedIn(app, { email: lastEmail, role: "member" });
  await guest.post("/account/name", { name: lastName });
  await guest.post("/account/leave", { org: a.org, confirmed: "1" });
  await passDays(0.01);
  await passDays(2.5);
  await owner.post("/settings/members/invite", { email: lastEmail, role: "member" });
  // Its library reads the clock of the machine.
  $client.run("update invitations set expires_at = ? where email = ?", [ctx.now() + 2 * dayMs, lastEmail]);
  await passDays(1);
  expect(mentionsIn(a.org)).toEqual(["audit_entries", "invitations", "people"]);
  await passDays(30);
  expect(mentionsIn(a.org)).toEqual(["people"]);
});
