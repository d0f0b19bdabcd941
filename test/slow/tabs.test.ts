import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { listInvitations } from "../../src/auth/invitations.ts";
import { listKeys } from "../../src/auth/keys.ts";
import { getOrg } from "../../src/auth/orgs.ts";
import { members, people, signIns } from "../../src/db/tables/people.ts";
import { listPrompts } from "../../src/prompts/lists.ts";
import { createPrompt, getPrompt } from "../../src/prompts/prompts.ts";
import { listShares } from "../../src/shares/shares.ts";
import { testApp } from "../support/app.ts";
import { browse, join, signedIn } from "../support/people.ts";
import { niceGrade, runWithReport } from "../support/reports.ts";

/** A member of A, which is shown first, and of B. */
async function inBoth(app: ReturnType<typeof testApp>) {
  const browser = await signedIn(app, { email: "ada@example.com" });
  join(app, app.b.org, "owner", browser.email);
  return browser;
}

/** The values of the hidden fields of the forms of a page, by name. */
const hiddenOf = (page: string): Record<string, string> =>
  Object.fromEntries(
    [
      ...page
        .replaceAll(/<form class="theme".*?<\/form>/gs, "")
        .matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g),
    ].map(([, k, v]) => [k, v]),
  );

const orgShown = (page: string) => /<summary>([^<]+)<\/summary>/.exec(page)?.[1];

test("a form acts in the organization of its page, whatever another tab shows by then", async () => {
  const app = testApp();
  const ada = await inBoth(app);
  const settings = await ada.get("/settings");
  const fields = hiddenOf(settings.body);
  expect([orgShown(settings.body), fields.madeFor]).toEqual(["A", app.a.org]);
  await ada.post("/account/organization", { org: app.b.org });
  expect(orgShown((await ada.get("/")).body)).toBe("B");

  const saved = await ada.post("/settings", { ...fields, name: "A and more", timeZone: "Asia/Tokyo" });
  expect([saved.status, orgShown(saved.body)]).toEqual([200, "A and more"]);
  expect(getOrg(app.service.ctx, app.a.org)).toMatchObject({ name: "A and more", timeZone: "Asia/Tokyo" });
  expect(getOrg(app.service.ctx, app.b.org)).toMatchObject({ name: "B", timeZone: "UTC" });

  // A former member can't change anything, in this organization or another.
  await ada.post("/account/organization", { org: app.b.org });
  app.db.delete(members).where(eq(members.orgId, app.a.org)).run();
  const late = await ada.post("/settings/keys", { ...fields, name: "late", scopes: "read", days: "" });
  expect([late.status, late.body]).toEqual([403, expect.stringContaining('data-error="forbidden"')]);
  for (const org of [app.a.org, app.b.org])
    expect(listKeys(app.service.ctx, org).map(({ name }) => name)).toEqual(["test"]);
});

test("the URL of a page works whichever of their organizations a person selected", async () => {
  const app = testApp();
  const ada = await inBoth(app);
  const { id } = createPrompt(app.service.ctx, app.b.org, { title: "Of B", text: "See https://docs.test/" });
  const found = await ada.get(`/prompts/${id}`);
  expect([found.status, orgShown(found.body)]).toEqual([200, "B"]);
  expect(orgShown((await ada.get("/prompts")).body)).toBe("B");
  // A part of a page of B that is still open does not lead back.
  await ada.post("/account/organization", { org: app.a.org });
  expect((await ada.get(`/prompts/${id}`, { "hx-request": "true" })).status).toBe(200);
  expect(orgShown((await ada.get("/prompts")).body)).toBe("A");
  // A member of A alone gets a 404.
  const onlyA = await signedIn(app);
  expect((await onlyA.get(`/prompts/${id}`)).status).toBe(404);
});

test("values of a form survive signing out in the meantime", async () => {
  const app = testApp();
  const ada = await signedIn(app);
  const form: Record<string, string> = {
    ...hiddenOf((await ada.get("/prompts/new")).body),
    title: 'A "long" <text>',
    text: "See https://docs.test/",
  };
  app.db.delete(signIns).run();
  const refused = await ada.post("/prompts", form);
  expect([refused.status, refused.body]).toEqual([401, expect.stringContaining('data-error="session_expired"')]);
  expect(refused.body).toContain('<form method="post" action="/prompts" enctype="multipart/form-data">');
  const kept = hiddenOf(refused.body);
  expect(kept).toEqual({ ...form, title: "A &quot;long&quot; &lt;text>" });
  expect(listPrompts(app.service.ctx, app.a.org, { limit: 9, offset: 0, includeArchived: true }).total).toBe(0);

  const back = await signedIn(app);
  const made = await back.post("/prompts", form);
  expect([made.status, made.location]).toEqual([303, `/prompts/${form.id}`]);

  // Another site doesn't get that page, and live parts of a page get a short text instead of the sign-in page.
  expect((await ada.post("/prompts", form, { origin: "https://evil.example" })).status).toBe(403);
  const part = await ada.post("/prompts/derived-fields", form, { "hx-request": "true" });
  expect([part.status, part.body]).toEqual([401, expect.stringMatching(/^<p class="notice bad"/)]);
  const stream = await ada.get("/live", { accept: "text/html, text/event-stream" });
  expect([stream.status, stream.location]).toEqual([401, null]);
});

test("a form can be sent from every name of the service, and from nowhere else", async () => {
  const app = testApp({ env: { EVALD_BASE_URL: "http://127.0.0.1:3000" } });
  const ada = await signedIn(app);
  const sent = async (origin: string, host: string) =>
    (await ada.post("/account/name", { name: "Ada" }, { origin, host })).status;
  expect(await sent("http://127.0.0.1:3000", "127.0.0.1:3000")).toBe(303);
  expect(await sent("http://localhost:3000", "localhost:3000")).toBe(303);
  // A proxy may use its own name.
  expect(await sent("http://127.0.0.1:3000", "inside:80")).toBe(303);
  for (const [origin, host] of [
    ["http://evil.example", "localhost:3000"],
    ["http://localhost:4000", "localhost:3000"],
    ["https://localhost:3000", "localhost:3000"],
    ["null", "localhost:3000"],
    ["null", "null"],
    ["", ""],
    ["file://", ""],
  ] as const)
    expect([origin, host, await sent(origin, host)]).toEqual([origin, host, 403]);
  const { body } = await ada.post("/account/name", { name: "Ada" }, { origin: "http://evil.example" });
  expect(body).toContain("EVALD_BASE_URL");
});

test("an open stream ends with its session or membership", async () => {
  const ends = {
    "the sign-in": (app: ReturnType<typeof testApp>) => app.db.delete(signIns).run(),
    "the membership": (app: ReturnType<typeof testApp>) => app.db.delete(members).run(),
  };
  for (const [what, end] of Object.entries(ends)) {
    const app = testApp();
    const ada = await signedIn(app);
    createPrompt(app.service.ctx, app.a.org, { title: "First", text: "See https://docs.test/" });
    const answer = await app.app.handle(
      new Request(`${app.baseUrl}/live?org=${app.a.org}`, {
        headers: { cookie: ada.cookie(), accept: "text/event-stream" },
      }),
    );
    const reader = (answer.body as ReadableStream<Uint8Array<ArrayBuffer>>)
      .pipeThrough(new TextDecoderStream())
      .getReader();
    const seen: string[] = [];
    while (!seen.join("").includes("1 prompt<")) seen.push((await reader.read()).value ?? "");
    end(app);
    createPrompt(app.service.ctx, app.a.org, { title: "Second", text: "See https://docs.test/" });
    for (let read = await reader.read(); !read.done; read = await reader.read()) seen.push(read.value);
    expect([what, seen.join("").includes("2 prompts")]).toEqual([what, false]);
  }
});

test("a live list stays in the organization of its page", async () => {
  const app = testApp();
  const ada = await inBoth(app);
  createPrompt(app.service.ctx, app.a.org, { title: "Of A", text: "See https://docs.test/" });
  const home = (await ada.get("/")).body;
  const stream = /hx-sse:connect="([^"]+)"/.exec(home)?.[1] ?? "";
  await ada.post("/account/organization", { org: app.b.org });
  const listen = async (path: string) => {
    const answer = await app.app.handle(
      new Request(app.baseUrl + path, { headers: { cookie: ada.cookie(), accept: "text/event-stream" } }),
    );
    if (answer.status !== 200) return answer.status;
    const reader = (answer.body as ReadableStream<Uint8Array<ArrayBuffer>>)
      .pipeThrough(new TextDecoderStream())
      .getReader();
    let seen = "";
    while (!seen.includes("\n\ndata") && !seen.includes("data: ")) seen += (await reader.read()).value ?? "";
    await reader.cancel();
    return seen.includes("1 prompt<");
  };
  expect(await listen(stream)).toBe(true);
  // An organization that the person isn't in is ignored.
  const [stranger] = app.db.select().from(people).where(eq(people.email, "ada@example.com")).all();
  app.db
    .delete(members)
    .where(eq(members.personId, stranger?.id ?? ""))
    .run();
  expect(await listen(stream)).toBe(403);
});

test("a key and a share link that are requested twice are created once", async () => {
  const app = testApp();
  const ada = await signedIn(app);
  const named = (body: string, action: string) => ({
    ...hiddenOf(body),
    id: new RegExp(`action="${action}"[\\s\\S]*?name="id" value="([^"]+)"`).exec(body)?.[1] ?? "",
  });
  const form = {
    ...named((await ada.get("/settings/keys")).body, "/settings/keys"),
    name: "ci",
    scopes: "read",
    days: "",
  };
  const made = await ada.post("/settings/keys", form);
  expect([made.status, /id="new-key">evals_/.test(made.body)]).toEqual([200, true]);
  const again = await ada.post("/settings/keys", form);
  expect([again.status, again.body]).toEqual([409, expect.stringContaining('role="alert"')]);
  expect(listKeys(app.service.ctx, app.a.org).map(({ name }) => name)).toEqual(["ci", "test"]);
  // The page with this message creates another key.
  const next = { ...form, ...named(again.body, "/settings/keys"), name: "other" };
  expect((await ada.post("/settings/keys", next)).status).toBe(200);

  const { slug } = runWithReport(app, niceGrade);
  const path = `/reports/${slug}/shares`;
  const share = { ...named((await ada.get(`/reports/${slug}`)).body, path), days: "7" };
  expect((await ada.post(path, share)).body).toContain('<code id="made">');
  expect((await ada.post(path, share)).status).toBe(409);
  expect(listShares(app.service.ctx, app.a.org, slug)).toHaveLength(1);
});

test("concurrent changes are not overwritten unnoticed", async () => {
  const app = testApp();
  const [ada, bea] = [await signedIn(app), await signedIn(app, { role: "member" })];
  const { id } = createPrompt(app.service.ctx, app.a.org, { title: "First", text: "See https://docs.test/" });
  const path = `/prompts/${id}/edit`;
  const [hers, his] = [hiddenOf((await ada.get(path)).body), hiddenOf((await bea.get(path)).body)];
  const text = "See https://docs.test/";
  // What a browser sends of the fields that nobody touched.
  for (const form of [hers, his]) Object.assign(form, { catchUp: "automatic", overlap: "skip" });
  expect((await ada.post(path, { ...hers, title: "Of Ada", text })).status).toBe(303);
  const refused = await bea.post(path, { ...his, title: "Of Bea", text });
  expect([refused.status, refused.body]).toEqual([409, expect.stringContaining('role="alert"')]);
  expect(refused.body).toContain('value="Of Bea"');
  const rows = [...refused.body.matchAll(/<tr data-field="([^"]+)">([\s\S]*?)<\/tr>/g)];
  expect(rows.map(([, field]) => field)).toEqual(["title"]);
  expect(rows[0]?.[2]).toMatch(/Of Ada[\s\S]*Of Bea/);
  expect(getPrompt(app.service.ctx, app.a.org, id).title).toBe("Of Ada");
  // A preview of the form, or an error in it, keeps the warning.
  const looked = await bea.post(path, { ...his, title: "", text, do: "preview" });
  expect((await bea.post(path, { ...hiddenOf(looked.body), title: "Of Bea", text })).status).toBe(409);
  const wrong = await bea.post(path, { ...hiddenOf(refused.body), title: "Of Bea", text: "" });
  expect(wrong.status).toBe(400);
  expect((await bea.post(path, { ...hiddenOf(wrong.body), title: "Of Bea", text })).status).toBe(303);
  expect(getPrompt(app.service.ctx, app.a.org, id).title).toBe("Of Bea");
});

test("signed-in people keep their menu on error pages", async () => {
  const app = testApp();
  const ada = await signedIn(app);
  for (const [path, status] of [
    ["/no-such-page", 404],
    ["/prompts?offset=-1", 400],
    ["/reports/none", 404],
  ] as const) {
    const seen = await ada.get(path);
    expect([path, seen.status, seen.body.includes('<body class="app">')]).toEqual([path, status, true]);
  }
  expect((await browse(app).get("/no-such-page")).body).toContain('href="/sign-in"');
  // Property names of every object are not among our messages.
  for (const path of ["/account?done=constructor", "/settings/members?done=toString"])
    expect((await ada.get(path)).body).not.toContain('role="status"');
});

test("an invitation for another email address can be accepted after signing out, without reopening its link", async () => {
  const app = testApp();
  const ada = await signedIn(app);
  await ada.post("/settings/members/invite", { email: "bea@example.com", role: "member" });
  const [invitation] = listInvitations(app.service.ctx, app.a.org);
  const page = await ada.get(invitation?.path ?? "");
  const out = await ada.post("/sign-out", hiddenOf(page.body));
  expect([out.status, out.location]).toEqual([303, invitation?.path ?? ""]);
  expect((await ada.get(out.location ?? "")).body).toContain('name="name"');
  for (const next of ["https://evil.example/", "//evil.example", "/\\evil.example"])
    expect((await ada.post("/sign-out", { next })).location).toBe("/sign-in");
});

test("a filter that is blank or has only spaces is ignored", async () => {
  const app = testApp();
  const ada = await signedIn(app);
  const { slug } = runWithReport(app, niceGrade);
  const paths = [
    "/prompts?search=+&status=",
    "/runs?promptId=&status=+&agent=",
    `/reports/${slug}/session?search=++&types=`,
  ];
  for (const path of paths) {
    const { status, location } = await ada.get(path);
    expect([path, status, location]).toEqual([path, 303, path.split("?")[0] ?? ""]);
    expect((await ada.get(location ?? "")).status).toBe(200);
  }
  for (const path of ["/prompts?status=none", "/runs?status=none"])
    expect([path, (await ada.get(path)).status]).toEqual([path, 400]);
});
