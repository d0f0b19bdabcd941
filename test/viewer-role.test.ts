import { expect, test } from "bun:test";
import { listInvitations } from "../src/auth/invitations.ts";
import { createKey, listKeys } from "../src/auth/keys.ts";
import { listMembers } from "../src/auth/members.ts";
import { createPrompt, getPrompt } from "../src/prompts/prompts.ts";
import { listRunPage } from "../src/runs/lists.ts";
import { requestEval } from "../src/runs/requests.ts";
import { getRun } from "../src/runs/runs.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { niceGrade, runWithReport } from "./support/reports.ts";

const app = testApp();
const { service, a } = app;

test("a viewer reads every page and submits no form of the organization", async () => {
  const viewer = await signedIn(app, { role: "viewer", email: "viewer@example.com" });
  const { runId, slug, evalRequestId } = runWithReport(app, niceGrade);
  const { promptId } = listRunPage(service.ctx, a.org, {}, { limit: 1 }).items[0] ?? { promptId: "" };
  const paths = ["", "prompts", "runs", "reports", "friction", "trends", "providers", "settings", "settings/members"];
  const all = ["settings/keys", "settings/models", `runs/${runId}`, `reports/${slug}`, `evals/${evalRequestId}`];
  for (const path of [...paths, ...all, `prompts/${promptId}`]) {
    const { status, body } = await viewer.get(`/${path}`);
    // Only forms of the account, filters and dialogs are there.
    const forms = [...body.matchAll(/<form\b[^>]*method="post"[^>]*action="([^"]+)"/g)].map(([, action]) => action);
    expect([path, status, forms]).toEqual([path, 200, ["/theme", "/sign-out"]]);
  }
  expect((await viewer.get("/prompts/new")).status).toBe(403);

  const own = /^\/(account|sign-|theme|invite|setup|reset)/;
  const posts = (await app.app.loadRoutes())
    .filter(({ method, path }) => method === "POST" && !path.startsWith("/api/") && !own.test(path))
    .map(({ path }) => path.replaceAll(/:\w+/g, "x"));
  expect(posts.length).toBeGreaterThan(20);
  for (const path of posts) expect([path, (await viewer.post(path, {})).status]).toEqual([path, 403]);
});

test("owners invite viewers and change roles to viewer", async () => {
  const owner = await signedIn(app);
  expect((await owner.post("/settings/members/invite", { email: "v@example.com", role: "viewer" })).status).toBe(303);
  expect(listInvitations(service.ctx, a.org).map(({ role }) => role)).toEqual(["viewer"]);
});

test("destructive actions ask for confirmation, name what is lost, and run once confirmed", async () => {
  const owner = await signedIn(app, { email: "owner@example.com" });
  const { id } = createPrompt(service.ctx, a.org, { title: "To archive", text: "https://docs.example.com" });
  const { apiKey } = createKey(service.ctx, a.org, "to revoke");
  const { evalRequestId: _, runIds } = await requestEval(service.ctx, a.org, id, { urlMap: {}, trigger: "api" });
  const [member] = listMembers(service.ctx, a.org).filter(({ role }) => role === "viewer");
  const forms: [path: string, form: Record<string, string>, isGone: () => boolean][] = [
    [`/prompts/${id}/archive`, {}, () => getPrompt(service.ctx, a.org, id).status === "archived"],
    [
      `/settings/keys/${apiKey.id}/revoke`,
      {},
      () => listKeys(service.ctx, a.org).find((key) => key.id === apiKey.id)?.revokedAt !== null,
    ],
    [`/runs/${runIds[0]}/cancel`, {}, () => getRun(service.ctx, a.org, runIds[0] ?? "").status === "failed"],
    [
      "/settings/members/change",
      { member: member?.memberId ?? "", do: "remove" },
      () => listMembers(service.ctx, a.org).every(({ memberId }) => memberId !== member?.memberId),
    ],
  ];
  for (const [path, form, isGone] of forms) {
    const asked = await owner.post(path, form);
    expect([path, asked.status, asked.body.includes('name="confirmed"'), isGone()]).toEqual([path, 200, true, false]);
    for (const [name, value] of Object.entries(form)) expect(asked.body).toContain(`name="${name}" value="${value}"`);
    await owner.post(path, { ...form, confirmed: "1" });
    expect([path, isGone()]).toEqual([path, true]);
  }
});

test("the page after a change shows a message once, with Undo", async () => {
  const owner = await signedIn(app, { email: "third@example.com" });
  const { id } = createPrompt(service.ctx, a.org, { text: "https://docs.example.com" });
  const { location } = await owner.post(`/prompts/${id}/status`, { status: "paused" });
  const { body } = await owner.get(location ?? "");
  expect(body).toMatch(/<div class="toast" role="status">/);
  expect(body).toContain(`action="/prompts/${id}/status"><input type="hidden"`);
  expect((await owner.get(location ?? "")).body).not.toContain('class="toast"');
  await owner.post(`/prompts/${id}/status`, { status: "active" });
  expect(getPrompt(service.ctx, a.org, id).status).toBe("active");
});
