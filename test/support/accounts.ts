import { expect } from "bun:test";
import { listMembers } from "../../src/auth/members.ts";
import { updateOrg } from "../../src/auth/orgs.ts";
import { findPerson } from "../../src/auth/people.ts";
import { testApp } from "./app.ts";
import { startOidc } from "./oidc.ts";
import { browse, signedIn } from "./people.ts";
import { startSmtp } from "./smtp.ts";

// Eve owns the organization A. Ada owns B, of the domain victim.example. Cy holds the address cy@victim.example: its emails and its
// account at the identity provider are his. Eve knows every link that a page of A shows and every password that she set. Whatever the
// three do, in any order, none of Eve's browsers ever sees B.

const email = "cy@victim.example";
const cysPassword = "the password of Cy";
const evesPassword = "the password of Eve";
let provider: ReturnType<typeof startOidc>;
let smtp: ReturnType<typeof startSmtp>;

/** Starts the identity provider and the mail server of `play`. Until `endAccounts`, passwords are hashed at the lowest cost: there are thousands. */
export function startAccounts(): void {
  provider = startOidc({ id: "evald", secret: "s3cret" });
  smtp = startSmtp();
}

export function endAccounts(): void {
  smtp.close();
  provider.close();
}

type Browser = ReturnType<typeof browse>;
type World = Awaited<ReturnType<typeof world>>;

async function world() {
  const app = testApp({
    env: {
      EVALD_SMTP_URL: smtp.url,
      EVALD_MAIL_FROM: "evald <evald@example.com>",
      EVALD_OIDC_ISSUER: provider.issuer,
      EVALD_OIDC_CLIENT_ID: "evald",
      EVALD_OIDC_CLIENT_SECRET: "s3cret",
      EVALD_OIDC_JOIN: "victim.example=B",
      EVALD_PEOPLE_MAKE_ORGS: "1",
    },
  });
  return {
    app,
    eve: await signedIn(app, { email: "eve@evil.example" }),
    ada: await signedIn(app, { org: app.b.org, email: "ada@victim.example" }),
    /** Browsers in which Eve once signed in as Cy. */
    evesBrowsers: [] as Browser[],
    evesLinks: new Set<string>(),
    cy: browse(app),
  };
}

const memberOf = ({ app }: World, org: "a" | "b") =>
  listMembers(app.service.ctx, app[org].org).find((member) => member.email === email);

/** The links that a page shows. */
const linksIn = (body: unknown): string[] => String(body).match(/\/(?:invite|reset)\/[\w.-]+/g) ?? [];

/** The links in the emails to Cy since the last call. */
async function readMail(count: number): Promise<string[]> {
  while (smtp.mails.length < count) await Bun.sleep(1);
  return smtp.mails.splice(0).flatMap(({ to, text }) => (to === email ? linksIn(text.replaceAll("=\n", "")) : []));
}

async function signInBySso(browser: Browser, claims: Parameters<typeof provider.signsInAs>[0]): Promise<void> {
  provider.signsInAs(claims);
  const begun = await browser.get("/sign-in/oidc");
  const sent = await fetch(begun.location ?? "", { redirect: "manual" });
  const back = new URL(sent.headers.get("location") ?? "");
  await browser.get(back.pathname + back.search);
}

async function invite(owner: Browser, role = "member"): Promise<string[]> {
  const { location } = await owner.post("/settings/members/invite", { email, role });
  return linksIn((await owner.get(location ?? "/settings/members")).body);
}

/** Opens links in a browser that is not signed in, and keeps the browser where one let it in. */
async function openAsEve(world: World, kind: "invite" | "reset"): Promise<void> {
  for (const link of world.evesLinks) {
    if (!link.startsWith(`/${kind}/`)) continue;
    const browser = browse(world.app);
    await browser.post(link, { name: "Cy", password: evesPassword });
    if (browser.cookie() !== "") world.evesBrowsers.push(browser);
  }
}

const actions = {
  "Eve invites Cy": async (world) => {
    for (const link of await invite(world.eve)) world.evesLinks.add(link);
    await readMail(0);
  },
  "Eve invites Cy as owner": async (world) => {
    for (const link of await invite(world.eve, "owner")) world.evesLinks.add(link);
    await readMail(0);
  },
  "Eve invites Cy, who sets a password": async (world) => {
    for (const link of await invite(world.eve)) world.evesLinks.add(link);
    const [link = ""] = await readMail(0);
    const browser = browse(world.app);
    await browser.post(link, { name: "Cy", password: cysPassword });
    if (browser.cookie() !== "") world.cy = browser;
  },
  "Eve opens her invitations": (world) => openAsEve(world, "invite"),
  "Eve makes a reset link": async (world) => {
    const member = memberOf(world, "a")?.memberId ?? "";
    const { body } = await world.eve.post("/settings/members/change", { member, do: "reset" });
    for (const link of linksIn(body)) world.evesLinks.add(link);
  },
  "Eve opens her reset links": (world) => openAsEve(world, "reset"),
  "Eve removes Cy": async (world) => {
    await world.eve.post("/settings/members/change", { member: memberOf(world, "a")?.memberId ?? "", do: "remove" });
  },
  "Eve makes Cy an owner": async (world) => {
    await world.eve.post("/settings/members/role", { member: memberOf(world, "a")?.memberId ?? "", role: "owner" });
  },
  "Eve signs in as Cy": async (world) => {
    const browser = browse(world.app);
    await browser.post("/sign-in", { email, password: evesPassword });
    if (browser.cookie() !== "") world.evesBrowsers.push(browser);
  },
  "Eve's identity claims Cy's address": async (world) => {
    for (const verified of [false, "true", "false", undefined]) {
      const browser = browse(world.app);
      await signInBySso(browser, { sub: "eve", email, email_verified: verified });
      if (browser.cookie() !== "") world.evesBrowsers.push(browser);
    }
  },
  "Eve takes the name of B": async (world) => {
    // Ada has just renamed B, and takes the name back.
    updateOrg(world.app.service.ctx, world.app.b.org, { name: "Renamed" });
    await world.eve.post("/settings", { name: "B", timeZone: "UTC" });
    await world.eve.post("/account/create-organization", { orgName: "B" });
    updateOrg(world.app.service.ctx, world.app.b.org, { name: "B" });
  },
  "Ada invites Cy": async (world) => {
    await invite(world.ada);
    const [link = ""] = await readMail(0);
    await world.cy.post(link, { name: "Cy", password: cysPassword });
  },
  "Ada removes Cy": async (world) => {
    await world.ada.post("/settings/members/change", { member: memberOf(world, "b")?.memberId ?? "", do: "remove" });
  },
  "Ada gives Cy a reset link": async (world) => {
    const member = memberOf(world, "b")?.memberId ?? "";
    const { body } = await world.ada.post("/settings/members/change", { member, do: "reset" });
    for (const link of linksIn(body).filter((each) => each.startsWith("/reset/")))
      await world.cy.post(link, { password: cysPassword });
  },
  "Cy resets the password by email": async (world) => {
    if (!findPerson(world.app.service.ctx, email)) return;
    const browser = browse(world.app);
    const { status } = await browser.post("/sign-in/forgotten", { email });
    if (status !== 200) return;
    const [link = ""] = await readMail(1);
    await browser.post(link, { password: cysPassword });
    world.cy = browser;
  },
  "Cy signs in with the password": async (world) => {
    await world.cy.post("/sign-in", { email, password: cysPassword });
  },
  "Cy signs in with the identity provider": (world) =>
    signInBySso(world.cy, { sub: "cy", email, email_verified: true, name: "Cy" }),
  "Cy leaves A": async (world) => {
    await world.cy.post("/account/leave", { org: world.app.a.org });
  },
} satisfies Record<string, (world: World) => Promise<void>>;
export type Action = keyof typeof actions;
export const allActions = Object.keys(actions) as Action[];

/** The account pages of all of Eve's browsers that show organization B. */
async function seen(world: World): Promise<number> {
  let count = 0;
  for (const browser of [world.eve, ...world.evesBrowsers])
    if (/<strong>B<\/strong>/.test(String((await browser.get("/account")).body))) count++;
  return count;
}

/** Takes the steps, and fails as soon as Eve sees B. At the end, Cy can still sign in with the identity provider and sees B. */
export async function play(steps: Action[]): Promise<void> {
  const here = await world();
  for (const [index, step] of steps.entries()) {
    await actions[step](here);
    const soFar = steps.slice(0, index + 1);
    expect([soFar, await seen(here)]).toEqual([soFar, 0]);
  }
  const end: Action[] = [
    "Ada invites Cy",
    "Cy signs in with the identity provider",
    "Eve signs in as Cy",
    "Eve opens her invitations",
    "Eve opens her reset links",
  ];
  for (const step of end) await actions[step](here);
  expect([steps, await seen(here)]).toEqual([steps, 0]);
  expect(String((await here.cy.get("/account")).body)).toContain("<strong>B</strong>");
  here.app.db.$client.close();
}
