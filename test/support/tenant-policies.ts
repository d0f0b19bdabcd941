import { createKey, listKeys } from "../../src/auth/keys.ts";
import { listMembers } from "../../src/auth/members.ts";
import { auditEntries } from "../../src/db/tables/audit.ts";
import { formerMembers } from "../../src/db/tables/people.ts";
import { listProposalSets } from "../../src/proposals/proposal-sets.ts";
import { listFailureGroups } from "../../src/queue/failures.ts";
import { pauseRuns, resumeRuns } from "../../src/runs/pauses.ts";
import { maxSecrets } from "../../src/secrets/schema.ts";
import { readSecrets } from "../../src/secrets/secrets.ts";
import { fieldsOf } from "./form-fields.ts";
import { rpc } from "./mcp.ts";
import { join, signedIn } from "./people.ts";
import { type Tenants, unlike } from "./tenants.ts";

/** Sign-in policies, paused schedules, secrets, keys and the audit log of B, which must not depend on A's. Each step returns what is wrong, if anything. */
export function policyBorders(world: Tenants): Record<string, () => Promise<string | undefined>> {
  const { service, db, a, b } = world;
  const { ctx } = service;
  const [asA, asB] = [world.as(a), world.as(b)];

  return {
    async "A and B set their own sign-in policy"() {
      const owners = {
        "b.example": await signedIn(world, { org: b.org, email: "owner@b.example" }),
        "a.example": await signedIn(world, { org: a.org, email: "owner@a.example" }),
      };
      const domainsOf = async (owner: keyof typeof owners) =>
        fieldsOf((await owners[owner].get("/settings/sign-in")).body).emailDomains;
      const set = (owner: keyof typeof owners, emailDomains: string) =>
        owners[owner].post("/settings/sign-in", { emailDomains });
      for (const domain of ["b.example", "a.example"] as const) {
        const wrong = unlike(`policy of ${domain}`, (await set(domain, domain)).status, 200);
        if (wrong) return wrong;
      }
      const wrong = unlike(
        "domains",
        [await domainsOf("a.example"), await domainsOf("b.example")],
        ["a.example", "b.example"],
      );
      for (const domain of ["b.example", "a.example"] as const) await set(domain, "");
      return wrong;
    },

    async "A pauses its schedules, and B pauses and resumes its own"() {
      const stateOf = async (own: typeof asA) => {
        const { body } = await own.send("GET", "/api/v1/schedules");
        const times = db.$client.query("select id, next_evaluation_at from prompts where org_id = ?").all(own.a.org);
        return JSON.stringify([body, times]);
      };
      const daily = { text: "Read https://docs.acme.dev/", frequency: "daily" };
      await asA.send("POST", "/api/v1/prompts", { body: daily });
      const schedules = [];
      for (const own of [asA, asB]) schedules.push((await own.send("GET", "/api/v1/schedules")).body.schedules);
      const mixed = unlike("schedules", schedules, [2, 1]);
      if (mixed) return mixed;
      const before = await stateOf(asB);
      const paused = (await asA.send("POST", "/api/v1/schedules/pause")).body;
      if (paused.pausedAt === null || paused.schedules === 0)
        return `A has no paused schedules: ${JSON.stringify(paused)}`;
      const whilePaused = unlike("schedules of B", await stateOf(asB), before);
      if (whilePaused) return whilePaused;
      const ofA = await stateOf(asA);
      for (const change of ["pause", "resume"]) await asB.send("POST", `/api/v1/schedules/${change}`);
      const wrong = unlike("schedules of A", await stateOf(asA), ofA);
      await asA.send("POST", "/api/v1/schedules/resume");
      return wrong;
    },

    async "an operator pauses an agent that both use, and then B"() {
      const pausesOf = async (own: typeof asA) =>
        (await own.send("GET", "/api/v1/inbox")).body.problems
          .filter(({ kind }: { kind: string }) => kind === "runs_paused")
          .map(({ runs }: { runs: number }) => runs);
      for (const [own, runsPerEval] of [
        [asA, 2],
        [asB, 1],
      ] as const) {
        const body = { text: "Read https://docs.acme.dev/" };
        const { body: prompt } = await own.send("POST", "/api/v1/prompts", { body });
        await own.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {}, runs: runsPerEval } });
      }
      const queued = db.$client
        .query(
          "select org_id, count(*) n from jobs where state = 'queued' and kind = 'run' group by 1 order by org_id = ?",
        )
        .values(a.org)
        .map(([, n]) => n);
      const [ofB, ofA] = queued;
      const agent = { kind: "agent", subject: "explorer" } as const;
      await pauseRuns(ctx, agent, null, "an operator");
      const wrong = unlike("paused runs", [await pausesOf(asA), await pausesOf(asB)], [[ofA], [ofB]]);
      await resumeRuns(ctx, agent);
      const organization = { kind: "organization", subject: b.org } as const;
      await pauseRuns(ctx, organization, null, "an operator");
      const alone = unlike("runs of A", [await pausesOf(asA), await pausesOf(asB)], [[], [ofB]]);
      await resumeRuns(ctx, organization);
      return wrong ?? alone;
    },

    async "A waits for as many proposals as it may"() {
      const request = async (own: typeof asA) =>
        (await own.send("POST", "/api/v1/proposals", { body: { docsUrl: "https://docs.acme.dev/" } })).status;
      const statuses: number[] = [];
      for (let i = 0; i < 6; i++) statuses.push(await request(asA));
      const [ofA] = listProposalSets(ctx, a.org, { limit: 1, offset: 0 }).items;
      const shown = await asB.send("GET", `/api/v1/proposals/${ofA?.proposalSetId}`);
      const ofB = await request(asB);
      const { items, total } = listProposalSets(ctx, b.org, { limit: 10, offset: 0 });
      return (
        unlike("requests of A", statuses.slice(-2), [202, 429]) ??
        unlike("set of A for B", shown.status, 404) ??
        unlike("request of B", ofB, 202) ??
        unlike("sets of B", [items.length, total], [1, 1])
      );
    },

    async "B compares reports with the URL of a run of A"() {
      const [theirs] = (await asA.send("GET", "/api/v1/reports")).body;
      const [mine] = (await asB.send("GET", "/api/v1/reports")).body;
      const slugs = [`https://evald.example/runs/${theirs.runId}`, mine.slug];
      const answer = JSON.stringify(await rpc(asB, b.key).call("compare_reports", { slugs }));
      return answer.includes(theirs.slug) ? `B sees ${theirs.slug}` : undefined;
    },

    async "B requests a run with the key that a retry of A would have"() {
      const ofA = (await asA.send("GET", "/api/v1/runs")).body;
      const failed = ofA.find((run: { failure: object | null }) => run.failure !== null);
      const { body: prompt } = await asB.send("POST", "/api/v1/prompts", {
        body: { text: "Read https://docs.acme.dev/" },
      });
      const counts = () => listFailureGroups(ctx).map(({ failed }) => failed);
      const before = counts();
      const headers = { "idempotency-key": `retry-${failed.runId}` };
      const { status } = await asB.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} }, headers });
      return unlike("run", status, 200) ?? unlike("failures", counts(), before);
    },

    async "A has other secrets, and as many as it may have"() {
      const put = async (own: typeof asA, name: string) =>
        (await own.send("PUT", `/api/v1/secrets/${name}`, { body: { value: `the ${name} of ${own.a.org}` } })).status;
      for (const own of [asA, asB]) await put(own, "TOKEN");
      const values = [a, b].map(({ org }) => readSecrets(ctx, org, ["TOKEN"]).TOKEN?.value);
      const mixed = unlike("secrets", values, [`the TOKEN of ${a.org}`, `the TOKEN of ${b.org}`]);
      if (mixed) return mixed;
      for (let i = 1; i < maxSecrets; i++) await put(asA, `ONLY_A_${i}`);
      const wrong =
        unlike("one secret too many of A", await put(asA, "ONE_MORE"), 409) ??
        unlike("names", (await asB.send("GET", "/api/v1/secrets")).body.length, 1) ??
        unlike("new secret of B", await put(asB, "ONE_MORE"), 200);
      if (wrong) return wrong;
      const body = {
        text: "Read https://docs.acme.dev/",
        declaredChecks: [
          { url: "https://docs.acme.dev/", contains: "Acme", headers: { "X-Token": "{{secret.ONLY_A_1}}" } },
        ],
      };
      const statuses = [];
      for (const own of [asA, asB]) statuses.push((await own.send("POST", "/api/v1/prompts", { body })).status);
      for (const name of ["TOKEN", "ONE_MORE"]) await asB.send("DELETE", `/api/v1/secrets/${name}`);
      const left = (await asA.send("GET", "/api/v1/secrets")).body.length;
      return (
        unlike("prompts with a secret of A", statuses, [201, 400]) ?? unlike("secrets that A keeps", left, maxSecrets)
      );
    },

    async "people who left B are members of A"() {
      for (const { org } of [a, b]) join(world, org, "member", "one-of-both@example.com");
      const person = listMembers(ctx, a.org).find(({ email }) => email === "one-of-both@example.com");
      const { apiKey } = createKey(ctx, b.org, "of someone who left", { createdBy: person?.id });
      const memberId = listMembers(ctx, b.org).find(({ id }) => id === person?.id)?.memberId ?? "";
      const owner = await signedIn(world, { org: b.org });
      db.$client.run("delete from members where id = ?", [memberId]);
      const former = listKeys(ctx, b.org, { isOfFormer: true }).map(({ id }) => id);
      await owner.post("/settings/keys/revoke-former", { confirmed: "1" });
      // A then forgets their name, and B doesn't.
      const forgotten = { orgId: a.org, personId: person?.id ?? "", leftAt: 1, forgottenAt: 1 };
      db.insert(formerMembers).values(forgotten).run();
      const key = listKeys(ctx, b.org).find(({ id }) => id === apiKey.id);
      return (
        unlike("keys of former members", former, [apiKey.id]) ??
        unlike("name in B", key?.createdBy?.name, person?.name) ??
        (key?.revokedAt ? undefined : "the key is not revoked")
      );
    },

    async "A has other people in its audit log"() {
      const owner = await signedIn(world, { org: b.org });
      const actors = async () =>
        [...(await owner.get("/settings/audit-log")).body.matchAll(/<option value="[^"]*"[^>]*>[^<]*/g)].join();
      const before = await actors();
      const [entry] = db.select().from(auditEntries).limit(1).all();
      const actorIdOfB = db.$client
        .query<{ id: string }, [string]>(
          "select actor_id id from audit_entries where org_id = ? and actor_id is not null",
        )
        .get(b.org)?.id;
      if (!entry || !actorIdOfB) return "the audit log is empty";
      for (const [actorId, actorName] of [
        ["0", "The first"],
        [`${actorIdOfB}-`, "The next"],
        [actorIdOfB, "Another name"],
        ["~", "The last"],
      ] as const) {
        const createdAt = ctx.now();
        db.insert(auditEntries)
          .values({ ...entry, id: ctx.newId(createdAt), orgId: a.org, createdAt, actorId, actorName })
          .run();
      }
      return unlike("actors", await actors(), before);
    },
  };
}
