import { describe, expect, test } from "bun:test";
import { listInvitations } from "../src/auth/invitations.ts";
import { createKey, listKeys } from "../src/auth/keys.ts";
import { listMembers } from "../src/auth/members.ts";
import { createOrg } from "../src/auth/orgs.ts";
import { findPerson } from "../src/auth/people.ts";
import { AppError } from "../src/errors.ts";
import { testApp } from "./support/app.ts";
import { browse, join, password, signedIn } from "./support/people.ts";

type App = ReturnType<typeof testApp>;
type Browser = Awaited<ReturnType<typeof signedIn>>;

const inviteLink = async (owner: Browser, email: string, role = "member"): Promise<string> => {
  const { location } = await owner.post("/settings/members/invite", { email, role });
  expect(location).toStartWith("/settings/members?done=");
  const { body } = await owner.get("/settings/members");
  return /<code>http:\/\/localhost:3000(\/invite\/[^<]+)<\/code>/.exec(body)?.[1] ?? "";
};
const memberId = (app: App, email: string, org = app.a.org): string =>
  listMembers(app.service.ctx, org).find((each) => each.email === email)?.memberId ?? "none";
const rolesOf = (app: App) => listMembers(app.service.ctx, app.a.org).map(({ email, role }) => [email, role]);

test("email addresses that no mail server has are refused with 400", async () => {
  const owner = await signedIn(testApp());
  const odd = [
    "a@[127.0.0.1]",
    "\u0131@x.example",
    "a@\u0430cme.example",
    "\u212a@x.example",
    "a..b@x.example",
    "a@x",
    "@x.example",
  ];
  for (const email of odd)
    expect([email, (await owner.post("/settings/members/invite", { email, role: "member" })).status]).toEqual([
      email,
      400,
    ]);
});

test("an API key reads no email addresses of members", async () => {
  const app = testApp({ env: { EVALD_SMTP_URL: "smtp://127.0.0.1:1", EVALD_MAIL_FROM: "evald@x.example" } });
  const { email } = await signedIn(app, { email: "ada@example.com" });
  const body = { kind: "email", events: ["run.failed"], recipients: [email] };
  const made = await app.send("POST", "/api/v1/destinations", { body });
  expect([made.status, made.body.recipients]).toEqual([201, [email]]);
  const { key } = createKey(app.service.ctx, app.a.org, "reader", { scopes: ["read"] });
  const headers = { authorization: `Bearer ${key}` };
  const paths = [
    ...["/settings/members", "/settings/notifications", `/settings/notifications/${made.body.id}`, "/settings/keys"],
    ...["/api/v1/destinations", `/api/v1/destinations/${made.body.id}`, "/api/v1/whoami"],
  ];
  for (const path of paths) {
    const answer = await app.send("GET", path, { headers });
    expect([path, answer.status, JSON.stringify(answer.body).includes(email)]).toEqual([path, 200, false]);
  }
  expect((await app.send("GET", "/api/v1/destinations")).body[0].recipients).toEqual([email]);
});

test("no two organizations have names that look the same", () => {
  const { ctx } = testApp().service;
  createOrg(ctx, "OrgA  x");
  for (const twin of ["OrgA x\u200b", "Org\u00adA x", "\uff2f\uff52\uff47\uff21 x", "OrgA\u00a0x", "OrgA \u{e0041}x"])
    expect(() => createOrg(ctx, twin)).toThrow(AppError);
  // A letter of Cyrillic, Greek or mathematics in place of a Latin one, and a digit or bar in place of a letter.
  for (const [name, twin] of [
    ["Acme", "\u0410cme"],
    ["Copper", "\u0421\u043e\u0440\u0440\u0435r"],
    ["Bolt", "\u0392olt"],
    ["Iota", "lota"],
    ["Zenith", "\u{1d5b9}enith"],
  ] as const) {
    createOrg(ctx, name);
    expect(() => createOrg(ctx, twin)).toThrow(AppError);
  }
  for (const invisible of ["\u202eAgrO", "\u200b", "a\u2028b", "\u2066x"])
    expect(() => createOrg(ctx, invisible)).toThrow("Invalid name");
  // Emoji of several characters, and other writing systems, are fine.
  for (const name of ["\u{1f468}\u200d\u{1f469} Team", "\u5f00\u53d1", "\u05d0\u05d1"])
    expect(createOrg(ctx, name).name).toBe(name);
});

describe("an invitation", () => {
  test("says who invited you to what, and as what", async () => {
    const app = testApp();
    const owner = await signedIn(app);
    for (const role of ["owner", "admin", "member", "viewer"]) {
      const { body } = await browse(app).get(await inviteLink(owner, `${role}@example.com`, role));
      const article = role === "owner" || role === "admin" ? "an" : "a";
      expect(body).toContain(`A owner invited you to A as ${article} ${role}.`);
    }
  });

  test("makes a new person a member, once", async () => {
    const app = testApp();
    const owner = await signedIn(app);
    const link = await inviteLink(owner, "Bea@Example.com", "admin");
    const bea = browse(app);
    expect((await bea.get(link)).body).toContain('value="bea@example.com"');
    // The email address is the invitation's, whatever a form contains.
    const joined = await bea.post(link, { name: "Bea", password, email: "eve@example.com" });
    expect([joined.status, joined.location]).toEqual([303, "/"]);
    expect((await bea.get("/")).body).toContain('<p class="org">A</p>');
    expect(rolesOf(app)).toEqual([
      [owner.email, "owner"],
      ["bea@example.com", "admin"],
    ]);
    const again = await browse(app).post(link, { name: "Eve", password: "another password" });
    expect(again.status).toBe(404);
    expect((await owner.get("/settings/members")).body).not.toContain("/invite/");
  });

  test("adds an existing person, by password or when signed in, and nobody else", async () => {
    const app = testApp();
    const [owner, bea, cy] = [
      await signedIn(app),
      await signedIn(app, { org: app.b.org }),
      await signedIn(app, { org: app.b.org }),
    ];
    const link = await inviteLink(owner, bea.email);
    expect((await browse(app).get(link)).body).toContain('autocomplete="current-password"');
    expect((await browse(app).post(link, { password: "not the password" })).status).toBe(401);
    const wrong = await cy.post(link);
    expect([wrong.status, wrong.body.includes(cy.email)]).toEqual([409, true]);
    expect((await bea.post(link)).status).toBe(303);
    expect((await bea.get("/")).body).toContain("<summary>A</summary>");
    expect((await browse(app).post(await inviteLink(owner, cy.email), { password })).status).toBe(303);
    expect(
      rolesOf(app)
        .map(([email]) => email)
        .sort(),
    ).toEqual([owner.email, bea.email, cy.email].sort());
    const invalid = await owner.post("/settings/members/invite", { email: "no address", role: "member" });
    expect([invalid.status, /role="alert">([^<]*)/.exec(invalid.body)?.[1]]).toEqual([
      400,
      expect.stringContaining("no address"),
    ]);
    const known = await owner.post("/settings/members/invite", { email: bea.email, role: "owner" });
    expect(known.status).toBe(409);
  });

  test("is invalid once it is revoked, replaced, expired or modified", async () => {
    let at = Date.now();
    const app = testApp({ now: () => at });
    const owner = await signedIn(app);
    const refused = async (link: string) => {
      for (const answer of [await browse(app).get(link), await browse(app).post(link, { name: "Bea", password })])
        expect(answer.status).toBe(404);
    };
    const first = await inviteLink(owner, "bea@example.com");
    const second = await inviteLink(owner, "bea@example.com", "admin");
    await refused(first);
    await refused(`${second.slice(0, -2)}xx`);
    const [waiting] = listInvitations(app.service.ctx, app.a.org);
    expect(
      (await owner.post("/settings/members/revoke", { invitation: waiting?.id ?? "", confirmed: "1" })).status,
    ).toBe(303);
    await refused(second);
    expect(
      (await owner.post("/settings/members/revoke", { invitation: waiting?.id ?? "", confirmed: "1" })).status,
    ).toBe(404);
    const third = await inviteLink(owner, "bea@example.com");
    expect((await browse(app).get(third)).status).toBe(200);
    at += 8 * 24 * 3600_000;
    await refused(third);
  });

  test.each([
    { email: "bea", role: "member" },
    { email: "bea@example.com", role: "boss" },
  ])("to %j is rejected", async (form) => {
    const answer = await (await signedIn(testApp())).post("/settings/members/invite", form);
    expect([answer.status, answer.body.includes('role="alert"')]).toEqual([400, true]);
  });
});

describe("members", () => {
  test("are affected by a role change or a removal from the next request on", async () => {
    const app = testApp();
    const [owner, bea] = [await signedIn(app), await signedIn(app, { role: "member" })];
    const invite = () => bea.post("/settings/members/invite", { email: "cy@example.com", role: "member" });
    expect((await invite()).status).toBe(403);
    await owner.post("/settings/members/role", { member: memberId(app, bea.email), role: "owner" });
    expect((await invite()).status).toBe(303);
    await owner.post("/settings/members/change", { member: memberId(app, bea.email), do: "remove", confirmed: "1" });
    const after = await bea.get("/settings/members");
    expect(after.status).toBe(403);
    expect((await bea.get("/account")).status).toBe(200);
  });

  test("always include an owner, even if two step down at the same time", async () => {
    const app = testApp();
    const [ada, bea] = [await signedIn(app), await signedIn(app)];
    const down = (who: Browser, whose: Browser) =>
      who.post("/settings/members/role", { member: memberId(app, whose.email), role: "member" });
    const [one, two] = await Promise.all([down(ada, ada), down(bea, bea)]);
    expect([one?.status, two?.status].sort()).toEqual([303, 409]);
    const last = one?.status === 409 ? ada : bea;
    // Nobody is asked to confirm what would be refused.
    for (const [path, form] of [
      ["/account/leave", { org: app.a.org }],
      ["/settings/members/change", { member: memberId(app, last.email), do: "remove" }],
    ] as const)
      expect([path, (await last.post(path, form)).status]).toEqual([path, 409]);
    expect((await last.get("/account")).body).not.toContain('action="/account/leave"');
    expect((await last.get("/settings/members")).body.match(/value="remove"/g)).toHaveLength(1);
    for (const answer of [
      await down(last, last),
      await last.post("/settings/members/change", { member: memberId(app, last.email), do: "remove", confirmed: "1" }),
      await last.post("/account/leave", { org: app.a.org, confirmed: "1" }),
    ])
      expect([answer.status, answer.body.includes('role="alert"')]).toEqual([409, true]);
    expect(rolesOf(app).filter(([, role]) => role === "owner").length).toBe(1);
  });

  test("can leave, and switch between their organizations", async () => {
    const app = testApp();
    await signedIn(app);
    const bea = await signedIn(app, { role: "member" });
    join(app, app.b.org, "owner", bea.email);
    const shown = async () => /<summary>(.)<\/summary>/.exec((await bea.get("/")).body)?.[1];
    expect(await shown()).toBe("A");
    expect((await bea.post("/account/organization", { org: app.b.org })).status).toBe(303);
    expect(await shown()).toBe("B");
    expect((await bea.post("/account/organization", { org: crypto.randomUUID() })).status).toBe(404);
    expect((await bea.post("/account/leave", { org: app.a.org, confirmed: "1" })).location).toBe("/account?done=left");
    expect((await bea.get("/")).body).toContain('<p class="org">B</p>');
    const cy = await signedIn(app, { role: "member" });
    await cy.post("/account/leave", { org: app.a.org, confirmed: "1" });
    const { status, body } = await cy.get("/prompts");
    expect([status, body.includes('href="/account"'), body.includes('href="/sign-in"')]).toEqual([403, true, false]);
  });
});

describe("an account", () => {
  test("has a name and a password to change, which ends all other sessions", async () => {
    const app = testApp();
    const ada = await signedIn(app);
    const elsewhere = browse(app);
    await elsewhere.post(
      "/sign-in",
      { email: ada.email, password },
      { "user-agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0" },
    );
    expect((await ada.get("/account")).body).toContain("Firefox on Linux");
    await ada.post("/account/name", { name: "Ada Lovelace" });
    expect((await ada.get("/account")).body).toContain('value="Ada Lovelace"');
    const wrong = await ada.post("/account/password", { currentPassword: "not it", newPassword: "another password" });
    expect([wrong.status, wrong.body.includes('role="alert"')]).toEqual([400, true]);
    const short = await ada.post("/account/password", { currentPassword: password, newPassword: "short" });
    expect([short.status, short.body.includes('role="alert"')]).toEqual([400, true]);
    expect(
      (await ada.post("/account/password", { currentPassword: password, newPassword: "another password" })).location,
    ).toBe("/account?done=password");
    expect((await ada.get("/account")).status).toBe(200);
    expect((await elsewhere.get("/account")).location).toBe("/sign-in?next=%2Faccount");
    expect((await browse(app).post("/sign-in", { email: ada.email, password })).status).toBe(401);
    expect((await browse(app).post("/sign-in", { email: ada.email, password: "another password" })).status).toBe(303);
  });

  test("can end its own sessions, one or all others, and nobody else's", async () => {
    const app = testApp();
    const [ada, bea] = [await signedIn(app), await signedIn(app)];
    const others = [browse(app), browse(app)];
    for (const other of others) await other.post("/sign-in", { email: ada.email, password });
    const ids = async (who: Browser) =>
      [...(await who.get("/account")).body.matchAll(/name="signIn" value="([^"]+)"/g)].map(([, id]) => id ?? "");
    const own = await ids(ada);
    expect(own.length).toBe(2);
    await bea.post("/account/end", { signIn: own[0] ?? "" });
    expect((await ids(ada)).length).toBe(2);
    await ada.post("/account/end", { signIn: own[0] ?? "" });
    expect(await ids(ada)).toEqual([own[1] ?? ""]);
    await ada.post("/account/end");
    expect([await ids(ada), (await others[0]?.get("/account"))?.status, (await bea.get("/account")).status]).toEqual([
      [],
      303,
      200,
    ]);
  });

  test("can create an organization only if the operator allows it", async () => {
    const closed = await signedIn(testApp());
    expect((await closed.get("/account")).body).not.toContain("/account/create-organization");
    expect((await closed.post("/account/create-organization", { orgName: "Mine" })).status).toBe(403);
    const open = await signedIn(testApp({ env: { EVALD_PEOPLE_MAKE_ORGS: "1" } }), { role: "member" });
    expect((await open.post("/account/create-organization", { orgName: "Mine" })).location).toBe("/");
    expect((await open.get("/")).body).toContain("<summary>Mine</summary>");
    expect((await open.post("/settings/members/invite", { email: "bea@example.com", role: "member" })).status).toBe(
      303,
    );
    expect((await open.post("/account/create-organization", { orgName: "Mine" })).status).toBe(409);
  });
});

describe("a password reset", () => {
  const linkIn = (body: string) => /<code>http:\/\/localhost:3000(\/reset\/[^<]+)<\/code>/.exec(body)?.[1] ?? "";

  test("works once with an owner's link, and ends every session", async () => {
    let at = Date.now();
    const app = testApp({ now: () => at });
    const [owner, bea] = [await signedIn(app), await signedIn(app, { role: "member" })];
    const ask = async () =>
      linkIn((await owner.post("/settings/members/change", { member: memberId(app, bea.email), do: "reset" })).body);
    const [link, unused] = [await ask(), await ask()];
    const fresh = browse(app);
    expect((await fresh.get(link)).body).toContain(bea.email);
    expect((await fresh.post(link, { password: "short" })).status).toBe(400);
    expect((await fresh.post(link, { password: "another password" })).location).toBe("/");
    expect((await fresh.get("/account")).status).toBe(200);
    expect((await bea.get("/account")).status).toBe(303);
    for (const used of [link, unused])
      expect((await browse(app).post(used, { password: "a third password" })).status).toBe(404);
    const late = await ask();
    at += 24 * 3600_000;
    expect((await browse(app).get(late)).status).toBe(404);
  });

  test("doesn't grant access to an organization that the sender doesn't own", async () => {
    const app = testApp();
    const [owner, bea] = [await signedIn(app), await signedIn(app, { org: app.b.org })];
    await bea.post(await inviteLink(owner, bea.email));
    const { status, body } = await owner.post("/settings/members/change", {
      member: memberId(app, bea.email),
      do: "reset",
    });
    expect([status, linkIn(body)]).toEqual([409, ""]);
  });

  test("fails with a link from before the person joined another organization or its creator lost their role", async () => {
    const app = testApp();
    const [owner, other] = [await signedIn(app), await signedIn(app)];
    const [joins, stays] = [await signedIn(app, { role: "member" }), await signedIn(app, { role: "member" })];
    const linkFor = async (email: string) =>
      linkIn((await owner.post("/settings/members/change", { member: memberId(app, email), do: "reset" })).body);
    const links = [await linkFor(joins.email), await linkFor(stays.email)];
    const boss = await signedIn(app, { org: app.b.org });
    await boss.post("/settings/members/invite", { email: joins.email, role: "owner" });
    const invitation = listInvitations(app.service.ctx, app.b.org)[0]?.path ?? "";
    expect((await joins.post(invitation)).location).toBe("/");
    await other.post("/settings/members/role", { member: memberId(app, owner.email), role: "admin" });
    for (const link of links) expect((await browse(app).post(link, { password: "a third password" })).status).toBe(404);
    expect((await joins.get("/account")).status).toBe(200);
  });
});

describe("sign-in attempts", () => {
  test("block the account after failures, in a new process too, even with the right password", async () => {
    let at = Date.now();
    const app = testApp({ now: () => at, env: { EVALD_TRUST_PROXY: "1" } });
    const { email } = await signedIn(app);
    const tryIt = (word: string, from = "203.0.113.7") =>
      browse(app).post("/sign-in", { email, password: word }, { "x-forwarded-for": from });
    const tries = await Promise.all(Array.from({ length: 12 }, (_, i) => tryIt("wrong password", `203.0.113.${i}`)));
    expect(tries.map(({ status }) => status).sort()).toEqual([...Array(10).fill(401), 429, 429]);
    const refused = await tryIt(password);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "900"]);
    at += 15 * 60_000 + 1;
    expect((await tryIt(password)).status).toBe(303);
    expect(app.db.$client.query("select count(*) as n from sign_in_failures").get()).toEqual({ n: 1 });
  });

  test("are limited per network, whichever accounts they are for", async () => {
    const app = testApp({ env: { EVALD_TRUST_PROXY: "1" } });
    const attempts = (from: string, i: number) =>
      browse(app).post("/sign-in", { email: `a${i}@example.com`, password: "x" }, { "x-forwarded-for": from });
    const statuses = await Promise.all(Array.from({ length: 52 }, (_, i) => attempts(`2001:db8:0:1::${i + 1}`, i)));
    expect(statuses.filter(({ status }) => status === 429).length).toBe(2);
    expect((await attempts("2001:db8:0:2::1", 99)).status).toBe(401);
  });

  test("are limited per account only, and X-Forwarded-For is ignored, unless a proxy is trusted", async () => {
    const app = testApp();
    const { email } = await signedIn(app);
    const attempt = (account: string, i: number) =>
      browse(app).post("/sign-in", { email: account, password: "x" }, { "x-forwarded-for": `203.0.113.${i}` });
    const own = await Promise.all(Array.from({ length: 12 }, (_, i) => attempt("eve@example.com", i)));
    expect(own.filter(({ status }) => status === 429).length).toBe(2);
    // More than fail on one network where addresses are trusted, but never as many as may wait for their turn.
    const attempts = (from: number) =>
      Promise.all(Array.from({ length: 30 }, (_, i) => attempt(`a${from + i}@example.com`, 1)));
    const others = [...(await attempts(0)), ...(await attempts(30))];
    expect(others.filter(({ status }) => status === 429).length).toBe(0);
    expect((await browse(app).post("/sign-in", { email, password })).status).toBe(303);
  });

  test.each(["0", "1"])("from a public peer are limited, whatever X-Forwarded-For says: %s", async (trust) => {
    const { app } = testApp({ env: { EVALD_TRUST_PROXY: trust } });
    const origin = "http://localhost:3000";
    const attempt = (i: number) => {
      const headers = {
        origin,
        "content-type": "application/x-www-form-urlencoded",
        "x-forwarded-for": `203.0.113.${i}`,
      };
      const body = `email=a${i}%40example.com&password=x`;
      return app.handle(new Request(`${origin}/sign-in`, { method: "POST", headers, body }), () => "198.51.100.7");
    };
    const answers = await Promise.all(Array.from({ length: 52 }, (_, i) => attempt(i)));
    expect(answers.filter(({ status }) => status === 429).length).toBe(2);
  });
});

test("expired sign-ins, failed attempts and used tokens are deleted, and nothing else", async () => {
  const dayMs = 24 * 3600_000;
  let at = Date.now();
  const app = testApp({ now: () => at });
  const { email } = await signedIn(app);
  const minutes = (count: number) => at + count * 60_000;
  await browse(app).post("/sign-in", { email, password: "x" });
  const used = app.db.$client.prepare("insert into used_tokens (issuer, jti, expires_at) values ('ci', ?, ?)");
  used.run("old", minutes(0));
  used.run("new", minutes(20));
  const kept = () =>
    ["sign_ins", "sign_in_failures", "used_tokens"].map(
      (table) => app.db.$client.query<{ n: number }, []>(`select count(*) n from ${table}`).get()?.n,
    );
  const after = async (ms: number) => {
    at += ms;
    await app.service.upkeep.runOnce();
    return kept();
  };
  expect(await after(15 * 60_000)).toEqual([1, 1, 2]);
  expect(await after(1)).toEqual([1, 0, 1]);
  const { email: later } = await signedIn(app);
  const left = findPerson(app.service.ctx, later)?.id ?? "none";
  // The time of last use is set as if they had been used since.
  app.db.$client.run("update sign_ins set expires_at = expires_at + ? where person_id = ?", [dayMs, left]);
  expect(await after(30 * dayMs)).toEqual([1, 0, 0]);
  expect(app.db.$client.query("select person_id from sign_ins").all()).toEqual([{ person_id: left }]);
});

describe("API keys of people who leave", () => {
  const app = testApp();
  const { service, a, send } = app;
  const ada = "ada@example.com";

  /** A member with an active, an expired and a revoked key, and an owner with a key. */
  async function withKeys(email: string) {
    const owner = await signedIn(app);
    const member = await signedIn(app, { role: "admin", email });
    const { id: personId = "" } = findPerson(service.ctx, email) ?? {};
    const create = (name: string, options: object = {}) =>
      createKey(service.ctx, a.org, name, { ...options, createdBy: personId });
    const active = create(`active of ${email}`);
    create(`expired of ${email}`, { lifeMs: -1 });
    await owner.post("/settings/keys", { name: `kept beside ${email}`, scopes: "read", days: "" });
    return { owner, member, personId, active };
  }
  const statusWith = async (key: string) =>
    (await send("GET", "/api/v1/whoami", { headers: { authorization: `Bearer ${key}` } })).status;
  const remove = (memberId: string, more: object = {}) => ({ member: memberId, do: "remove", ...more });

  test("are named with their creator in REST and on the page, and can be filtered", async () => {
    const { owner, personId, active } = await withKeys(ada);
    const { body, headers } = await send("GET", `/api/v1/keys?createdBy=${personId}`);
    expect(body.map((key: { name: string; createdBy: object }) => [key.name, key.createdBy])).toEqual([
      [`expired of ${ada}`, { id: personId, name: "A admin", isMember: true }],
      [`active of ${ada}`, { id: personId, name: "A admin", isMember: true }],
    ]);
    expect(headers.get("x-total-count")).toBe("2");
    expect(JSON.stringify(body)).not.toContain(active.key);
    const all = (await send("GET", "/api/v1/keys")).body;
    expect(all.find(({ name }: { name: string }) => name === "test")).toMatchObject({ createdBy: null, trustId: null });
    expect((await send("GET", "/api/v1/keys?limit=1")).body.length).toBe(1);
    const rows = async (query: string) =>
      [...(await owner.get(`/settings/keys${query}`)).body.matchAll(/<th scope="row">([^<]+)/g)].map(
        ([, name]) => name,
      );
    expect((await rows(`?createdBy=${personId}`)).length).toBe(2);
    expect((await rows("")).length).toBe(all.length);
    expect((await rows("?sort=creator"))[0]).toContain("of ada");
  });

  test("are listed when a member is removed, kept unless asked, and marked afterwards", async () => {
    const email = "bo@example.com";
    const { owner, personId, active } = await withKeys(email);
    const id = memberId(app, email);
    const { body } = await owner.post("/settings/members/change", remove(id));
    expect(body).toContain(`active of ${email} (${active.apiKey.display})`);
    expect(body).toContain('name="revokeKeys"');
    expect(body).not.toContain(`expired of ${email}`);
    await owner.post("/settings/members/change", remove(id, { confirmed: "1" }));
    expect(memberId(app, email)).toBe("none");
    expect(await statusWith(active.key)).toBe(200);
    const [key] = (await send("GET", `/api/v1/keys?createdBy=${personId}`)).body;
    expect(key.createdBy).toEqual({ id: personId, name: "A admin", isMember: false });
    expect((await owner.get("/settings/keys")).body).toContain(`data-creator="${personId}" data-left="true"`);
  });

  test("are revoked with the removal if asked, and no others", async () => {
    const email = "cy@example.com";
    const { owner, active } = await withKeys(email);
    const other = createKey(service.ctx, app.b.org, "other", { createdBy: findPerson(service.ctx, email)?.id });
    expect(await statusWith(active.key)).toBe(200);
    const before = listKeys(service.ctx, a.org).filter(({ revokedAt }) => revokedAt === null);
    await owner.post("/settings/members/change", remove(memberId(app, email), { confirmed: "1", revokeKeys: "1" }));
    expect(await statusWith(active.key)).toBe(401);
    expect(await statusWith(other.key)).toBe(200);
    const kept = listKeys(service.ctx, a.org).filter(({ revokedAt }) => revokedAt === null);
    expect(before.filter(({ id }) => !kept.some((key) => key.id === id)).map(({ name }) => name)).toEqual([
      `expired of ${email}`,
      `active of ${email}`,
    ]);
  });

  test("are revoked by the person who leaves if asked", async () => {
    const email = "di@example.com";
    const { member, active } = await withKeys(email);
    const { body } = await member.post("/account/leave", { org: a.org });
    expect([body.includes(active.apiKey.display), body.includes('name="revokeKeys"')]).toEqual([true, true]);
    await member.post("/account/leave", { org: a.org, confirmed: "1", revokeKeys: "1" });
    expect([memberId(app, email), await statusWith(active.key)]).toEqual(["none", 401]);
    // Without keys, there is nothing to ask about.
    const free = await signedIn(app, { role: "member" });
    expect((await free.post("/account/leave", { org: a.org })).body).not.toContain("revokeKeys");
  });
});
