import { eq, inArray } from "drizzle-orm";
import { listInvitations } from "../../src/auth/invitations.ts";
import { createKey, deleteExpiredKeysOfTrusts, listKeys } from "../../src/auth/keys.ts";
import { listMembers } from "../../src/auth/members.ts";
import { createOrg, getOrg, limitsOfOrg, updateOrg } from "../../src/auth/orgs.ts";
import { setupPath } from "../../src/auth/setup.ts";
import type { OrgId } from "../../src/context.ts";
import { nextTime } from "../../src/cron.ts";
import { trusts } from "../../src/db/tables/keys.ts";
import { notifications } from "../../src/db/tables/notifications.ts";
import { orgs } from "../../src/db/tables/orgs.ts";
import { prompts } from "../../src/db/tables/prompts.ts";
import { runs } from "../../src/db/tables/runs.ts";
import { exportOrg } from "../../src/exchange/export.ts";
import { budgetOfRun, getSpending } from "../../src/runs/spending.ts";
import { browse, signedIn } from "./people.ts";
import { joinedOrgId, type Tenants, unlike } from "./tenants.ts";

/** The settings of A and B differ in each field. 8:00 in New York is 13:00 UTC in November. */
const ofA = {
  name: "Of A",
  timeZone: "Europe/Berlin",
  maxRunsAtOnce: 20,
  maxRunsADay: 2000,
  maxUsdAMonth: null,
  maxUsdARun: 1,
  judgeModels: ["openai-compatible/agent"],
};
const ofB = {
  name: "Of B",
  timeZone: "America/New_York",
  maxRunsAtOnce: 30,
  maxRunsADay: 3000,
  maxUsdAMonth: 2000,
  maxUsdARun: 1.5,
  judgeModels: ["openai-compatible/judge"],
};
const frequency = "0 8 * * *";

/** Steps in which the settings of B apply, not those of A. Each returns what is wrong, if anything. */
export function settingBorders(world: Tenants): Record<string, () => Promise<string | undefined>> {
  const { service, db, a, b, oidc } = world;
  const asB = world.as(b);
  const namesB = (what: string, text: string) =>
    text.includes(ofB.name) && !text.includes(ofA.name) ? undefined : `${what} doesn't name B, or names A`;

  return {
    async "A and B have different settings"() {
      updateOrg(service.ctx, a.org, ofA);
      updateOrg(service.ctx, b.org, ofB);
      const { name, timeZone, maxRunsAtOnce, maxRunsADay, maxUsdAMonth, maxUsdARun, judgeModels } = getOrg(
        service.ctx,
        b.org,
      );
      const found = { name, timeZone, maxRunsAtOnce, maxRunsADay, maxUsdAMonth, maxUsdARun, judgeModels };
      return (
        unlike("settings", found, ofB) ??
        unlike("limits", limitsOfOrg(service.ctx, b.org), { atOnce: ofB.maxRunsAtOnce, aDay: ofB.maxRunsADay }) ??
        unlike("budget", getSpending(service.ctx, b.org).maxUsdAMonth, ofB.maxUsdAMonth) ??
        unlike("cost of a run", budgetOfRun(service.ctx, b.org, null, null).agentUsd, ofB.maxUsdARun)
      );
    },

    async "everything that B gives away names B"() {
      const setupOrg = createOrg(service.ctx, "Of new owners").id;
      const setup = await browse(world).get(setupPath(service.ctx, setupOrg));
      if (!setup.body.includes("Of new owners")) return "the setup page doesn't name its organization";
      const [line] = [...exportOrg(service.ctx, b.org, {})].join("").split("\n");
      const [invitation] = listInvitations(service.ctx, b.org);
      const invited = await browse(world).get(invitation?.path ?? "");
      const guest = await signedIn(world, { org: setupOrg, email: `new@${b.org}.example` });
      const account = await guest.get("/account");
      const [report] = (await asB.send("GET", "/api/v1/reports")).body;
      const made = await asB.send("POST", `/api/v1/reports/${report.slug}/shares`, { body: { days: 7 } });
      const shared = await browse(world).get(new URL(made.body.url).pathname);
      return (
        namesB("the export", line ?? "") ??
        namesB("an invitation", invited.body) ??
        namesB("the account of an invited person", account.body) ??
        namesB("a shared report", shared.body)
      );
    },

    async "B schedules by tag, in its time zone"() {
      const tagged = await asB.send("GET", "/api/v1/prompts?tag=nightly");
      const ids = tagged.body.map(({ id }: { id: string }) => id);
      const { body } = await asB.send("POST", "/api/v1/prompts/schedule", { body: { tag: "nightly", frequency } });
      const expectTimes = async (what: string) => {
        const rows = db.select().from(prompts).where(inArray(prompts.id, ids)).all();
        const active = rows.filter(({ status }) => status === "active");
        const due = nextTime({ id: "", frequency, timeZone: ofB.timeZone }, service.ctx.now());
        const { body: shown } = await asB.send("GET", `/api/v1/prompts/${active[0]?.id}`);
        return (
          unlike(`stored ${what}`, [...new Set(active.map(({ nextEvaluationAt }) => nextEvaluationAt))], [due]) ??
          unlike(`shown ${what}`, shown.nextRunsAt[0], new Date(due ?? 0).toISOString())
        );
      };
      const wrong =
        unlike("prompts", body.scheduled + body.problems.length, ids.length) ?? (await expectTimes("times"));
      if (wrong) return wrong;
      world.pass(24 * world.hourMs);
      await service.scheduler.tick();
      return await expectTimes("times after a day");
    },

    async "B judges with its own judge"() {
      // These deliveries are from earlier steps.
      db.$client.run("update jobs set state = 'done', completed_at = 0 where state in ('queued', 'running')");
      const prompt = { text: "Query it. Docs: https://docs.acme.dev/", endGoal: "Three rows were printed." };
      const { body: made } = await asB.send("POST", "/api/v1/prompts", { body: prompt });
      await asB.send("POST", `/api/v1/prompts/${made.id}/run`, { body: { urlMap: {} } });
      await world.runJobs();
      const { body: found } = await asB.send("GET", `/api/v1/reports?promptId=${made.id}`);
      const { body: report } = await asB.send("GET", `/api/v1/reports/${found[0]?.slug}`);
      return unlike("judge", report.judge?.model, ofB.judgeModels[0]);
    },

    async "A and B get the weekly digest"() {
      const monday = Date.UTC(2026, 10, 23, 14);
      world.pass(monday - service.ctx.now());
      const until = Date.UTC(2026, 10, 23, 13);
      const inWeek = db.select().from(runs).where(eq(runs.orgId, b.org)).all();
      const ofWeek = inWeek.filter(({ createdAt }) => createdAt >= until - 7 * 24 * world.hourMs && createdAt < until);
      await service.notifier.digests.tick();
      const digests = db.select().from(notifications).where(eq(notifications.type, "digest.weekly")).all();
      const data = digests.find(({ orgId }) => orgId === b.org)?.data;
      const { completed, failed } = (data?.runs ?? {}) as { completed?: number; failed?: number };
      const count = (status: string) => ofWeek.filter((run) => run.status === status).length;
      if (ofWeek.length === 0) return "B has no runs";
      return (
        unlike("digests", digests.map(({ orgId }) => orgId).sort(), [a.org, b.org].sort()) ??
        unlike("end", data?.until, new Date(until).toISOString()) ??
        unlike("runs", { completed, failed }, { completed: count("completed"), failed: count("failed") })
      );
    },

    async "B deletes its expired keys of CI"() {
      const [trust] = db.select().from(trusts).where(eq(trusts.orgId, a.org)).all();
      const { apiKey } = createKey(service.ctx, a.org, "of CI", { lifeMs: 1000, scopes: ["read"], trustId: trust?.id });
      deleteExpiredKeysOfTrusts(service.ctx, b.org, service.ctx.now() + world.hourMs);
      return listKeys(service.ctx, a.org).some(({ id }) => id === apiKey.id) ? undefined : "a key of A is gone";
    },

    async "people of a domain join the organization of the operator's choice"() {
      db.insert(orgs)
        .values({ id: joinedOrgId, name: "Of the domain", timeZone: "UTC", createdAt: service.ctx.now() })
        .run();
      const email = "cy@joins.example";
      oidc.signsInAs({ sub: "1", email, email_verified: true });
      const cy = browse(world);
      const sent = await fetch((await cy.get("/sign-in/oidc?next=/account")).location ?? "", { redirect: "manual" });
      const back = new URL(sent.headers.get("location") ?? "");
      await cy.get(back.pathname + back.search);
      const isIn = (org: OrgId) => listMembers(service.ctx, org).some((each) => each.email === email);
      return isIn(joinedOrgId as OrgId) && !isIn(a.org) ? undefined : "the person joined another organization";
    },
  };
}
