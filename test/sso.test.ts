import { afterAll, expect, test } from "bun:test";
import { listInvitations } from "../src/auth/invitations.ts";
import { listMembers } from "../src/auth/members.ts";
import { createOrg, updateOrg } from "../src/auth/orgs.ts";
import type { OrgId } from "../src/context.ts";
import { testApp } from "./support/app.ts";
import { oidcEnv, startOidc } from "./support/oidc.ts";
import { browse, password, signedIn } from "./support/people.ts";

const client = { id: "evald", secret: "s3cret" };
const provider = startOidc(client);
afterAll(provider.close);

const appWith = (env: Record<string, string> = {}) =>
  testApp({
    env: {
      ...oidcEnv(provider.issuer, client),
      EVALD_OIDC_NAME: "Acme ID",
      ...env,
    },
  });

/** The whole flow: to the provider, back with a code, and to the final page. */
async function comeBy(browser: ReturnType<typeof browse>, next = "/account") {
  const begun = await browser.get(`/sign-in/oidc?next=${encodeURIComponent(next)}`);
  expect(begun.status).toBe(303);
  const sent = await fetch(begun.location ?? "", { redirect: "manual" });
  const back = new URL(sent.headers.get("location") ?? "");
  expect(back.pathname).toBe("/sign-in/callback/oidc");
  return await browser.get(back.pathname + back.search);
}
const refused = async (browser: ReturnType<typeof browse>, error: string) => {
  const answer = await comeBy(browser);
  const { pathname, search } = new URL(answer.location ?? "");
  expect([pathname, new URLSearchParams(search).get("error")]).toEqual(["/sign-in", error]);
  expect((await browser.get(pathname + search)).body).toContain('role="alert"');
  expect((await browser.get("/account")).location).toBe("/sign-in?next=%2Faccount");
};

test("an invited person signs in, is asked to join, and can sign in again", async () => {
  const app = appWith();
  const owner = await signedIn(app);
  await owner.post("/settings/members/invite", { email: "bea@example.com", role: "admin" });
  const link = listInvitations(app.service.ctx, app.a.org)[0]?.path ?? "";
  provider.signsInAs({ sub: "1", email: "Bea@example.com", email_verified: true, name: "Bea" });
  const bea = browse(app);
  expect((await bea.get(link)).body).toContain("Acme ID");
  expect((await comeBy(bea, link)).location).toBe(`http://localhost:3000${link}`);
  expect((await bea.post(link)).location).toBe("/");
  expect((await bea.get("/account")).body).toContain("bea@example.com");
  expect((await bea.get("/account")).body).not.toContain("/account/password");
  const later = browse(app);
  expect((await comeBy(later)).location).toBe("http://localhost:3000/account");
  expect((await later.get("/settings/members")).status).toBe(200);
  expect(app.db.$client.query("select count(*) as n from people").get()).toEqual({ n: 2 });
});

test("an invited person who signs in without the link finds the invitation if the email address is verified", async () => {
  const app = appWith();
  const owner = await signedIn(app);
  await owner.post("/settings/members/invite", { email: "bea@example.com", role: "viewer" });
  const link = listInvitations(app.service.ctx, app.a.org)[0]?.path ?? "";
  provider.signsInAs({ sub: "1", email: "bea@example.com", email_verified: true, name: "Bea" });
  const bea = browse(app);
  await comeBy(bea);
  // The page of a visitor would ask to sign in again.
  expect((await bea.get("/")).location).toBe("/account");
  expect((await bea.get("/account")).body).toContain(`href="${link}"`);
  app.db.$client.run("update people set email_verified = 0 where email = 'bea@example.com'");
  expect((await bea.get("/account")).body).not.toContain("/invite/");
  expect((await bea.post(link)).location).toBe("/");
  expect((await bea.get("/")).status).toBe(200);
});

test("a person with an account for that email address gets it, and nobody else signs in", async () => {
  const app = appWith();
  const bea = await signedIn(app, { email: "bea@example.com" });
  provider.signsInAs({ sub: "1", email: bea.email, email_verified: true });
  const browser = browse(app);
  await comeBy(browser);
  expect((await browser.get("/account")).body).toContain("/account/password");
  provider.signsInAs({ sub: "2", email: "eve@example.com", email_verified: true });
  await refused(browse(app), "not_invited");
});

test("an unverified email address grants no access, whether invited, of the domain or known", async () => {
  const app = appWith({ EVALD_OIDC_JOIN: "acme.example=A" });
  const owner = await signedIn(app, { email: "ada@example.com" });
  await owner.post("/settings/members/invite", { email: "bea@example.com", role: "admin" });
  for (const email of ["bea@example.com", "cy@acme.example"]) {
    provider.signsInAs({ sub: email, email, email_verified: false });
    await refused(browse(app), "not_invited");
  }
  provider.signsInAs({ sub: "3", email: owner.email });
  await refused(browse(app), "account_not_linked");
});

test("an unverified account loses its passwords and sessions when the provider verifies its email address", async () => {
  const app = appWith({ EVALD_OIDC_JOIN: "victim.example=B" });
  const eve = await signedIn(app);
  const email = "cfo@victim.example";
  await eve.post("/settings/members/invite", { email, role: "member" });
  const link = listInvitations(app.service.ctx, app.a.org)[0]?.path ?? "";
  const squatter = browse(app);
  expect((await squatter.post(link, { name: "Eve", password })).location).toBe("/");
  expect((await squatter.get("/account")).status).toBe(200);

  provider.signsInAs({ sub: "cfo", email, email_verified: true });
  const cfo = browse(app);
  expect((await comeBy(cfo)).location).toBe("http://localhost:3000/account");
  const { body } = await cfo.get("/account");
  expect(body).not.toContain("/account/password");
  expect((await squatter.get("/account")).status).toBe(303);
  expect((await browse(app).post("/sign-in", { email, password })).status).toBe(401);
});

test("only email addresses by the rule of this service sign in, whatever the provider verified", async () => {
  const app = appWith({ EVALD_OIDC_JOIN: "joined.example=A" });
  const odd = [
    "a@evil.example\n@joined.example",
    "a@evil.example@joined.example",
    "<script>@joined.example",
    "a b@joined.example",
    "a,b@joined.example",
    "\u212aim@joined.example",
    "a\u200b@joined.example",
    "@joined.example",
    `${"a".repeat(250)}@joined.example`,
  ];
  for (const email of odd) {
    provider.signsInAs({ sub: email, email, email_verified: true });
    const { search } = new URL((await comeBy(browse(app))).location ?? "");
    expect([email, new URLSearchParams(search).has("error")]).toEqual([email, true]);
  }
  const people = app.db.$client.query<{ n: number }, []>("select count(*) n from people").get();
  expect(people).toEqual({ n: 0 });
  provider.signsInAs({ sub: "cy", email: "Cy.O'Neil+1@Joined.example", email_verified: true });
  await comeBy(browse(app));
  expect(listMembers(app.service.ctx, app.a.org)).toMatchObject([{ email: "cy.o'neil+1@joined.example" }]);
});

test("a verified email address requires the boolean true", async () => {
  const app = appWith();
  const bea = await signedIn(app, { email: "bea@example.com" });
  for (const verified of ["false", "true", 1, null]) {
    provider.signsInAs({ sub: "1", email: bea.email, email_verified: verified });
    await refused(browse(app), "account_not_linked");
  }
});

test.each([
  ["no expiry", { exp: undefined }],
  ["another authorized party", { azp: "other" }],
  ["two audiences and no authorized party", { aud: ["evald", "other"] }],
  ["another audience", { aud: "other" }],
  ["another issuer", { iss: "https://id.example.com" }],
])("an ID token with %s is rejected", async (_, claims) => {
  const app = appWith({ EVALD_OIDC_JOIN: "acme.example=A" });
  provider.signsInAs({ sub: "1", email: "cy@acme.example", email_verified: true, ...claims });
  await refused(browse(app), "unable_to_get_user_info");
});

test.each([
  ["a key that is too short", { kty: "RSA", kid: "1", alg: "RS256", n: "AQAB", e: "AQAB" }],
  ["a key without a modulus", { kty: "RSA", kid: "1", alg: "RS256", e: "AQAB" }],
  ["no object as a key", null],
])("an ID token of a provider that publishes %s is rejected", async (_, key) => {
  const broken = startOidc({ id: "evald", secret: "s3cret" });
  broken.publish([key]);
  broken.signsInAs({ sub: "1", email: "cy@acme.example", email_verified: true });
  const app = appWith({ EVALD_OIDC_ISSUER: broken.issuer, EVALD_OIDC_JOIN: "acme.example=A" });
  await refused(browse(app), "unable_to_get_user_info");
  broken.close();
});

test("a provider that sends no ID token is rejected", async () => {
  const app = appWith({ EVALD_OIDC_JOIN: "acme.example=A" });
  provider.signsInAs({ sub: "1", email: "cy@acme.example", email_verified: true });
  provider.sendIdToken(false);
  await refused(browse(app), "unable_to_get_user_info");
  provider.sendIdToken(true);
  await comeBy(browse(app));
});

test("people of the domain become members, and people of a domain that only ends the same don't", async () => {
  const app = appWith({ EVALD_OIDC_JOIN: "Acme.example=A" });
  provider.signsInAs({ sub: "1", email: "cy@acme.example", email_verified: true, name: "Cy" });
  const cy = browse(app);
  await comeBy(cy);
  expect((await cy.get("/")).body).toContain('<p class="org">A</p>');
  expect(listMembers(app.service.ctx, app.a.org).map(({ email, role }) => [email, role])).toEqual([
    ["cy@acme.example", "member"],
  ]);
  for (const email of ["eve@notacme.example", "eve@acme.example.evil.example"]) {
    provider.signsInAs({ sub: email, email, email_verified: true });
    await refused(browse(app), "not_invited");
  }
});

test("people can't give their organization the name that people of the domain join, before it exists and after it was renamed", async () => {
  const app = appWith({ EVALD_OIDC_JOIN: "acme.example= Acme ", EVALD_PEOPLE_MAKE_ORGS: "1" });
  const eve = await signedIn(app, { email: "eve@evil.example", org: app.b.org });
  const create = async (orgName: string) => (await eve.post("/account/create-organization", { orgName })).status;
  const rename = async (name: string) => (await eve.post("/settings", { name, timeZone: "UTC" })).status;
  const take = async () => [await create("Acme"), await create(" Acme"), await rename("Acme "), await rename("Acme")];
  const none = [409, 409, 409, 409];
  expect(await take()).toEqual(none);
  provider.signsInAs({ sub: "1", email: "cy@acme.example", email_verified: true, name: "Cy" });
  await comeBy(browse(app));
  expect(await take()).toEqual(none);
  // The person is the operator.
  const { id } = updateOrg(app.service.ctx, app.a.org, { name: "Acme" });
  expect(await take()).toEqual(none);
  const ada = await signedIn(app, { email: "ada@example.com" });
  const members = () => listMembers(app.service.ctx, id).map(({ email }) => email);
  await comeBy(browse(app));
  expect(members()).toContain("cy@acme.example");
  // Its owner saves other settings, then renames it.
  expect((await ada.post("/settings", { name: "Acme", timeZone: "Europe/Berlin" })).status).toBe(200);
  expect((await ada.post("/settings", { name: "Acme Inc", timeZone: "UTC" })).status).toBe(200);
  expect(await take()).toEqual(none);
  provider.signsInAs({ sub: "2", email: "di@acme.example", email_verified: true, name: "Di" });
  await comeBy(browse(app));
  expect(members()).not.toContain("di@acme.example");
  expect(await create("Mine")).toBe(303);
});

test("people of the domain join the organization with the ID in the setting, whatever its name", async () => {
  const env = { EVALD_PEOPLE_MAKE_ORGS: "1" };
  const id = crypto.randomUUID();
  const app = appWith({ ...env, EVALD_OIDC_JOIN: `acme.example=${id.toUpperCase()}` });
  app.db.$client.run("update orgs set id = ? where id = ?", [id, createOrg(app.service.ctx, "Acme").id]);
  const eve = await signedIn(app, { email: "eve@evil.example" });
  for (const orgName of [id, id.toUpperCase()])
    expect((await eve.post("/account/create-organization", { orgName })).status).toBe(303);
  updateOrg(app.service.ctx, id as OrgId, { name: "Acme Inc" });
  provider.signsInAs({ sub: "1", email: "cy@acme.example", email_verified: true, name: "Cy" });
  const cy = browse(app);
  await comeBy(cy);
  expect((await cy.get("/")).body).toContain('<p class="org">Acme Inc</p>');
});

test("another browser's code, a second use, a modified state and a denied consent are rejected", async () => {
  const app = appWith({ EVALD_OIDC_JOIN: "acme.example=A" });
  provider.signsInAs({ sub: "1", email: "cy@acme.example", email_verified: true });
  const [mine, other] = [browse(app), browse(app)];
  const begun = await mine.get("/sign-in/oidc");
  const back = new URL((await fetch(begun.location ?? "", { redirect: "manual" })).headers.get("location") ?? "");
  for (const [browser, query] of [
    [other, back.search],
    [mine, back.search.replace(/state=[^&]+/, "state=changed")],
    [mine, "?error=access_denied"],
  ] as const) {
    expect((await browser.get(`/sign-in/callback/oidc${query}`)).location).toStartWith(
      "http://localhost:3000/sign-in?",
    );
    expect((await browser.get("/account")).status).toBe(303);
  }
});

test("the parameter next redirects only within this service", async () => {
  const app = appWith({ EVALD_OIDC_JOIN: "acme.example=A" });
  provider.signsInAs({ sub: "1", email: "cy@acme.example", email_verified: true });
  for (const next of ["https://evil.example/", "//evil.example", "/\\evil.example"])
    expect((await comeBy(browse(app), next)).location).toBe("http://localhost:3000/");
});

test("an unreachable provider is reported and retried, and there is no button without a provider", async () => {
  const gone = startOidc({ id: "evald", secret: "s3cret" });
  gone.close();
  const app = appWith({ EVALD_OIDC_ISSUER: gone.issuer });
  for (const _ of [1, 2]) {
    const { status, body } = await browse(app).get("/sign-in/oidc");
    expect([status, body.includes('data-error="unavailable"')]).toEqual([503, true]);
  }
  const plain = browse(testApp());
  expect((await plain.get("/sign-in")).body).not.toContain("/sign-in/oidc");
  expect((await plain.get("/sign-in/oidc")).status).toBe(404);
  expect((await plain.get("/sign-in/callback/oidc?code=1")).status).toBe(404);
});

test("a token with a wrong signature is rejected, and none of its data is stored", async () => {
  const app = appWith({ EVALD_OIDC_JOIN: "acme.example=A" });
  provider.signsInAs({ sub: "1", email: "cy@acme.example", email_verified: true });
  provider.forge();
  await refused(browse(app), "unable_to_get_user_info");
  expect(Object.keys(app.db.$client.query("select * from accounts").all()[0] ?? {})).toEqual([]);
});
