import { expect, test } from "bun:test";
import { listInvitations } from "../src/auth/invitations.ts";
import { testApp } from "./support/app.ts";
import { browse, password, signedIn } from "./support/people.ts";
import { startSmtp } from "./support/smtp.ts";

const appWith = (url: string) =>
  testApp({ env: { EVALD_SMTP_URL: url, EVALD_MAIL_FROM: "evald <evald@example.com>" } });
const invite = async (app: ReturnType<typeof testApp>) => {
  const owner = await signedIn(app);
  const { location } = await owner.post("/settings/members/invite", { email: "bea@example.com", role: "member" });
  return { location, body: (await owner.get(location ?? "")).body as string };
};

test("an invitation is emailed, and its link can still be copied", async () => {
  const smtp = startSmtp();
  const app = appWith(smtp.url);
  const { location, body } = await invite(app);
  const path = listInvitations(app.service.ctx, app.a.org)[0]?.path ?? "";
  expect([location, body.includes('role="status"')]).toEqual(["/settings/members?done=mailed", true]);
  expect(body).toContain(`http://localhost:3000${path}`);
  const { to, text } = await smtp.first();
  expect(to).toBe("bea@example.com");
  expect(text).toContain("Subject: A owner invited you to A on evald\n");
  // The page never shows the link in the email.
  const mailed = /http:\/\/localhost:3000(\/invite\/\S+)/.exec(text)?.[1] ?? "";
  expect(body).not.toContain(mailed);
  await browse(app).post(mailed, { name: "Bea", password });
  const known = app.db.$client.query("select email_verified from people where email = 'bea@example.com'");
  expect(known.get()).toEqual({ email_verified: 1 });
  smtp.close();
});

test.each(["refuses", "is not there"])("a mail server that %s is reported; the link can be copied", async (how) => {
  const smtp = startSmtp({ refuses: true });
  if (how === "is not there") smtp.close();
  const { location, body } = await invite(appWith(smtp.url));
  expect(location).toBe("/settings/members?done=unmailed");
  expect(body).toContain("<code>http://localhost:3000/invite/");
  smtp.close();
});

test("a forgotten password sends an email to a known address, gives everyone the same response, and is limited to ten", async () => {
  const smtp = startSmtp();
  const app = appWith(smtp.url);
  const { email } = await signedIn(app);
  const ask = async (address: string) => browse(app).post("/sign-in/forgotten", { email: address });
  expect((await browse(app).get("/sign-in")).body).toContain('href="/sign-in/forgotten"');
  const unknown = await ask("nobody@example.com");
  const known = await ask(email);
  expect([known.status, known.body]).toEqual([200, unknown.body.replace("nobody@example.com", email)]);
  const { to, text } = await smtp.first();
  expect(to).toBe(email);
  const path = /http:\/\/localhost:3000(\/reset\/\S+)/.exec(text)?.[1] ?? "";
  const fresh = browse(app);
  expect((await fresh.post(path, { password: "another password" })).location).toBe("/");
  expect(smtp.mails.length).toBe(1);
  for (let i = 1; i < 10; i++) await ask("nobody@example.com");
  expect((await ask("nobody@example.com")).status).toBe(429);
  smtp.close();
});

test("no page promises email without a mail server", async () => {
  const browser = browse(testApp());
  expect((await browser.get("/sign-in")).body).not.toContain("/sign-in/forgotten");
  expect((await browser.get("/sign-in/forgotten")).status).toBe(404);
  expect((await browser.post("/sign-in/forgotten", { email: "ada@example.com" })).status).toBe(404);
});

test("a person changes their email address with a link that is mailed to the new one, which works once and for them alone", async () => {
  const smtp = startSmtp();
  const app = appWith(smtp.url);
  const browser = await signedIn(app, { email: "ada@example.com" });
  const other = await signedIn(app, { email: "eve@example.com" });
  const taken = await browser.post("/account/email", { email: "eve@example.com" });
  expect([taken.status, smtp.mails.length]).toEqual([409, 0]);
  const asked = await browser.post("/account/email", { email: " Ada@Example.org " });
  expect([asked.status, asked.location]).toEqual([303, "/account?done=mailed"]);
  const { to, text } = await smtp.first();
  expect(to).toBe("ada@example.org");
  const path = /http:\/\/localhost:3000(\/account\/email\/\S+)/.exec(text)?.[1] ?? "";
  const addresses = () => app.db.$client.query("select email, email_verified from people order by email").values();
  expect((await other.post(path, { confirmed: "1" })).status).toBe(404);
  // Opening the link asks, because mail scanners open links too.
  expect((await browser.get(path)).body).toContain("ada@example.org");
  expect(addresses()).toEqual([
    ["ada@example.com", 1],
    ["eve@example.com", 1],
  ]);
  expect((await browser.post(path, { confirmed: "1" })).location).toBe("/account?done=email");
  expect(addresses()).toEqual([
    ["ada@example.org", 1],
    ["eve@example.com", 1],
  ]);
  expect((await browser.post(path, { confirmed: "1" })).status).toBe(404);
  const signIn = (email: string) => browse(app).post("/sign-in", { email, password });
  expect([(await signIn("ada@example.com")).status, (await signIn("ada@example.org")).location]).toEqual([401, "/"]);
  const actions = app.db.$client.query("select action from audit_entries where action like 'account.email%'").values();
  expect(actions).toEqual([["account.email_changed"]]);
  smtp.close();
});
