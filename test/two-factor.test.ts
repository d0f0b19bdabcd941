import { afterEach, describe, expect, setSystemTime, test } from "bun:test";
import { resetTwoFactor } from "../src/auth/two-factor.ts";
import { testApp } from "./support/app.ts";
import { browse, password, signedIn } from "./support/people.ts";
import { startSmtp } from "./support/smtp.ts";
import { fromBase32, totp } from "./support/totp.ts";
import { until } from "./support/until.ts";

const startMs = Date.parse("2026-11-26T12:00:00Z");
const stepMs = 30_000;
let nowMs = startMs;
const moveTo = (ms: number) => {
  nowMs = ms;
  setSystemTime(ms);
};
afterEach(() => void setSystemTime());

type App = ReturnType<typeof testApp>;
type Browser = Awaited<ReturnType<typeof signedIn>>;

const uriOf = (body: string) => /name="uri" value="([^"]+)"/.exec(body)?.[1]?.replaceAll("&amp;", "&") ?? "";
const keyOf = (uri: string) => fromBase32(new URL(uri).searchParams.get("secret") ?? "");
const codesIn = (body: string): string[] => body.match(/\b[a-z2-9]{5}-[a-z2-9]{5}\b/g) ?? [];
const actionsOf = (app: App) =>
  app.db.$client
    .query<{ action: string }, []>("select action from audit_entries where action like 'two_factor%' order by id")
    .all()
    .map(({ action }) => action);

/** A person with two-factor sign-in: `codeAt` computes the code of a time. */
async function withTwoFactor(app: App, options: Parameters<typeof signedIn>[1] = {}) {
  const browser = await signedIn(app, options);
  const begun = await browser.post("/account/two-factor", { password });
  const uri = uriOf(begun.body);
  const key = keyOf(uri);
  const codeAt = (ms: number) => totp(key, ms);
  const confirmed = await browser.post("/account/two-factor/confirm", { uri, code: codeAt(nowMs) });
  expect(confirmed.status).toBe(200);
  moveTo(nowMs + stepMs);
  return { browser, email: browser.email, key, codeAt, backupCodes: [...new Set(codesIn(confirmed.body))] };
}

/** A new browser after the first step. */
async function afterPassword(app: App, email: string, next = "/account") {
  const browser = browse(app);
  const first = await browser.post("/sign-in", { email, password, next });
  expect([first.status, first.location]).toEqual([303, `/sign-in/code?next=${encodeURIComponent(next)}`]);
  return browser;
}
const isSignedIn = async (browser: Pick<Browser, "get">) => (await browser.get("/account")).status === 200;

test("the codes of this test are those of RFC 6238, appendix B", () => {
  const key = Buffer.from("12345678901234567890");
  const vectors: [number, string][] = [
    [59, "94287082"],
    [1111111109, "07081804"],
    [1111111111, "14050471"],
    [1234567890, "89005924"],
    [2000000000, "69279037"],
    [20000000000, "65353130"],
  ];
  expect(vectors.map(([seconds]) => totp(key, seconds * 1000, 8))).toEqual(vectors.map(([, code]) => code));
  expect(fromBase32("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")).toEqual(new Uint8Array(key));
});

describe("two-factor sign-in", () => {
  test("is set up with the password and a first code, shows backup codes once, and ends other sessions", async () => {
    moveTo(startMs);
    const app = testApp();
    const browser = await signedIn(app);
    const other = browse(app);
    await other.post("/sign-in", { email: browser.email, password });
    const refused = await browser.post("/account/two-factor", { password: "wrong password of Ada" });
    expect([refused.status, uriOf(refused.body)]).toEqual([400, ""]);
    const begun = await browser.post("/account/two-factor", { password });
    const uri = uriOf(begun.body);
    expect(uri).toStartWith("otpauth://totp/");
    expect([...new URL(uri).searchParams.keys()].sort()).toEqual(["digits", "issuer", "period", "secret"]);
    expect(begun.body).toContain('<svg class="qr-code"');
    // Nothing is on until a code confirms it.
    expect((await browse(app).post("/sign-in", { email: browser.email, password })).location).toBe("/");

    const code = totp(keyOf(uri), nowMs);
    const wrong = await browser.post("/account/two-factor/confirm", { uri, code: code === "000000" ? "1" : "000000" });
    expect([wrong.status, uriOf(wrong.body)]).toEqual([401, uri]);
    const confirmed = await browser.post("/account/two-factor/confirm", {
      uri,
      code: ` ${code.slice(0, 3)} ${code.slice(3)}`,
    });
    expect([confirmed.status, new Set(codesIn(confirmed.body)).size]).toEqual([200, 10]);
    expect(confirmed.body).toContain("download=");
    expect([await isSignedIn(browser), await isSignedIn(other)]).toEqual([true, false]);
    const { body } = await browser.get("/account");
    expect([body.includes("10 backup codes left"), codesIn(body)]).toEqual([true, []]);
    expect(actionsOf(app)).toEqual(["two_factor.enabled"]);
    // Neither the secret nor a backup code is in the database.
    const stored = JSON.stringify(app.db.$client.query("select * from two_factors").all());
    for (const secret of [
      new URL(uri).searchParams.get("secret") ?? "",
      Buffer.from(keyOf(uri)).toString(),
      ...codesIn(confirmed.body),
    ])
      expect(stored).not.toContain(secret);
  });

  test("asks for a code after the password, and returns to the page; without the code, nobody is signed in", async () => {
    moveTo(startMs);
    const app = testApp();
    const { email, codeAt } = await withTwoFactor(app);
    const browser = await afterPassword(app, email, "/prompts?q=a");
    expect(await isSignedIn(browser)).toBe(false);
    expect((await browser.get("/sign-in/code?next=%2Fprompts%3Fq%3Da")).status).toBe(200);
    const done = await browser.post("/sign-in/code", { code: codeAt(nowMs), next: "/prompts?q=a" });
    expect([done.status, done.location, await isSignedIn(browser)]).toEqual([303, "/prompts?q=a", true]);
    expect((await browser.get("/account")).body).toContain("Password and code");
    // Without the first step there is no second one.
    expect((await browse(app).get("/sign-in/code")).location).toBe("/sign-in");
    expect((await browse(app).post("/sign-in/code", { code: codeAt(nowMs) })).status).toBe(401);
  });

  test.each([
    [-2, 401],
    [-1, 303],
    [0, 303],
    [1, 303],
    [2, 401],
  ])("answers a code that is %i steps off with %i", async (steps, status) => {
    moveTo(startMs);
    const app = testApp();
    const { email, codeAt } = await withTwoFactor(app);
    moveTo(nowMs + 10 * stepMs);
    const browser = await afterPassword(app, email);
    expect((await browser.post("/sign-in/code", { code: codeAt(nowMs + steps * stepMs) })).status).toBe(status);
    expect(await isSignedIn(browser)).toBe(status === 303);
  });

  test("accepts each code once, also of concurrent requests and in other browsers, and no earlier one after it", async () => {
    moveTo(startMs);
    const app = testApp();
    const { email, codeAt } = await withTwoFactor(app);
    const [one, two, three] = [
      await afterPassword(app, email),
      await afterPassword(app, email),
      await afterPassword(app, email),
    ];
    const code = codeAt(nowMs);
    const answers = await Promise.all([one, two].map((browser) => browser.post("/sign-in/code", { code })));
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 401]);
    for (const used of [code, codeAt(nowMs - stepMs)])
      expect((await three.post("/sign-in/code", { code: used })).status).toBe(401);
    expect((await three.post("/sign-in/code", { code: codeAt(nowMs + stepMs) })).status).toBe(303);
  });

  test("accepts no more than 10 wrong codes in 15 minutes, whatever the password and the clock", async () => {
    moveTo(startMs);
    const app = testApp();
    const { email, codeAt } = await withTwoFactor(app);
    const statuses: number[] = [];
    for (let i = 0; i < 12; i++) {
      const browser = await afterPassword(app, email);
      const wrong = String((Number(codeAt(nowMs)) + 500_000) % 1_000_000).padStart(6, "0");
      statuses.push(
        (await browser.post("/sign-in/code", { code: i % 2 ? wrong : `aaaaa-${String(22222 + i)}` })).status,
      );
    }
    expect(statuses).toEqual([...Array(10).fill(401), 429, 429]);
    const browser = await afterPassword(app, email);
    const limited = await browser.post("/sign-in/code", { code: codeAt(nowMs) });
    expect([limited.status, Number(limited.headers.get("retry-after")) > 0]).toEqual([429, true]);
    // A clock that jumps proves no time.
    moveTo(nowMs + 24 * 3600_000);
    const later = await afterPassword(app, email);
    expect((await later.post("/sign-in/code", { code: codeAt(nowMs) })).status).toBe(429);
    moveTo(startMs + 16 * 60_000);
    const last = await afterPassword(app, email);
    expect((await last.post("/sign-in/code", { code: codeAt(nowMs) })).status).toBe(303);
  });

  test("accepts each backup code once, in any spelling, and none after they were replaced", async () => {
    moveTo(startMs);
    const app = testApp();
    const { browser, email, backupCodes } = await withTwoFactor(app);
    const [first = "", second = "", third = ""] = backupCodes;
    const use = async (code: string) =>
      (await (await afterPassword(app, email)).post("/sign-in/code", { code })).status;
    expect(await use(` ${first.toUpperCase().replace("-", " ")}`)).toBe(303);
    expect(await use(first)).toBe(401);
    const [one, two] = [await afterPassword(app, email), await afterPassword(app, email)];
    const both = await Promise.all([one, two].map((each) => each.post("/sign-in/code", { code: second })));
    expect(both.filter(({ status }) => status === 303).length).toBe(1);
    expect((await browser.get("/account")).body).toContain("8 backup codes left");
    expect((await browser.post("/account/two-factor/backup-codes", { password: "wrong" })).status).toBe(400);
    const renewed = codesIn((await browser.post("/account/two-factor/backup-codes", { password })).body);
    expect(new Set(renewed).size).toBe(10);
    expect([await use(third), await use(renewed[0] ?? "")]).toEqual([401, 303]);
    expect(actionsOf(app)).toEqual([
      ...["two_factor.enabled", "two_factor.backup_code_used", "two_factor.backup_code_used"],
      ...["two_factor.backup_codes_renewed", "two_factor.backup_code_used"],
    ]);
  });

  test("is turned off with the password, which ends started sign-ins", async () => {
    moveTo(startMs);
    const app = testApp();
    const { browser, email, codeAt } = await withTwoFactor(app);
    const started = await afterPassword(app, email);
    expect((await browser.post("/account/two-factor/disable", { password: "wrong" })).status).toBe(400);
    expect((await browser.post("/account/two-factor/disable", { password })).location).toBe(
      "/account?done=twoFactorOff",
    );
    expect(await isSignedIn(browser)).toBe(true);
    expect((await started.post("/sign-in/code", { code: codeAt(nowMs) })).status).toBe(401);
    expect((await browse(app).post("/sign-in", { email, password })).location).toBe("/");
    expect(actionsOf(app).at(-1)).toBe("two_factor.disabled");
  });

  test("a changed password ends other sessions and started sign-ins, and this session keeps its second factor", async () => {
    moveTo(startMs);
    const app = testApp();
    const { browser, email, codeAt } = await withTwoFactor(app);
    const started = await afterPassword(app, email);
    const changed = await browser.post("/account/password", {
      currentPassword: password,
      newPassword: "another horse battery staple",
    });
    expect(changed.status).toBe(303);
    expect((await started.post("/sign-in/code", { code: codeAt(nowMs) })).status).toBe(401);
    expect((await browser.get("/account")).body).toContain("Password and code");
  });

  test("belongs to the person who passed the first step, whoever is signed in", async () => {
    moveTo(startMs);
    const app = testApp();
    const ada = await withTwoFactor(app);
    const eve = await withTwoFactor(app);
    const started = await afterPassword(app, ada.email);
    const both = browse(app, `${eve.browser.cookie()}; ${started.cookie()}`);
    expect((await both.post("/sign-in/code", { code: eve.codeAt(nowMs) })).status).toBe(401);
    expect((await both.get("/account")).body).toContain(eve.email);
    expect((await both.post("/sign-in/code", { code: ada.codeAt(nowMs) })).status).toBe(303);
    expect((await both.get("/account")).body).toContain(ada.email);
  });

  test("is reset by the operator, who signs the person out", async () => {
    moveTo(startMs);
    const app = testApp();
    const { browser, email } = await withTwoFactor(app);
    resetTwoFactor(app.service.ctx, email.toUpperCase());
    expect(await isSignedIn(browser)).toBe(false);
    expect((await browse(app).post("/sign-in", { email, password })).location).toBe("/");
    expect(actionsOf(app).at(-1)).toBe("two_factor.reset");
    expect(() => resetTwoFactor(app.service.ctx, "nobody@example.com")).toThrow("nobody@example.com");
  });
});

test("an email says when a second factor was added or removed", async () => {
  setSystemTime();
  nowMs = Date.now();
  const smtp = startSmtp();
  const app = testApp({ env: { EVALD_SMTP_URL: smtp.url, EVALD_MAIL_FROM: "evald <evald@example.com>" } });
  const { browser, email } = await withTwoFactor(app);
  await browser.post("/account/two-factor/disable", { password });
  await until("both emails", () => smtp.mails.length === 2);
  expect(smtp.mails.map(({ to }) => to)).toEqual([email, email]);
  smtp.close();
});
