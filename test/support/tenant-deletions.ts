import { eq, inArray } from "drizzle-orm";
import { listMembers } from "../../src/auth/members.ts";
import { createOrg } from "../../src/auth/orgs.ts";
import type { OrgId } from "../../src/context.ts";
import { jobs } from "../../src/db/tables/jobs.ts";
import { invitations, signIns } from "../../src/db/tables/people.ts";
import { runs } from "../../src/db/tables/runs.ts";
import { deleteOrg } from "../../src/deletions/deletions.ts";
import { orgField } from "../../src/web/components/layout.tsx";
import { join, signedIn } from "./people.ts";
import { evaluation, niceGrade } from "./reports.ts";
import { rowsOf, type Tenants, unlike } from "./tenants.ts";

const dayMs = 24 * 3600_000;

/**
 * Steps in which A deletes more and more, up to all that it has, and B must keep everything. They depend on each other's order. Each returns what is
 * wrong, if anything.
 */
export function deletionBorders(world: Tenants): Record<string, () => Promise<string | undefined>> {
  const { service, db, a, b } = world;
  const { ctx } = service;
  const [asA, asB] = [world.as(a), world.as(b)];
  /** Throws if a part failed: it would not be done in the next pass either. */
  async function upkeep(): Promise<void> {
    const errors: unknown[] = [];
    const { error } = ctx.log;
    ctx.log.error = (fields: unknown) => void errors.push(fields);
    await service.upkeep.runOnce();
    ctx.log.error = error;
    if (errors.length > 0) throw (errors[0] as { err: unknown }).err;
  }
  const count = (sql: string, ...values: string[]) =>
    db.$client.query<{ n: number }, string[]>(`select count(*) n from ${sql}`).get(...values)?.n ?? 0;

  const membersOf = (org: OrgId) => listMembers(ctx, org).map(({ id }) => id);

  /** What is wrong if the rows of B change meanwhile. */
  async function keepsB(work: () => unknown): Promise<string | undefined> {
    const before = rowsOf(world, b.org);
    await work();
    const after = rowsOf(world, b.org).split("\n");
    const lost = before.split("\n").find((row) => !after.includes(row));
    return lost === undefined ? undefined : `B has lost ${lost.slice(0, 200)}`;
  }
  const expectStatus = async (own: typeof asA, method: string, path: string, wanted: number, body?: object) =>
    unlike(`${method} ${path}`, (await own.send(method, `/api/v1${path}`, { body })).status, wanted);

  return {
    async "A keeps everything for a day only"() {
      for (const [own, days] of [
        [asA, 1],
        [asB, 30_000],
      ] as const) {
        const patch = { sessions: days, artifacts: days, deliveries: days, people: days };
        const wrong = await expectStatus(own, "PATCH", "/retention", 200, patch);
        if (wrong) return wrong;
      }
      for (const [own, days] of [
        [asA, 1],
        [asB, 30_000],
      ] as const) {
        const wrong = unlike("retention", (await own.send("GET", "/api/v1/retention")).body.sessions, days);
        if (wrong) return wrong;
      }
      db.$client.run("update deliveries set status = 'delivered', completed_at = ?", [ctx.now()]);
      world.pass(2 * dayMs);
      const sessions = () => count("session_events where org_id = ?", a.org);
      if (sessions() === 0) return "A has no sessions";
      const wrong = await keepsB(upkeep);
      if (wrong) return wrong;
      if (sessions() > 0 || count("deliveries where org_id = ?", a.org) > 0)
        return "sessions or deliveries of A are kept";
      await asA.send("PATCH", "/api/v1/retention", { body: { sessions: null } });
      const left = (await asB.send("GET", "/api/v1/retention")).body;
      return unlike("retention of B", left.sessions, 30_000);
    },

    async "a person leaves A and B, and A forgets them"() {
      const person = await signedIn(world, { org: a.org });
      join(world, b.org, "owner", person.email);
      const personId = listMembers(ctx, b.org).find(({ email }) => email === person.email)?.id ?? "";
      for (const own of [asA, asB]) {
        const { org } = own.a;
        const [field] = (await own.send("GET", "/api/v1/field-friction")).body;
        await person.post(`/friction/field/${field.id}/state`, { state: "resolved", [orgField]: org });
        await person.post("/account/leave", { org, confirmed: "1" });
      }
      const [ownerId = ""] = membersOf(b.org);
      const at = ctx.now();
      const times = { createdAt: new Date(at), expiresAt: new Date(at + 7 * dayMs) };
      const invited = { ...times, orgId: b.org, role: "member", status: "pending" } as const;
      db.insert(invitations)
        .values([
          { ...invited, id: ctx.newId(at), email: person.email, inviterId: ownerId },
          { ...invited, id: ctx.newId(at), email: "invited-by-them@example.com", inviterId: personId },
        ])
        .run();
      const named = (own: typeof asA, name: string) =>
        count("field_friction where org_id = ? and changed_by = ?", own.a.org, name);
      const before = unlike("their name", [named(asA, "A owner"), named(asB, "A owner")], [1, 1]);
      if (before) return before;
      // The first pass stores when they left.
      await upkeep();
      world.pass(2 * dayMs);
      return (await keepsB(upkeep)) ?? unlike("forgotten by A", named(asA, "former member"), 1);
    },

    async "A keeps reports for a day only"() {
      const wrong = await expectStatus(asA, "PATCH", "/retention", 200, { reports: 1 });
      if (wrong) return wrong;
      world.pass(2 * dayMs);
      return (await keepsB(upkeep)) ?? unlike("reports of A", count("reports where org_id = ?", a.org), 0);
    },

    async "A deletes a prompt, and B tries to see and undo that"() {
      await asA.send("PATCH", "/api/v1/retention", { body: { reports: null } });
      const { body: prompt } = await asA.send("POST", "/api/v1/prompts", {
        body: { text: "Read https://docs.acme.dev/" },
      });
      evaluation(asA, prompt.id, [niceGrade]);
      const { body: deletion } = await asA.send("DELETE", `/api/v1/prompts/${prompt.id}`);
      const listed = (await asB.send("GET", "/api/v1/deletions")).body.length;
      const calls = [
        ["GET", ""],
        ["POST", "/restore"],
        ["POST", "/erase"],
      ] as const;
      for (const [method, path] of calls) {
        const wrong = await expectStatus(asB, method, `/deletions/${deletion.id}${path}`, 404);
        if (wrong) return wrong;
      }
      const total = (await asB.send("GET", "/api/v1/deletions")).headers.get("x-total-count");
      const restored = await asA.send("POST", `/api/v1/deletions/${deletion.id}/restore`);
      return (
        unlike("deletions of B", [listed, total], [0, "0"]) ?? unlike("restored by A", restored.body.status, "restored")
      );
    },

    async "A deletes itself a day after C"() {
      const c = { org: createOrg(ctx, "C").id };
      await deleteOrg(ctx, c.org, "an owner");
      world.pass(dayMs);
      for (const own of [asA, asB, asB]) {
        const body = { text: "Read https://docs.acme.dev/" };
        const { body: prompt } = await own.send("POST", "/api/v1/prompts", { body });
        await own.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
        const [running] = db.select().from(runs).where(eq(runs.promptId, prompt.id)).all();
        if (own === asB)
          db.update(jobs)
            .set({ state: "running", leaseUntil: ctx.now() + 90 * dayMs })
            .where(eq(jobs.subject, running?.id ?? ""))
            .run();
        await own.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {}, force: true } });
      }
      const ownerOfA = await signedIn(world, { org: a.org });
      const ownerOfB = await signedIn(world, { org: b.org });
      db.update(signIns)
        .set({ orgId: b.org })
        .where(inArray(signIns.personId, membersOf(b.org)))
        .run();
      const prompts = count("prompts where org_id = ? and id not in (select prompt_id from deleted_prompts)", a.org);
      const all = count("runs where org_id = ?", a.org);
      const listed = async () => (await asB.send("GET", "/api/v1/prompts")).body.length;
      const before = await listed();
      let deletion = { id: "", counts: {} };
      const lost = await keepsB(async () => {
        deletion = (await asA.send("DELETE", "/api/v1/organization")).body;
        await upkeep();
      });
      const restored = await ownerOfB.post("/account/restore", { deletion: deletion.id });
      return (
        lost ??
        unlike("what A deletes", { ...deletion.counts, reports: 0 }, { prompts, runs: all, reports: 0 }) ??
        unlike("prompts of B", await listed(), before) ??
        unlike("key of A", (await asA.send("GET", "/api/v1/prompts")).status, 401) ??
        unlike("A is restored by an owner of B", restored.status, 404) ??
        unlike("A is shown to its owner", (await ownerOfA.get("/account")).body.includes(deletion.id), true) ??
        unlike("A is shown to an owner of B", (await ownerOfB.get("/account")).body.includes(deletion.id), false)
      );
    },

    async "C is erased, then A"() {
      world.pass(6 * dayMs);
      // A site is deleted some days after it was last used.
      db.$client.run("update archives set used_at = ? where org_id = ? and used_at is not null", [ctx.now(), b.org]);
      const signedInAtB = () => count("sign_ins where org_id = ?", b.org);
      const before = signedInAtB();
      const lostWithC = await keepsB(upkeep);
      const wrong =
        lostWithC ??
        unlike("deleted organizations", count("deleted_orgs"), 1) ??
        unlike("key of A", (await asA.send("GET", "/api/v1/prompts")).status, 401);
      if (wrong) return wrong;
      world.pass(dayMs);
      return (
        (await keepsB(upkeep)) ??
        unlike("organizations", count("orgs where id = ?", a.org), 0) ??
        unlike("what is left of A", count("audit_entries where org_id = ?", a.org), 0) ??
        unlike("sign-ins at B", signedInAtB(), before)
      );
    },
  };
}
