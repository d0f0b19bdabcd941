import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { eq } from "drizzle-orm";
import { listInvitations } from "../../src/auth/invitations.ts";
import { createKey, listKeys } from "../../src/auth/keys.ts";
import { isUploadToken, toUploadToken } from "../../src/auth/links.ts";
import { listMembers } from "../../src/auth/members.ts";
import { createOrg, updateOrg } from "../../src/auth/orgs.ts";
import { signIn } from "../../src/auth/people.ts";
import { setupPath } from "../../src/auth/setup.ts";
import type { OrgId } from "../../src/context.ts";
import { fieldFriction } from "../../src/db/tables/field.ts";
import { frictionLifecycles } from "../../src/db/tables/friction.ts";
import { trusts } from "../../src/db/tables/keys.ts";
import { destinations } from "../../src/db/tables/notifications.ts";
import { invitations } from "../../src/db/tables/people.ts";
import { archives } from "../../src/db/tables/prompts.ts";
import { exportOrg } from "../../src/exchange/export.ts";
import { importFile } from "../../src/exchange/import.ts";
import { claimJobs, enqueue as enqueueJob } from "../../src/jobs/queue.ts";
import { getModel, listModelSecrets, removeModelKey, setModelKey } from "../../src/models/models.ts";
import { listRunPage } from "../../src/runs/lists.ts";
import { getSpending } from "../../src/runs/spending.ts";
import { createShare } from "../../src/shares/shares.ts";
import { browse, join, password } from "./people.ts";
import { rowsOf, type Tenants, unlike } from "./tenants.ts";

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** Rolls a claim back. */
class Claimed extends Error {}

/** Steps of B and of people in several organizations that must not depend on what A has. Each returns what is wrong, if anything. */
export function borders(world: Tenants): Record<string, () => Promise<string | undefined>> {
  const { service, db, a, b } = world;
  const at = service.ctx.now();
  const newId = () => service.ctx.newId(at);
  const asB = world.as(b);

  async function enter(email: string) {
    const from = { cookie: "", userAgent: "test", address: "::1" };
    const cookies = await signIn(service.ctx, email, password, from);
    return browse(world, cookies.map((cookie) => cookie.split(";")[0]).join("; "));
  }
  /** Copies of a row, each with its own ID. */
  const copies = <Row extends object>(row: Row, count: number, change: (i: number) => Partial<Row> = () => ({})) =>
    Array.from({ length: count }, (_, i) => ({ ...row, id: newId(), ...change(i) }));
  const bytes = async (text: string) =>
    Buffer.from(await new Bun.Archive({ "c.txt": text }, { compress: "gzip" }).bytes());
  const ownerOf = (org: OrgId) => listMembers(service.ctx, org)[0]?.id ?? "";
  const roleOf = (org: OrgId, email: string) =>
    listMembers(service.ctx, org).find((each) => each.email === email)?.role ?? null;

  return {
    async "A has as many archives as it may have"() {
      const archive = { orgId: a.org, digest: "", bytes: 1, files: 1, data: Buffer.from("x"), createdAt: at };
      const all = copies(archive, 100, (i) => ({ digest: `${i}`.padStart(64, "0") }));
      db.insert(archives).values(all).run();
      const headers = { "content-type": "application/gzip" };
      const { status } = await asB.send("POST", "/api/v1/archives", { body: await bytes("of B"), headers });
      return unlike("upload of B", status, 201);
    },

    async "A has invited as many people as it may"() {
      const times = { createdAt: new Date(at), expiresAt: new Date(at + 1000) };
      const invited = { orgId: a.org, role: "member" as const, status: "pending" as const, inviterId: ownerOf(a.org) };
      const all = copies({ ...invited, ...times, email: "" }, 50, (i) => ({ email: `${i}@many.example` }));
      db.insert(invitations).values(all).run();
      const owner = await enter(`owner@${b.org}.example`);
      const { status } = await owner.post("/settings/members/invite", { email: "free@b.example", role: "member" });
      return unlike("invitation of B", status, 303);
    },

    async "A has as many destinations as it may have"() {
      const [known] = db.select().from(destinations).where(eq(destinations.orgId, a.org)).all();
      if (!known) return "A has no destination";
      db.insert(destinations).values(copies(known, 20)).run();
      const body = { kind: "webhook", url: "https://hooks.acme.example/b", events: known.events };
      const { status } = await asB.send("POST", "/api/v1/destinations", { body });
      return unlike("destination of B", status, 201);
    },

    async "A has as many trusts as it may have"() {
      const [known] = db.select().from(trusts).where(eq(trusts.orgId, a.org)).all();
      if (!known) return "A has no trust";
      db.insert(trusts).values(copies(known, 100)).run();
      const { status } = await asB.send("POST", "/api/v1/oidc/trusts", {
        body: { provider: "github", repository: "acme/b" },
      });
      return unlike("trust of B", status, 201);
    },

    async "A has as much friction from the field as it may have"() {
      const [known] = db.select().from(fieldFriction).where(eq(fieldFriction.orgId, a.org)).all();
      if (!known) return "A has no friction from the field";
      const open = { ...known, state: "open" as const };
      const all = copies(open, 1000, (i) => ({ fingerprint: `${i}`.padStart(16, "0") }));
      db.insert(fieldFriction).values(all).run();
      const report = { where: "https://docs.acme.dev/other", tried: "Uploaded", happened: "It failed" };
      const { status } = await asB.send("POST", "/api/v1/field-friction", { body: report });
      return unlike("report of B", status, 201);
    },

    async "runs of A hit friction that was reported to B"() {
      const theirs = db.select().from(frictionLifecycles).where(eq(frictionLifecycles.orgId, a.org)).all();
      const mine = db.select().from(frictionLifecycles).where(eq(frictionLifecycles.orgId, b.org)).all();
      const only = theirs.find(({ fingerprint }) => mine.every((each) => each.fingerprint !== fingerprint));
      if (!only) return "both have the same friction points";
      const change = { fingerprints: [only.fingerprint], state: "open" as const };
      db.update(fieldFriction).set(change).where(eq(fieldFriction.orgId, b.org)).run();
      const { body } = await asB.send("GET", "/api/v1/field-friction");
      if (body.length === 0) return "B has no friction from the field";
      return body.some((each: { isVerified: boolean }) => each.isVerified) ? "it is verified" : undefined;
    },

    async "friction was reported to A at a friction point of both"() {
      const { body: nightly } = await asB.send("GET", "/api/v1/prompts?tag=nightly");
      const ofPrompt = `promptId=${nightly.find(({ title }: { title: string }) => title === "Nightly").id}`;
      const [shared] = (await asB.send("GET", `/api/v1/friction?${ofPrompt}`)).body;
      const change = { fingerprints: [shared.fingerprint], state: "open" as const };
      db.update(fieldFriction).set(change).where(eq(fieldFriction.orgId, a.org)).run();
      const { status, body } = await asB.send("GET", `/api/v1/friction/${shared.fingerprint}?${ofPrompt}`);
      if (status !== 200) return unlike("friction point", status, 200);
      return body.field.length === 0 ? undefined : "it is shown to B";
    },

    async "a member of B was removed from A after they opened a form with files there"() {
      const email = "left@example.com";
      for (const { org } of [a, b]) join(world, org, "member", email);
      const left = listMembers(service.ctx, a.org).find((each) => each.email === email);
      const token = toUploadToken(service.ctx, a.org, left?.id ?? "");
      if (!isUploadToken(service.ctx, token)) return "the token of a member is not accepted";
      const owner = await enter(`owner@${a.org}.example`);
      const removal = { member: left?.memberId ?? "", do: "remove", confirmed: "1" };
      const { status } = await owner.post("/settings/members/change", removal);
      if (status !== 303) return unlike("removal", status, 303);
      return isUploadToken(service.ctx, token) ? "the token is still accepted" : undefined;
    },

    async "an owner of B has a key of A, where they are only a member"() {
      const email = "both@example.com";
      join(world, b.org, "owner", email);
      join(world, a.org, "member", email);
      const createdBy = listMembers(service.ctx, a.org).find((each) => each.email === email)?.id ?? "";
      const { key } = createKey(service.ctx, a.org, "of a member", { createdBy });
      const [report] = (await world.send("GET", "/api/v1/reports")).body;
      const headers = { authorization: `Bearer ${key}` };
      const { status } = await world.send("POST", `/api/v1/reports/${report.slug}/shares`, {
        body: { days: 7 },
        headers,
      });
      return unlike("share of a report of A", status, 403);
    },

    async "an owner of B switches to A"() {
      const owner = await enter(`owner@${b.org}.example`);
      const { status } = await owner.post("/account/organization", { org: a.org });
      return unlike("switch", status, 404);
    },

    async "an owner of B searches for a report of A"() {
      const [report] = (await world.as(a).send("GET", "/api/v1/reports")).body;
      const owner = await enter(`owner@${b.org}.example`);
      const { body } = await owner.get(`/search?q=${report.slug.slice(0, -1)}`);
      return body.includes(report.slug) ? "it is found" : undefined;
    },

    async "A has the longest runs"() {
      const longest = () => listRunPage(service.ctx, b.org, { sort: "-duration" }, { limit: 1 }).items[0]?.runId;
      const before = longest();
      db.$client.run(
        "update runs set started_at = completed_at - 900000000 where org_id = ? and completed_at is not null",
        [a.org],
      );
      return longest() === before ? undefined : "the longest run of B has changed";
    },

    async "an owner of B changes the members and invitations of A"() {
      const owner = await enter(`owner@${b.org}.example`);
      const [theirs] = listMembers(service.ctx, a.org);
      const [invitation] = listInvitations(service.ctx, a.org);
      const member = theirs?.memberId ?? "";
      const forms: [string, Record<string, string>][] = [
        ["role", { member, role: "viewer" }],
        ["change", { member, do: "reset", confirmed: "1" }],
        ["change", { member, do: "remove", confirmed: "1" }],
        ["revoke", { invitation: invitation?.id ?? "", confirmed: "1" }],
      ];
      for (const [path, form] of forms) {
        const { status } = await owner.post(`/settings/members/${path}`, form);
        if (status !== 404) return unlike(`${path} ${form.do ?? ""}`, status, 404);
      }
    },

    async "A has spent and reserved more"() {
      const before = JSON.stringify(getSpending(service.ctx, b.org));
      db.$client.run("update spending set usd = usd + 5 where org_id = ?", [a.org]);
      db.$client.run("update runs set reserved_usd = 3 where id = (select max(id) from runs where org_id = ?)", [
        a.org,
      ]);
      return JSON.stringify(getSpending(service.ctx, b.org)) === before ? undefined : "the spending of B has changed";
    },

    async "the only owner of C, while others have owners"() {
      const org = createOrg(service.ctx, "C").id;
      join(world, org, "owner", "only@c.example");
      join(world, org, "member", `admin@${b.org}.example`);
      const [own] = listMembers(service.ctx, org);
      const only = await enter("only@c.example");
      const { status } = await only.post("/settings/members/role", { member: own?.memberId ?? "", role: "member" });
      if (roleOf(org, "only@c.example") !== "owner") return "the last owner is a member now";
      return unlike("the only owner becomes a member", status, 409);
    },

    async "an owner of B leaves D, which has one owner"() {
      const org = createOrg(service.ctx, "D").id;
      const email = `owner@${b.org}.example`;
      join(world, org, "owner", "only@d.example");
      join(world, org, "member", email);
      const { status } = await (await enter(email)).post("/account/leave", { org, confirmed: "1" });
      if (roleOf(org, email) !== null) return "the person is still a member";
      return unlike("leave", status, 303);
    },

    async "E has no members yet"() {
      const path = setupPath(service.ctx, createOrg(service.ctx, "E").id);
      return unlike("setup link", (await browse(world).get(path)).status, 200);
    },

    async "B creates a key and a link with the form ID of A's"() {
      const owner = await enter(`owner@${b.org}.example`);
      const [theirs] = listKeys(service.ctx, a.org);
      const { status } = await owner.post("/settings/keys", {
        id: theirs?.id ?? "",
        name: "B",
        days: "7",
        scopes: "read",
      });
      if (status !== 200) return unlike("key", status, 200);
      const link = db.$client.query<{ id: string }, [string]>("select id from share_links where org_id = ?").get(a.org);
      const [report] = (await asB.send("GET", "/api/v1/reports")).body;
      const made = createShare(service.ctx, b.org, report.slug, { days: 7, withSession: false, id: link?.id });
      return made.id === link?.id ? "the link has the ID of A's" : undefined;
    },

    async "B has another time zone"() {
      const before = rowsOf(world, a.org);
      updateOrg(service.ctx, b.org, { timeZone: "America/New_York" });
      return rowsOf(world, a.org) === before ? undefined : "rows of A have changed";
    },

    async "B imports runs that cost something"() {
      const before = rowsOf(world, a.org);
      const other = (id: string) => id.replace(/.$/, (last) => (Number.parseInt(last, 16) ^ 15).toString(16));
      const folder = mkdtempSync(joinPath(tmpdir(), "evald-test-"));
      try {
        const lines = [...exportOrg(service.ctx, b.org, {})]
          .join("")
          .replace(uuid, other)
          .replace(/"slug":"([^"]+)"/g, (_, slug: string) => `"slug":"${other(slug)}"`)
          .trimEnd()
          .split("\n")
          // The same file or token twice would be a conflict.
          .filter((line) => !/^\{"type":"(archive|share_link)"/.test(line))
          .map((line) => line.replace(/"workspace":\{"archive":"[^"]+"\}/, '"workspace":null'));
        const sha256 = new Bun.CryptoHasher("sha256").update(`${lines.slice(1, -1).join("\n")}\n`).digest("hex");
        lines[lines.length - 1] = JSON.stringify({ type: "end", rows: lines.length - 2, sha256 });
        const file = joinPath(folder, "export.jsonl");
        writeFileSync(file, `${lines.join("\n")}\n`);
        const { rows } = importFile(service.ctx, b.org, file);
        if (!rows.event) return "no events were imported";
      } finally {
        rmSync(folder, { recursive: true });
      }
      return rowsOf(world, a.org) === before ? undefined : "rows of A have changed";
    },

    async "B uses an idempotency key of A"() {
      const [of] = (await asB.send("GET", "/api/v1/prompts")).body;
      const [theirs] = (await world.as(a).send("GET", "/api/v1/prompts")).body;
      const headers = { "idempotency-key": "same" };
      const body = { urlMap: {}, templateArgs: { thing: "file" } };
      await world.as(a).send("POST", `/api/v1/prompts/${theirs.id}/run`, { body, headers });
      const { status } = await asB.send("POST", `/api/v1/prompts/${of.id}/run`, { body, headers });
      return unlike("run", status, 200);
    },

    async "B and A have keys of the same model provider"() {
      for (const { org } of [a, b]) setModelKey(service.ctx, org, "openai", `sk-of-${org}`);
      for (const { org } of [a, b]) {
        const access = getModel(service.ctx, org, "openai/gpt-5") as { key?: string; apiKey?: string };
        if (!JSON.stringify(access).includes(`sk-of-${org}`))
          return "a model is called with the key of another organization";
        const secrets = listModelSecrets(service.ctx, org);
        if (
          !secrets.includes(`sk-of-${org}`) ||
          secrets.some((each) => each.startsWith("sk-of-") && !each.endsWith(org))
        )
          return "the secrets of an organization are not its own";
      }
      removeModelKey(service.ctx, b.org, "openai");
      return listModelSecrets(service.ctx, a.org).includes(`sk-of-${a.org}`) ? undefined : "the key of A is gone";
    },

    async "A has an unfinished regrade, and judgments with more tokens"() {
      for (const { org } of [a, b]) setModelKey(service.ctx, org, "openai", "sk-0123456789abcdef");
      const body = { since: "2020-01-01", judge: "openai/gpt-5", maxUsd: 1 };
      const request = async (own: typeof asB) => {
        const { status, body: regrade } = await own.send("POST", "/api/v1/regrades", { body });
        return { status, ...regrade };
      };
      const before = await request(asB);
      if (before.status >= 300 || !(before.estimatedUsd > 0))
        return `regrade of B: ${before.status} ${before.estimatedUsd}`;
      await asB.send("POST", `/api/v1/regrades/${before.regradeId}/cancel`);
      const theirs = await request(world.as(a));
      if (theirs.status >= 300) return `regrade of A: ${theirs.status}`;
      db.$client.run(
        "update reports set judge = json_set(judge, '$.inputTokens', 9000000) where org_id = ? and judge is not null",
        [a.org],
      );
      const after = await request(asB);
      if (after.status !== before.status) return `regrade of B while A has one: ${after.status}`;
      return after.estimatedUsd === before.estimatedUsd ? undefined : "the estimate for B has changed";
    },

    async "jobs of A don't count for the limits of B"() {
      db.$client.run("update jobs set state = 'done', completed_at = ? where state in ('queued', 'running')", [at]);
      const enqueue = (orgId: string, subject: string, host: string) =>
        service.ctx.commit((tx) =>
          enqueueJob(service.ctx, tx, { pool: "runs", kind: "run", subject, orgId, host, maxAttempts: 1 }),
        );
      for (const i of [1, 2, 3]) await enqueue(a.org, `a${i}`, "one.example");
      for (const i of [1, 2, 3]) await enqueue(b.org, `b${i}`, "one.example");
      const none = { atOnce: null, aDay: null };
      const claim = (limits: { atOnce: number | null; aDay: number | null }) =>
        service.ctx
          .commit((tx) => {
            const org = (id: string) => (id === b.org ? limits : none);
            const { leases } = claimJobs(service.ctx, tx, {
              pool: "runs",
              max: 10,
              owner: "test",
              leaseMs: 1000,
              limits: { org, host: 100 },
            });
            throw new Claimed(
              leases
                .map(({ subject }) => subject)
                .sort()
                .join(),
            );
          })
          .catch((error) => (error instanceof Claimed ? error.message : `${error}`));
      const startA = (subjects: string) =>
        db.$client.run(`update jobs set started_at = ? where org_id = ? and ${subjects}`, [at, a.org]);
      const wrong: string[] = [];
      const expectClaim = async (what: string, limits: Parameters<typeof claim>[0], wanted: string) => {
        const problem = unlike(what, await claim(limits), wanted);
        if (problem !== undefined) wrong.push(problem);
      };
      await expectClaim("no limits", none, "a1,a2,a3,b1,b2,b3");
      await expectClaim("one at once", { atOnce: 1, aDay: null }, "a1,a2,a3,b1");
      db.$client.run("update jobs set started_at = null where org_id = ?", [b.org]);
      startA("state = 'done' and kind = 'run'");
      await expectClaim("a daily limit that A has reached", { atOnce: null, aDay: 3 }, "a1,a2,a3,b1,b2,b3");
      startA("subject = 'a3'");
      await expectClaim("a daily limit that B has reached", { atOnce: null, aDay: 0 }, "a1,a2,a3");
      return wrong[0];
    },
  };
}
