import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { createKey, listKeys, revokeKeysOfPerson } from "../../src/auth/keys.ts";
import { listMembers } from "../../src/auth/members.ts";
import { createOrg, updateOrg } from "../../src/auth/orgs.ts";
import type { OrgId } from "../../src/context.ts";
import { agentLogins } from "../../src/db/tables/keys.ts";
import { exportOrg } from "../../src/exchange/export.ts";
import { importFile } from "../../src/exchange/import.ts";
import { getInbox, markInboxItem } from "../../src/inbox/inbox.ts";
import { listLoginSecrets, listLogins, readLogin, removeLogin } from "../../src/models/logins.ts";
import { setModelKey } from "../../src/models/models.ts";
import { seal } from "../../src/models/seal.ts";
import { listBudgets, setBudget } from "../../src/spending/budgets.ts";
import { findFirstSpending } from "../../src/spending/report.ts";
import { join } from "./people.ts";
import { type Tenants, unlike } from "./tenants.ts";

/** Steps with the inbox, logins, keys of people, spending and settings of B that must not depend on those of A. Each returns what is wrong, if anything. */
export function inboxBorders(world: Tenants): Record<string, () => Promise<string | undefined>> {
  const { service, db, a, b } = world;
  const { ctx } = service;
  const at = ctx.now();
  const run = (sql: string, ...values: (string | number)[]) => db.$client.run(sql, values);

  return {
    async "A has problems of every kind"() {
      const before = JSON.stringify(getInbox(ctx, b.org));
      setModelKey(ctx, a.org, "anthropic", "sk-of-an-old-key");
      run("update model_keys set sealed = zeroblob(40) where org_id = ? and provider = 'anthropic'", a.org);
      run("update destinations set failing_since = ? where org_id = ?", at, a.org);
      run(
        `update runs set waiting_for = '{"what":"worker"}', created_at = ? where org_id = ? and completed_at is null`,
        ctx.now() - world.hourMs,
        a.org,
      );
      const change = { kind: "score_fell", id: "fell", since: new Date(ctx.now()).toISOString(), delta: -9 };
      run("update score_changes set is_stale = 0, change = ? where org_id = ?", JSON.stringify(change), a.org);
      const worse = [{ figure: "found", before: { n: 23, of: 24 }, now: { n: 4, of: 24 } }];
      run("update calibrations set worse = ? where org_id = ?", JSON.stringify(worse), a.org);
      const kinds = new Set<string>(getInbox(ctx, a.org).problems.map(({ kind }) => kind));
      const expected = ["secrets_unreadable", "destination_failing", "runs_waiting", "score_fell", "calibration_worse"];
      const missing = expected.filter((kind) => !kinds.has(kind));
      if (missing.length > 0) return `A has no problem ${missing}`;
      return JSON.stringify(getInbox(ctx, b.org)) === before ? undefined : "the inbox of B has changed";
    },

    async "A snoozes a line with the ID of one of B"() {
      for (const { org } of [a, b]) {
        setModelKey(ctx, org, "anthropic", "sk-of-an-old-key");
        run("update model_keys set sealed = zeroblob(40) where org_id = ? and provider = 'anthropic'", org);
      }
      const snoozedUntil = new Date(ctx.now() + world.hourMs).toISOString();
      markInboxItem(ctx, a.org, "secrets", { snoozedUntil }, "A");
      const shown = getInbox(ctx, b.org).problems.find(({ id }) => id === "secrets");
      const marked = markInboxItem(ctx, b.org, "secrets", { assignee: null }, "B");
      return unlike("line of B", shown?.markedBy, null) ?? unlike("end of a snooze of B", marked.snoozedUntil, null);
    },

    async "A and B have logins for the same agent"() {
      const agent = "an-agent";
      const contentOf = (org: string) => JSON.stringify({ token: `token-of-${org}` });
      for (const { org } of [a, b]) {
        const sealed = seal(contentOf(org), ctx.config.secretKey ?? Buffer.alloc(32), `${org} login ${agent}`);
        db.insert(agentLogins).values({ orgId: org, agent, sealed, expiresAt: null, createdAt: at }).run();
      }
      for (const { org } of [a, b]) {
        const read = new TextDecoder().decode(readLogin(ctx, org, agent));
        const wrong =
          unlike("login", read, contentOf(org)) ??
          unlike("number of logins", listLogins(ctx, org).length, 1) ??
          unlike("secrets", listLoginSecrets(ctx, org), [`token-of-${org}`]);
        if (wrong) return wrong;
      }
      removeLogin(ctx, b.org, agent);
      return unlike("logins of A", listLogins(ctx, a.org).length, 1);
    },

    async "a member of A and B loses the keys of B"() {
      const email = "keys@example.com";
      for (const { org } of [a, b]) join(world, org, "member", email);
      const createdBy = listMembers(ctx, a.org).find((each) => each.email === email)?.id ?? "";
      for (const { org } of [a, b]) createKey(ctx, org, "of a member", { createdBy });
      const count = (org: OrgId) => listKeys(ctx, org, { createdBy, isActive: true }).length;
      const before = unlike("keys", [count(a.org), count(b.org)], [1, 1]);
      if (before) return before;
      revokeKeysOfPerson(ctx, b.org, createdBy);
      return unlike("keys that still work", [count(a.org), count(b.org)], [1, 0]);
    },

    async "A has spent earlier, and A and B have a budget for the same tag"() {
      const first = findFirstSpending(ctx, b.org);
      if (first === null) return "B has spent nothing";
      run('update spending set "from" = 1 where org_id = ?', a.org);
      const usdOf = (org: OrgId) => listBudgets(ctx, org).map(({ maxUsdAMonth }) => maxUsdAMonth);
      setBudget(ctx, a.org, { tag: "nightly", maxUsdAMonth: 10 });
      setBudget(ctx, b.org, { tag: "nightly", maxUsdAMonth: 20 });
      return (
        unlike("first spending of B", findFirstSpending(ctx, b.org), first) ??
        unlike("budgets", [usdOf(a.org), usdOf(b.org)], [[10], [20]])
      );
    },

    async "an organization without prompts takes the settings of a file, and B compares them with its own"() {
      const folder = mkdtempSync(joinPath(tmpdir(), "evald-test-"));
      const importInto = (org: OrgId, from: OrgId) => {
        const file = joinPath(folder, `${from}.jsonl`);
        writeFileSync(file, [...exportOrg(ctx, from, {})].join(""));
        return importFile(ctx, org, file).keptSettings;
      };
      try {
        const [from, to] = ["F", "G"].map((name) => createOrg(ctx, name).id) as [OrgId, OrgId];
        for (const org of [b.org, from]) updateOrg(ctx, org, { maxRunsADay: 1234 });
        return (
          unlike("settings that B keeps", importInto(b.org, b.org), []) ??
          unlike("settings that an empty organization keeps", importInto(to, from), [])
        );
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  };
}
