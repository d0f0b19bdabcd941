import { afterAll, expect, test } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { testApp } from "../support/app.ts";
import { barriersOf, complaintsOf, openBrowser } from "../support/browser.ts";
import { password, signedIn } from "../support/people.ts";
import { fromBase32, totp } from "../support/totp.ts";

const browser = await openBrowser();
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => app.app.handle(request) });
// Browsers allow passkeys on localhost, not on addresses.
const origin = `http://localhost:${server.port}`;
const app = testApp({ env: { EVALD_BASE_URL: origin } });
afterAll(async () => {
  await browser.close();
  server.stop(true);
});

/** A device that has passkeys. `isUserVerified`: whether it asks for a PIN, a face or a fingerprint, and gets it. */
async function addDevice(context: BrowserContext, page: Page, isUserVerified = true) {
  const session = await context.newCDPSession(page);
  await session.send("WebAuthn.enable");
  const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      ...{ protocol: "ctap2", transport: "internal", hasResidentKey: true, automaticPresenceSimulation: true },
      ...{ hasUserVerification: true, isUserVerified },
    },
  });
  const credentialsOf = async () => (await session.send("WebAuthn.getCredentials", { authenticatorId })).credentials;
  const setVerified = (isUserVerified: boolean) =>
    session.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified });
  return { credentialsOf, setVerified };
}

async function openAs(cookie: string) {
  const context = await browser.newContext({ baseURL: origin });
  const [name = "", ...value] = cookie.split("=");
  if (cookie) await context.addCookies([{ name, value: value.join("="), url: origin }]);
  const page = await context.newPage();
  return { context, page, complaints: complaintsOf(page) };
}

const methodsOf = (email: string) =>
  app.db.$client
    .query<{ method: string }, [string]>(
      "select method from sign_ins join people on people.id = person_id where email = ? order by sign_ins.id",
    )
    .all(email)
    .map(({ method }) => method);

async function addPasskey(page: Page, name: string, typed = password) {
  await page.goto("/account");
  await page.fill("#passkey-name", name);
  await page.fill("#passkey-password", typed);
  await page.click("text=Add passkey");
}

test("a passkey is added with the password, signs in, and no longer does once it is removed", async () => {
  const { cookie, email } = await signedIn(app);
  const { context, page, complaints } = await openAs(cookie());
  const device = await addDevice(context, page);
  await addPasskey(page, "My laptop", "not the password of Ada");
  await page.waitForSelector("#passkeys form .notice.bad");
  expect(await device.credentialsOf()).toEqual([]);
  complaints.length = 0;

  await addPasskey(page, "My laptop");
  await page.waitForURL("**/account?done=passkeyAdded");
  expect((await device.credentialsOf()).length).toBe(1);
  expect(await page.textContent("#passkeys .rows")).toContain("My laptop");
  // The session counts as one with a passkey.
  expect(methodsOf(email)).toEqual(["passkey"]);

  await page.click("header >> text=Sign out");
  await page.waitForURL("**/sign-in");
  expect(await barriersOf(page)).toEqual([]);
  await page.goto("/sign-in?next=/prompts");
  await page.click("text=Sign in with a passkey");
  await page.waitForURL(`${origin}/prompts`);
  expect(methodsOf(email)).toEqual(["passkey"]);

  await page.goto("/account");
  expect(await barriersOf(page)).toEqual([]);
  await page.click('#passkeys button:has-text("Remove")');
  await page.click('main button:has-text("Remove passkey")');
  await page.waitForURL("**/account?done=passkeyRemoved");
  await page.click("header >> text=Sign out");
  await page.waitForURL("**/sign-in");
  await page.click("text=Sign in with a passkey");
  await page.waitForURL("**/sign-in/passkey");
  expect(await page.textContent("main")).toContain("not registered");
  const actions = app.db.$client
    .query<{ action: string }, []>("select action from audit_entries where action like 'passkey%' order by id")
    .all();
  expect(actions.map(({ action }) => action)).toEqual(["passkey.added", "passkey.removed"]);
  expect(complaints.filter((each) => !each.includes("401"))).toEqual([]);
  await context.close();
}, 60_000);

test("a device that doesn't verify its user neither adds a passkey nor signs in with one", async () => {
  const { cookie, email } = await signedIn(app);
  const { context, page } = await openAs(cookie());
  const device = await addDevice(context, page, false);
  await addPasskey(page, "Stolen key");
  await page.waitForSelector("#passkeys form .notice.bad");
  await device.setVerified(true);
  await addPasskey(page, "My key");
  await page.waitForURL("**/account?done=passkeyAdded");
  await page.click("header >> text=Sign out");
  await page.waitForURL("**/sign-in");
  // A device that answers without verification, whatever the page asks for.
  await page.evaluate(() => {
    const { get } = navigator.credentials;
    navigator.credentials.get = (options) => {
      if (options?.publicKey) options.publicKey.userVerification = "discouraged";
      return get.call(navigator.credentials, options);
    };
  });
  await device.setVerified(false);
  await page.click("text=Sign in with a passkey");
  await page.waitForURL("**/sign-in/passkey");
  expect((await page.goto("/account"))?.url()).toContain("/sign-in");
  expect(methodsOf(email)).toEqual([]);
  await context.close();
}, 60_000);

test("setting up an authenticator app works by its QR code and without a script, and every page is accessible", async () => {
  const { cookie, email } = await signedIn(app);
  const context = await browser.newContext({ baseURL: origin, javaScriptEnabled: false });
  const [name = "", ...value] = cookie().split("=");
  await context.addCookies([{ name, value: value.join("="), url: origin }]);
  const page = await context.newPage();
  await page.goto("/account");
  expect(await page.textContent("#passkeys noscript")).toContain("JavaScript");
  await page.fill("#on-password", password);
  await page.click("text=Turn on two-factor sign-in");
  const secret = ((await page.textContent("#secret")) ?? "").replaceAll(" ", "");
  await page.fill("#code", totp(fromBase32(secret), Date.now()));
  await page.click("text=Turn on two-factor sign-in");
  const code = ((await page.textContent("#codes")) ?? "").split("\n")[0] ?? "";
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Download")]);
  expect(download.suggestedFilename()).toBe("evald-backup-codes.txt");

  await page.goto("/account");
  await page.click("header >> text=Sign out");
  await page.fill("#email", email);
  await page.fill("#password", password);
  await page.click('button:has-text("Sign in")');
  await page.fill("#code", code);
  await page.click('button:has-text("Sign in")');
  expect((await page.goto("/account"))?.url()).toBe(`${origin}/account`);
  expect(methodsOf(email)).toEqual(["password_and_code"]);
  await context.close();
}, 60_000);
