import { eq } from "drizzle-orm";
import { createKey, listKeys, revokeKey } from "../../src/auth/keys.ts";
import { orgs, type SignInPolicy } from "../../src/db/tables/orgs.ts";
import { orgField } from "../../src/web/components/layout.tsx";
import { join, signedIn } from "./people.ts";
import { type Tenants, unlike } from "./tenants.ts";

/** Pages of people who belong to A and B, and of keys. Each step returns what is wrong, if anything. */
export function pageBorders(world: Tenants): Record<string, () => Promise<string | undefined>> {
  const { service, app, db, baseUrl, a, b } = world;
  const { ctx } = service;
  const email = "pages@example.com";
  const promptOf = async (own: typeof a) => (await world.as(own).send("GET", "/api/v1/prompts")).body[0].id;

  async function enterBoth() {
    const person = await signedIn(world, { org: a.org, email });
    join(world, b.org, "owner", email);
    return person;
  }
  let person: Awaited<ReturnType<typeof enterBoth>> | undefined;

  return {
    async "a member of A and B opens a prompt of each"() {
      person = await enterBoth();
      for (const own of [b, a, b]) {
        await person.get(`/prompts/${await promptOf(own)}`);
        const shown = (await person.get("/prompts")).body.includes(`Of ${own.org}`);
        if (!shown) return `a page of ${own.org} was opened, and another organization is shown`;
      }
    },

    async "a member of A and B sends a form of A while B is open"() {
      const name = "made on a page of A";
      const form = { name, days: "7", scopes: "read", [orgField]: a.org };
      const { status } = (await person?.post("/settings/keys", form)) ?? {};
      const made = [a, b].map(({ org }) => listKeys(ctx, org).filter((key) => key.name === name).length);
      return unlike("status", status, 200) ?? unlike("keys of A and B", made, [1, 0]);
    },

    async "a member of A and B is barred from A, and offered B"() {
      await person?.get(`/prompts/${await promptOf(a)}`);
      const setPolicy = (signInPolicy: SignInPolicy | null) =>
        db.update(orgs).set({ signInPolicy }).where(eq(orgs.id, a.org)).run();
      setPolicy({ requiresSso: false, requiresSecondFactor: false, emailDomains: ["a.example"] });
      const { body = "", status } = (await person?.get("/prompts")) ?? {};
      setPolicy(null);
      const offered = [a, b].map(({ org }) => body.includes(`value="${org}"`));
      return unlike("status", status, 403) ?? unlike("offered organizations", offered, [false, true]);
    },

    async "a key of A is revoked while it listens to a page"() {
      const { key, apiKey } = createKey(ctx, a.org, "listener");
      const request = new Request(new URL("/live", baseUrl), { headers: { authorization: `Bearer ${key}` } });
      const reader = (await app.handle(request)).body?.getReader();
      const first = await reader?.read();
      revokeKey(ctx, a.org, apiKey.id);
      await world.as(a).send("POST", "/api/v1/prompts", { body: { text: "Read https://docs.acme.dev/" } });
      const next = await reader?.read();
      await reader?.cancel();
      return unlike("ends of the stream", [first?.done, next?.done], [false, true]);
    },
  };
}
