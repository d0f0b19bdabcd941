import { afterAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { listInvitations } from "../src/auth/invitations.ts";
import { getSignInPolicy, resetSignInPolicy } from "../src/auth/sign-in-policy.ts";
import { orgs } from "../src/db/tables/orgs.ts";
import { roles } from "../src/db/tables/people.ts";
import { testApp } from "./support/app.ts";
import { oidcEnv, startOidc } from "./support/oidc.ts";
import { browse, join, password, signedIn } from "./support/people.ts";
import { fromBase32, totp } from "./support/totp.ts";

const client = { id: "evald", secret: "s3cret" };
const provider = startOidc(client);
afterAll(provider.close);

const newApp = () =>
  testApp({
    env: {
      ...oidcEnv(provider.issuer, client),
      EVALD_OIDC_NAME: "Acme ID",
    },
  });
type App = ReturnType<typeof testApp>;
type Browser = ReturnType<typeof browse>;

const policies = {
  "single sign-on": { requiresSso: true, requiresSecondFactor: false, emailDomains: [] },
  "a second factor": { requiresSso: false, requiresSecondFactor: true, emailDomains: [] },
  "a domain": { requiresSso: false, requiresSecondFactor: false, emailDomains: ["acme.example"] },
};

async function signInBySso(browser: Browser, email: string): Promise<void> {
  provider.signsInAs({ sub: email, email, email_verified: true });
  const begun = await browser.get("/sign-in/oidc");
  const sent = await fetch(begun.location ?? "", { redirect: "manual" });
  const back = new URL(sent.headers.get("location") ?? "");
  await browser.get(back.pathname + back.search);
}

async function turnOnTwoFactor(browser: Browser): Promise<void> {
  const { body } = await browser.post("/account/two-factor", { password });
  const uri = /name="uri" value="([^"]+)"/.exec(body)?.[1]?.replaceAll("&amp;", "&") ?? "";
  const code = totp(fromBase32(new URL(uri).searchParams.get("secret") ?? ""), Date.now());
  expect((await browser.post("/account/two-factor/confirm", { uri, code })).status).toBe(200);
}

/** Ways to sign in. A real passkey needs a browser: test/slow/passkeys.test.ts has one. */
const ways: Record<string, (app: App, browser: Browser, email: string) => Promise<unknown>> = {
  "a password": (_, browser, email) => browser.post("/sign-in", { email, password }),
  "a password and a code": async (_, browser, email) => {
    await browser.post("/sign-in", { email, password });
    await turnOnTwoFactor(browser);
  },
  "a passkey": async (app, browser, email) => {
    await browser.post("/sign-in", { email, password });
    app.db.$client.run("update sign_ins set method = 'passkey'");
  },
  "single sign-on": (_, browser, email) => signInBySso(browser, email),
};
const fulfilled: Record<string, string[]> = {
  "single sign-on": ["single sign-on"],
  "a second factor": ["a password and a code", "a passkey", "single sign-on"],
  "a domain": Object.keys(ways),
};
const isBarred = ({ status, body }: { status: number; body: string }) =>
  status === 403 && body.includes('data-error="sign_in_policy"');

describe.each(Object.keys(policies))("a policy that requires %s", (name) => {
  test.each(Object.keys(ways))("decides about every role that signs in with %s", async (way) => {
    const app = newApp();
    for (const role of roles) {
      const browser = browse(app);
      const email = `${role}@acme.example`;
      join(app, app.a.org, role, email);
      await ways[way]?.(app, browser, email);
      expect((await browser.get("/prompts")).status).toBe(200);
      // It applies to the next request of a session.
      app.db
        .update(orgs)
        .set({ signInPolicy: policies[name as keyof typeof policies] })
        .run();
      const answers = [await browser.get("/prompts"), await browser.get("/"), await browser.get("/settings/members")];
      answers.push(await browser.post("/settings/members/invite", { email: "new@acme.example", role: "member" }));
      const isAllowed = fulfilled[name]?.includes(way) === true;
      expect(answers.map(isBarred)).toEqual(answers.map(() => !isAllowed));
      // Someone who is barred gets to their account, and can sign out.
      expect((await browser.get("/account")).status).toBe(200);
      app.db.update(orgs).set({ signInPolicy: null }).run();
    }
  });
});

test("a domain bars other addresses, also from invitations before and after it", async () => {
  const app = newApp();
  const owner = await signedIn(app, { email: "ada@acme.example" });
  const outsider = await signedIn(app, { role: "admin", email: "eve@evil.acme.example" });
  await owner.post("/settings/members/invite", { email: "cy@other.example", role: "member" });
  const link = listInvitations(app.service.ctx, app.a.org)[0]?.path ?? "";
  expect((await owner.post("/settings/sign-in", { emailDomains: "@ACME.example, acme.test" })).status).toBe(200);
  expect(getSignInPolicy(app.service.ctx, app.a.org).emailDomains).toEqual(["acme.example", "acme.test"]);
  expect(isBarred(await outsider.get("/prompts"))).toBe(true);
  expect((await owner.get("/prompts")).status).toBe(200);
  const refused = await owner.post("/settings/members/invite", { email: "dee@other.example", role: "member" });
  expect(refused.status).toBe(403);
  expect((await owner.post("/settings/members/invite", { email: "dee@acme.test", role: "member" })).status).toBe(303);
  expect((await browse(app).post(link, { name: "Cy", password })).status).toBe(403);
});

test("an invitation to an organization with single sign-on is accepted with it alone", async () => {
  const app = newApp();
  const owner = browse(app);
  join(app, app.a.org, "owner", "ada@acme.example");
  await signInBySso(owner, "ada@acme.example");
  expect((await owner.post("/settings/sign-in", { requiresSso: "true" })).status).toBe(200);
  await owner.post("/settings/members/invite", { email: "bea@acme.example", role: "member" });
  const link = listInvitations(app.service.ctx, app.a.org)[0]?.path ?? "";
  const bea = browse(app);
  expect((await bea.get(link)).body).not.toContain('name="password"');
  expect((await bea.post(link, { name: "Bea", password })).status).toBe(403);
  await signInBySso(bea, "bea@acme.example");
  expect((await bea.post(link)).location).toBe("/");
  expect((await bea.get("/prompts")).status).toBe(200);
});

test("an owner can't set a policy that they don't fulfill, others can't set any, and the operator removes it", async () => {
  const app = newApp();
  const owner = await signedIn(app, { email: "ada@acme.example" });
  for (const [field, value] of [
    ["requiresSso", "true"],
    ["requiresSecondFactor", "true"],
    ["emailDomains", "other.example"],
  ] as const)
    expect((await owner.post("/settings/sign-in", { [field]: value })).status).toBe(409);
  expect((await owner.post("/settings/sign-in", { emailDomains: "not a domain" })).status).toBe(400);
  const admin = await signedIn(app, { role: "admin" });
  expect((await admin.post("/settings/sign-in", { emailDomains: "example.com" })).status).toBe(403);
  expect(getSignInPolicy(app.service.ctx, app.a.org).emailDomains).toEqual([]);

  await turnOnTwoFactor(owner);
  expect((await owner.post("/settings/sign-in", { requiresSecondFactor: "true" })).status).toBe(200);
  expect([isBarred(await admin.get("/prompts")), (await owner.get("/prompts")).status]).toEqual([true, 200]);
  // The second factor is required again once it is gone.
  await owner.post("/account/two-factor/disable", { password });
  expect(isBarred(await owner.get("/prompts"))).toBe(true);
  resetSignInPolicy(app.service.ctx, app.a.org);
  expect((await owner.get("/prompts")).status).toBe(200);
  expect(
    app.db.$client.query("select count(*) n from audit_entries where action = 'sign_in_policy.changed'").get(),
  ).toEqual({ n: 2 });
});

test("a policy of one organization leaves a person's others open", async () => {
  const app = newApp();
  const person = await signedIn(app, { role: "member", email: "cy@acme.example" });
  join(app, app.b.org, "member", "cy@acme.example");
  app.db.update(orgs).set({ signInPolicy: policies["a second factor"] }).where(eq(orgs.id, app.a.org)).run();
  expect((await person.get("/")).body).toContain("<summary>B</summary>");
  const barred = await person.post("/account/organization", { org: app.a.org });
  expect(barred.status).toBe(303);
  expect(isBarred(await person.get("/"))).toBe(true);
  await person.post("/account/organization", { org: app.b.org });
  expect((await person.get("/prompts")).status).toBe(200);
});
