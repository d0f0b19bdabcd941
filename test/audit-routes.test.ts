import { afterAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { createCodingAgent } from "../src/agents/coding/coding.ts";
import { presets } from "../src/agents/coding/presets.ts";
import type { AuditAction } from "../src/audit/actions.ts";
import { listInvitations } from "../src/auth/invitations.ts";
import { createKey } from "../src/auth/keys.ts";
import { listMembers } from "../src/auth/members.ts";
import { setOperator } from "../src/auth/operators.ts";
import { createOrg } from "../src/auth/orgs.ts";
import { toResetPathByOwner } from "../src/auth/resets.ts";
import { setupPath } from "../src/auth/setup.ts";
import { auditEntries } from "../src/db/tables/audit.ts";
import { toEditTools, toTools } from "../src/mcp-endpoints.ts";
import { setModelKey } from "../src/models/models.ts";
import { testDestination } from "../src/notifications/deliveries.ts";
import { createDestination } from "../src/notifications/destinations.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { createProvider } from "../src/providers/providers.ts";
import { setSecret } from "../src/secrets/secrets.ts";
import { createShare } from "../src/shares/shares.ts";
import { createSuitePrompts } from "../src/suites/members.ts";
import { createSuite } from "../src/suites/suites.ts";
import { createTrust } from "../src/trusts/trusts.ts";
import { testApp } from "./support/app.ts";
import { startCiIssuer } from "./support/ci-issuer.ts";
import { serveFakeModel } from "./support/fake-model.ts";
import { rpc } from "./support/mcp.ts";
import { isFormAddress } from "./support/page-routes.ts";
import { createPasskeyDevice } from "./support/passkey.ts";
import { browse, join, password, signedIn } from "./support/people.ts";
import { completeProposals } from "./support/proposals.ts";
import { evaluation, niceGrade } from "./support/reports.ts";
import { startSmtp } from "./support/smtp.ts";
import { fromBase32, totp } from "./support/totp.ts";
import { until } from "./support/until.ts";

// Every route that changes something, driven once through the front door: each adds an entry to the audit log.

const ci = startCiIssuer({ now: Date.now });
const smtp = startSmtp();
const model = serveFakeModel({ scenarios: { llama3: { turns: [{ text: "yes" }] } } });
const claude = presets.filter(({ id }) => id === "claude").map((preset) => createCodingAgent(preset, { path: "" }));
const app = testApp({
  agents: Object.fromEntries(claude.map((agent) => ["claude", agent])),
  env: {
    EVALD_SMTP_URL: smtp.url,
    EVALD_MAIL_FROM: "evald@example.com",
    OPENAI_COMPATIBLE_BASE_URL: model.baseUrls["openai-compatible"],
    EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
    EVALD_ALLOW_PRIVATE: "127.0.0.1",
    EVALD_PEOPLE_MAKE_ORGS: "1",
    EVALD_BACKUP_TO: "/mnt/backups",
  },
});
const { ctx } = app.service;
const { org } = app.a;
afterAll(() => {
  ci.close();
  smtp.close();
  model.stop();
});

const owner = await signedIn(app, { email: "owner@acme.example" });
setOperator(ctx, owner.email, true);
let people = 0;
/** Another member, for forms that change or remove one. */
const member = () => {
  const email = `member-${++people}@acme.example`;
  join(app, org, "member", email);
  return { email, memberId: listMembers(ctx, org).find((each) => each.email === email)?.memberId ?? "" };
};
/** A browser of its own, for forms that end the session. */
const newBrowser = () => signedIn(app, { email: `member-${++people}@acme.example`, role: "member" });

const newPrompt = () =>
  createPrompt(ctx, org, { title: "Install", text: "Install it. https://docs.acme.dev", tags: ["nightly"] }).id;
const newRun = async () => {
  const { body } = await app.send("POST", `/api/v1/prompts/${newPrompt()}/run`, { body: { urlMap: {} } });
  return body.runId as string;
};
const newReport = () => {
  const promptId = newPrompt();
  const [report] = evaluation(app, promptId, [niceGrade]);
  return { promptId, slug: report?.slug ?? "" };
};
let points = 0;
/** A report with a friction point that no other one has. */
const newFriction = () => {
  const promptId = newPrompt();
  const fingerprint = (++points).toString(16).padStart(16, "0");
  const [friction] = niceGrade.frictions as [(typeof niceGrade.frictions)[number]];
  const [report] = evaluation(app, promptId, [{ ...niceGrade, frictions: [{ ...friction, fingerprint }] }]);
  return { promptId, slug: report?.slug ?? "", fingerprint };
};
const newDismissal = async () => {
  const { slug, fingerprint } = newFriction();
  const { body } = await app.send("POST", "/api/v1/dismissals", {
    body: { fingerprints: [fingerprint], reason: "Meant" },
  });
  return { slug, id: body.id as string };
};
/** A set that is completed without reading anything. */
const newProposalSet = async () => {
  const { body } = await app.send("POST", "/api/v1/proposals", { body: { docsUrl: "https://docs.acme.dev/" } });
  completeProposals(app, body.proposalSetId);
  return body.proposalSetId as string;
};
const newProvider = () => createProvider(ctx, org, { name: "Acme" }).id;
/** Suites of one slot for a new provider, with as many versions as there were calls. */
let suiteVersions = 0;
const newSuite = () => ({
  ...{ id: "storage", version: ++suiteVersions, title: "Storage", limits: null, agents: null },
  slots: [{ slot: "upload", title: "Upload", text: "Upload a file.", endGoal: null, declaredChecks: [] }],
});
const newSuitePrompts = () => {
  createSuite(ctx, org, newSuite());
  const { id: providerId } = createProvider(ctx, org, { name: "Acme", docsUrl: "https://docs.acme.dev/" });
  return { providerId, values: {} };
};
const webhook = { kind: "webhook", url: "https://hooks.acme.example/evald", events: ["run.failed"] } as const;
const newDestination = () => {
  for (const { id } of app.db.$client.query("select id from destinations").all() as { id: string }[])
    app.db.$client.run("delete from destinations where id = ? and not exists (select 1 from deliveries)", [id]);
  return createDestination(ctx, org, { ...webhook, events: [...webhook.events] }).id;
};
const newDelivery = () => {
  const destination = newDestination();
  return `${destination}/deliveries/${testDestination(ctx, org, destination).id}`;
};
const newTrust = () => createTrust(ctx, org, { provider: "github", repository: "acme/docs" }, null).id;
let archives = 0;
const newArchiveFile = () => new Bun.Archive({ "a.txt": String(++archives) }, { compress: "gzip" }).bytes();
const newArchive = async () => {
  const headers = { "content-type": "application/gzip" };
  const { body } = await app.send("POST", "/api/v1/archives", { body: await newArchiveFile(), headers });
  return body.id as string;
};
const newShare = () => {
  const { slug } = newReport();
  return { slug, id: createShare(ctx, org, slug, { days: 7, withSession: false }).id };
};
const newRegrade = async () => {
  for (const regrade of (await app.send("GET", "/api/v1/regrades")).body)
    if (regrade.completedAt === null) await app.send("POST", `/api/v1/regrades/${regrade.regradeId}/cancel`);
  const { body } = await app.send("POST", "/api/v1/regrades", { body: { since: "2020-01-01" } });
  return body.regradeId as string;
};
const newExperiment = () => {
  const edits = { hidden: ["https://docs.acme.dev/llms.txt"], replacements: [] };
  return { promptIds: [newPrompt()], arms: [{ name: "baseline" }, { name: "no llms.txt", edits }] };
};
const newBisect = () => ({
  promptId: newPrompt(),
  urlTemplate: "https://{commit}.preview.example.com",
  commits: ["a1b2c3d", "e4f5a6b", "c7d8e9f"],
});
const newBisectId = async () => (await app.send("POST", "/api/v1/bisects", { body: newBisect() })).body.id as string;
const newCalibration = async () =>
  (await app.send("POST", "/api/v1/calibrations", { body: { sites: 1 } })).body.id as string;
const newGate = async () => {
  const body = { promptId: newPrompt(), minScore: 60 };
  return (await app.send("POST", "/api/v1/gates", { body })).body.id as string;
};
const newFieldFriction = async () => {
  const report = { where: `https://docs.acme.dev/${++points}`, tried: "To upload", happened: "It failed" };
  await app.send("POST", "/api/v1/field-friction", { body: report });
  return (await app.send("GET", "/api/v1/field-friction")).body[0].id as string;
};
const newInboxItem = async () => {
  evaluation(app, newPrompt(), ["infrastructure: no network"]);
  const { problems } = (await app.send("GET", "/api/v1/inbox?snoozed=true")).body;
  return problems[0].id as string;
};
const formerKey = () => createKey(ctx, org, "of someone who left", { createdBy: crypto.randomUUID() });

type Request = { path?: string; body?: unknown; headers?: Record<string, string>; as?: ReturnType<typeof browse> };
type Driven = [action: AuditAction, request?: () => Request | Promise<Request>];
const at = (path: string, body?: unknown): Request => ({ path, body });

/** The routes of the API. Without a path, the path is that of the route. */
const api: Record<string, Driven> = {
  "POST /api/v1/keys/revoke-former": ["key.revoked", () => ({ body: void formerKey() })],
  "POST /api/v1/prompts": ["prompt.created", () => ({ body: { text: "Install it" } })],
  "PATCH /api/v1/prompts/:promptId": ["prompt.updated", () => at(`/prompts/${newPrompt()}`, { title: "Other" })],
  "POST /api/v1/schedules/pause": ["schedules.paused"],
  "POST /api/v1/schedules/resume": ["schedules.resumed"],
  "POST /api/v1/prompts/schedule": [
    "tag_schedule.changed",
    () => ({ body: { tag: "nightly", frequency: null, id: newPrompt() } }),
  ],
  "POST /api/v1/prompts/:promptId/run": [
    "evaluation.requested",
    () => at(`/prompts/${newPrompt()}/run`, { urlMap: {} }),
  ],
  "POST /api/v1/providers": ["provider.created", () => ({ body: { name: "Acme" } })],
  "PATCH /api/v1/providers/:providerId": [
    "provider.updated",
    () => at(`/providers/${newProvider()}`, { name: "Other" }),
  ],
  "POST /api/v1/archives": [
    "archive.created",
    async () => ({ body: await newArchiveFile(), headers: { "content-type": "application/gzip" } }),
  ],
  "DELETE /api/v1/archives/:archiveId": ["archive.deleted", async () => at(`/archives/${await newArchive()}`)],
  "POST /api/v1/runs/:runId/cancel": ["run.cancelled", async () => at(`/runs/${await newRun()}/cancel`)],
  "POST /api/v1/runs/:runId/rerun": ["evaluation.requested", async () => at(`/runs/${await newRun()}/rerun`)],
  "PUT /api/v1/budgets": ["budget.changed", () => ({ body: { promptId: newPrompt(), maxUsdAMonth: 5 } })],
  "PATCH /api/v1/reports/:slug": ["report.updated", () => at(`/reports/${newReport().slug}`, { status: "archived" })],
  "POST /api/v1/reports/:slug/shares": ["share.created", () => at(`/reports/${newReport().slug}/shares`, { days: 7 })],
  "DELETE /api/v1/reports/:slug/shares/:shareId": [
    "share.revoked",
    () => {
      const { slug, id } = newShare();
      return at(`/reports/${slug}/shares/${id}`);
    },
  ],
  "POST /api/v1/dismissals": [
    "dismissal.created",
    () => ({ body: { fingerprints: [newFriction().fingerprint], reason: "Meant" } }),
  ],
  "DELETE /api/v1/dismissals/:dismissalId": [
    "dismissal.undone",
    async () => at(`/dismissals/${(await newDismissal()).id}`),
  ],
  "POST /api/v1/recommendations/:fingerprint/done": [
    "fix.done",
    () => {
      const { promptId, fingerprint } = newFriction();
      return at(`/recommendations/${fingerprint}/done`, { promptId });
    },
  ],
  "PATCH /api/v1/field-friction/:fieldId": [
    "field_friction.changed",
    async () => at(`/field-friction/${await newFieldFriction()}`, { state: "resolved" }),
  ],
  "PATCH /api/v1/inbox/:itemId": [
    "inbox_item.marked",
    async () => at(`/inbox/${encodeURIComponent(await newInboxItem())}`, { snoozedUntil: "2030-01-01T00:00:00Z" }),
  ],
  "POST /api/v1/experiments": ["experiment.requested", () => ({ body: newExperiment() })],
  "POST /api/v1/experiments/:experimentId/cancel": [
    "experiment.cancelled",
    async () =>
      at(`/experiments/${(await app.send("POST", "/api/v1/experiments", { body: newExperiment() })).body.id}/cancel`),
  ],
  "POST /api/v1/bisects": ["bisect.requested", () => ({ body: newBisect() })],
  "POST /api/v1/bisects/:bisectId/cancel": [
    "bisect.cancelled",
    async () => at(`/bisects/${await newBisectId()}/cancel`),
  ],
  "POST /api/v1/calibrations": ["calibration.requested", () => ({ body: { sites: 1 } })],
  "POST /api/v1/calibrations/:calibrationId/cancel": [
    "calibration.cancelled",
    async () => at(`/calibrations/${await newCalibration()}/cancel`),
  ],
  "POST /api/v1/gates": ["gate.requested", () => ({ body: { promptId: newPrompt(), minScore: 60 } })],
  "POST /api/v1/gates/:gateId/cancel": ["gate.cancelled", async () => at(`/gates/${await newGate()}/cancel`)],
  "POST /api/v1/destinations": ["destination.created", () => ({ body: webhook })],
  "PATCH /api/v1/destinations/:destinationId": [
    "destination.updated",
    () => at(`/destinations/${newDestination()}`, { name: "Other" }),
  ],
  "DELETE /api/v1/destinations/:destinationId": ["destination.deleted", () => at(`/destinations/${newDestination()}`)],
  "POST /api/v1/destinations/:destinationId/rotate": [
    "destination.secret_rotated",
    () => at(`/destinations/${newDestination()}/rotate`),
  ],
  "POST /api/v1/destinations/:destinationId/test": [
    "destination.tested",
    () => at(`/destinations/${newDestination()}/test`),
  ],
  "POST /api/v1/destinations/:destinationId/replay": [
    "destination.replayed",
    () => at(`/destinations/${newDestination()}/replay`),
  ],
  "POST /api/v1/destinations/:destinationId/deliveries/:deliveryId/replay": [
    "delivery.replayed",
    () => at(`/destinations/${newDelivery()}/replay`),
  ],
  "POST /api/v1/oidc/trusts": ["trust.created", () => ({ body: { provider: "github", repository: "acme/docs" } })],
  "DELETE /api/v1/oidc/trusts/:trustId": ["trust.deleted", () => at(`/oidc/trusts/${newTrust()}`)],
  "POST /api/v1/oidc/exchange": [
    "key.exchanged",
    () => {
      createTrust(ctx, org, { provider: "github", issuer: ci.issuer, repository: "acme/docs" }, null);
      const body = { token: ci.token({ aud: "http://localhost:3000" }), organization: "A" };
      return { body, headers: { authorization: "" } };
    },
  ],
  "POST /api/v1/field-traffic": ["field_traffic.imported", () => ({ body: { log: "0".repeat(64), pages: [] } })],
  "POST /api/v1/proposals": ["proposal_set.requested", () => ({ body: { docsUrl: "https://docs.acme.dev/" } })],
  "POST /api/v1/proposals/:proposalSetId/prompts": [
    "proposal_set.accepted",
    async () => at(`/proposals/${await newProposalSet()}/prompts`, { only: [1] }),
  ],
  "POST /api/v1/suites": ["suite.created", () => ({ body: newSuite() })],
  "POST /api/v1/suites/:suiteId/prompts": ["suite.applied", () => at("/suites/storage/prompts", newSuitePrompts())],
  "POST /api/v1/suites/:suiteId/run": [
    "evaluation.requested",
    () => {
      createSuitePrompts(ctx, org, "storage", newSuitePrompts());
      return at("/suites/storage/run", {});
    },
  ],
  "POST /api/v1/regrades": [
    "regrade.requested",
    async () => {
      await app.send("POST", `/api/v1/regrades/${await newRegrade()}/cancel`);
      return { body: { since: "2020-01-01" } };
    },
  ],
  "POST /api/v1/regrades/:regradeId/cancel": [
    "regrade.cancelled",
    async () => at(`/regrades/${await newRegrade()}/cancel`),
  ],
};

/** The key of an operator of the service. */
const operator = { authorization: `Bearer ${createKey(ctx, org, "queue", { scopes: ["read", "operate"] }).key}` };
const pause = { kind: "agent", subject: "explorer" };

/** The routes of the API that delete, and those of operators. */
const operations: Record<string, Driven> = {
  "DELETE /api/v1/prompts/:promptId": ["prompt.deleted", () => at(`/prompts/${newPrompt()}`)],
  "DELETE /api/v1/runs/:runId": ["run.deleted", async () => at(`/runs/${await newRun()}`)],
  "DELETE /api/v1/reports/:slug": ["run.deleted", () => at(`/reports/${newReport().slug}`)],
  "DELETE /api/v1/organization": [
    "organization.deleted",
    () => ({ headers: { authorization: `Bearer ${app.b.key}` } }),
  ],
  "POST /api/v1/deletions/:deletionId/restore": [
    "deletion.restored",
    async () => at(`/deletions/${(await app.send("DELETE", `/api/v1/prompts/${newPrompt()}`)).body.id}/restore`),
  ],
  "POST /api/v1/deletions/:deletionId/erase": [
    "deletion.erasure_requested",
    async () => at(`/deletions/${(await app.send("DELETE", `/api/v1/prompts/${newPrompt()}`)).body.id}/erase`),
  ],
  "PATCH /api/v1/retention": ["retention.changed", () => ({ body: { reports: 365 } })],
  "PUT /api/v1/secrets/:name": ["secret.stored", () => at("/secrets/TOKEN", { value: "a secret value" })],
  "DELETE /api/v1/secrets/:name": [
    "secret.deleted",
    () => {
      setSecret(ctx, org, "TOKEN", { value: "a secret value" });
      return at("/secrets/TOKEN");
    },
  ],
  "PUT /api/v1/agent-logins/:agent": ["agent_login.stored", () => at("/agent-logins/claude", { file: loginFile })],
  "DELETE /api/v1/agent-logins/:agent": [
    "agent_login.removed",
    async () => {
      await app.send("PUT", "/api/v1/agent-logins/claude", { body: { file: loginFile } });
      return at("/agent-logins/claude");
    },
  ],
  "POST /api/v1/backups": ["backup.created", () => ({ headers: operator })],
  "POST /api/v1/queue/pauses": ["queue.paused", () => ({ body: pause, headers: operator })],
  "DELETE /api/v1/queue/pauses/:kind/:subject": [
    "queue.resumed",
    async () => {
      await app.send("POST", "/api/v1/queue/pauses", { body: pause, headers: operator });
      return { path: "/queue/pauses/agent/explorer", headers: operator };
    },
  ],
  "POST /api/v1/queue/failures/:groupId/retry": [
    "queue.retried",
    async () => {
      evaluation(app, newPrompt(), ["infrastructure: no network"]);
      const [group] = (await app.send("GET", "/api/v1/queue/failures", { headers: operator })).body;
      return { path: `/queue/failures/${encodeURIComponent(group.id)}/retry`, headers: operator };
    },
  ],
};

const loginFile = JSON.stringify({
  claudeAiOauth: {
    ...{ accessToken: "sk-ant-oat01-0123456789abcdef0123456789", refreshToken: "sk-ant-ort01-0123456789abcdef" },
    ...{ expiresAt: Date.now() + 3_600_000, scopes: ["user:inference"], subscriptionType: "max" },
  },
});
/** The path of the link in the email to an address. */
async function mailedPath(address: string): Promise<string> {
  const mail = await until(`an email to ${address}`, () => smtp.mails.find(({ to }) => to === address));
  return /http:\/\/localhost:3000(\/\w+\/\S+)/.exec(mail.text)?.[1] ?? "";
}
type Browser = Awaited<ReturnType<typeof newBrowser>>;
/** The form that adds a passkey. */
async function newPasskey(as: Browser, device = createPasskeyDevice(app.baseUrl)) {
  const { body } = await as.post("/account/passkeys/options", { password });
  return { as, body: { passkeyName: "Phone", credential: device.create(body) } };
}
/** The form that turns two-factor sign-in on. */
async function beginTwoFactor(as: Browser) {
  const { body } = await as.post("/account/two-factor", { password });
  const uri = /name="uri" value="([^"]+)"/.exec(body)?.[1]?.replaceAll("&amp;", "&") ?? "";
  const key = fromBase32(new URL(uri).searchParams.get("secret") ?? "");
  const codeAt = (ms: number) => totp(key, ms);
  return { as, codeAt, body: { uri, code: codeAt(Date.now()) } };
}
/** A person who uses it. */
async function withTwoFactor() {
  const begun = await beginTwoFactor(await newBrowser());
  await begun.as.post("/account/two-factor/confirm", begun.body);
  return begun;
}

const promptFields = { title: "Install", text: "Install it. https://docs.acme.dev" };

/** The forms of pages. Without a path, the path is that of the route. */
const forms: Record<string, Driven> = {
  "POST /prompts": ["prompt.created", () => ({ body: promptFields })],
  "POST /prompts/:promptId/edit": ["prompt.updated", () => at(`/prompts/${newPrompt()}/edit`, promptFields)],
  "POST /prompts/:promptId/status": [
    "prompt.updated",
    () => at(`/prompts/${newPrompt()}/status`, { status: "paused" }),
  ],
  "POST /prompts/:promptId/archive": ["prompt.updated", () => at(`/prompts/${newPrompt()}/archive`)],
  "POST /prompts/:promptId/run": ["evaluation.requested", () => at(`/prompts/${newPrompt()}/run`, { runs: "1" })],
  "POST /bisects/new": [
    "bisect.requested",
    () => ({ body: { ...newBisect(), commits: newBisect().commits.join("\n") } }),
  ],
  "POST /bisects/:bisectId/cancel": ["bisect.cancelled", async () => at(`/bisects/${await newBisectId()}/cancel`)],
  "POST /experiments/new": [
    "experiment.requested",
    () => ({ body: { promptId: newPrompt(), llmsTxtOf: "https://docs.acme.dev/" } }),
  ],
  "POST /experiments/:experimentId/cancel": [
    "experiment.cancelled",
    async () =>
      at(`/experiments/${(await app.send("POST", "/api/v1/experiments", { body: newExperiment() })).body.id}/cancel`),
  ],
  "POST /calibration": ["calibration.requested", () => ({ body: { sites: "1" } })],
  "POST /calibration/:calibrationId/cancel": [
    "calibration.cancelled",
    async () => at(`/calibration/${await newCalibration()}/cancel`),
  ],
  "POST /prompts/propose": ["proposal_set.requested", () => ({ body: { docsUrl: "https://docs.acme.dev/" } })],
  "POST /prompts/propose/:proposalSetId": [
    "proposal_set.accepted",
    async () => at(`/prompts/propose/${await newProposalSet()}`, { only: "1" }),
  ],
  "POST /prompts/schedule": [
    "tag_schedule.changed",
    () => ({ body: { tag: "nightly", frequency: "", id: newPrompt() } }),
  ],
  "POST /prompts/selected/run": ["evaluation.requested", () => ({ body: { [newPrompt()]: "on" } })],
  "POST /prompts/selected/archive": ["prompt.updated", () => ({ body: { [newPrompt()]: "on" } })],
  "POST /runs/selected/rerun": ["evaluation.requested", async () => ({ body: { [await newRun()]: "on" } })],
  "POST /runs/:runId/cancel": ["run.cancelled", async () => at(`/runs/${await newRun()}/cancel`)],
  "POST /runs/:runId/rerun": ["evaluation.requested", async () => at(`/runs/${await newRun()}/rerun`)],
  "POST /reports/selected/rerun": ["evaluation.requested", () => ({ body: { [newReport().slug]: "on" } })],
  "POST /reports/selected/archive": ["report.updated", () => ({ body: { [newReport().slug]: "on" } })],
  "POST /reports/:slug/status": [
    "report.updated",
    () => at(`/reports/${newReport().slug}/status`, { status: "draft" }),
  ],
  "POST /reports/:slug/grading": ["report.updated", () => at(`/reports/${newReport().slug}/grading`, { grading: "" })],
  "POST /reports/:slug/shares": ["share.created", () => at(`/reports/${newReport().slug}/shares`, { days: "7" })],
  "POST /reports/:slug/shares/:shareId/revoke": [
    "share.revoked",
    () => {
      const { slug, id } = newShare();
      return at(`/reports/${slug}/shares/${id}/revoke`);
    },
  ],
  "POST /reports/:slug/done/:fingerprint": [
    "fix.done",
    () => {
      const { slug, fingerprint } = newFriction();
      return at(`/reports/${slug}/done/${fingerprint}`);
    },
  ],
  "POST /reports/:slug/dismissals": [
    "dismissal.created",
    () => {
      const { slug, fingerprint } = newFriction();
      return at(`/reports/${slug}/dismissals`, { fingerprint, reason: "Meant" });
    },
  ],
  "POST /reports/:slug/dismissals/:dismissalId/undo": [
    "dismissal.undone",
    async () => {
      const { slug, id } = await newDismissal();
      return at(`/reports/${slug}/dismissals/${id}/undo`);
    },
  ],
  "POST /friction/field/:fieldId/state": [
    "field_friction.changed",
    async () => at(`/friction/field/${await newFieldFriction()}/state`, { state: "resolved" }),
  ],
  "POST /inbox/:itemId": [
    "inbox_item.marked",
    async () => at(`/inbox/${encodeURIComponent(await newInboxItem())}`, { days: "7" }),
  ],
  "POST /providers": ["provider.created", () => ({ body: { name: "Acme" } })],
  "POST /providers/:providerId": ["provider.updated", () => at(`/providers/${newProvider()}`, { name: "Other" })],
  "POST /spending/budgets": ["budget.changed", () => ({ body: { of: `prompt:${newPrompt()}`, maxUsdAMonth: "5" } })],
  "POST /settings": [
    "organization.updated",
    () => ({ body: { name: "A", timeZone: "Europe/Berlin", maxRunsAtOnce: "", hasResultsPage: "" } }),
  ],
  "POST /settings/keys": ["key.created", () => ({ body: { name: "ci", scopes: "read", days: "90" } })],
  "POST /settings/keys/revoke-former": ["key.revoked", () => ({ body: void formerKey() })],
  "POST /settings/keys/:keyId/revoke": [
    "key.revoked",
    () => at(`/settings/keys/${createKey(ctx, org, "spare").apiKey.id}/revoke`),
  ],
  "POST /settings/ci": [
    "trust.created",
    () => ({ body: { provider: "github", repository: "acme/docs", scopes: "read", minutes: "60" } }),
  ],
  "POST /settings/ci/:trustId/remove": ["trust.deleted", () => at(`/settings/ci/${newTrust()}/remove`)],
  "POST /settings/models": ["model_key.stored", () => ({ body: { provider: "openai", key: "sk-0123456789abcdef" } })],
  "POST /settings/models/forget": [
    "model_key.removed",
    () => {
      setModelKey(ctx, org, "openai", "sk-0123456789abcdef");
      return { body: { provider: "openai" } };
    },
  ],
  "POST /settings/secrets": ["secret.stored", () => ({ body: { name: "TOKEN", value: "a secret value" } })],
  "POST /settings/secrets/delete": [
    "secret.deleted",
    () => {
      setSecret(ctx, org, "TOKEN", { value: "a secret value" });
      return { body: { name: "TOKEN" } };
    },
  ],
  "POST /settings/notifications": [
    "destination.created",
    () => ({ body: { kind: "webhook", url: webhook.url, events: "run.failed" } }),
  ],
  "POST /settings/notifications/:destinationId": [
    "destination.updated",
    () => at(`/settings/notifications/${newDestination()}`, { name: "Other", url: webhook.url, events: "run.failed" }),
  ],
  "POST /settings/notifications/:destinationId/change": [
    "destination.secret_rotated",
    () => at(`/settings/notifications/${newDestination()}/change`, { do: "rotate" }),
  ],
  "POST /settings/notifications/:destinationId/deliveries/:deliveryId/replay": [
    "delivery.replayed",
    () => at(`/settings/notifications/${newDelivery()}/replay`),
  ],
  "POST /settings/members/invite": [
    "invitation.created",
    () => ({ body: { email: `new-${++people}@acme.example`, role: "member" } }),
  ],
  "POST /settings/members/revoke": [
    "invitation.revoked",
    async () => {
      await owner.post("/settings/members/invite", { email: `gone-${++people}@acme.example`, role: "member" });
      return { body: { invitation: listInvitations(ctx, org)[0]?.id } };
    },
  ],
  "POST /settings/members/role": [
    "member.role_changed",
    () => ({ body: { member: member().memberId, role: "admin" } }),
  ],
  "POST /settings/members/change": ["member.removed", () => ({ body: { member: member().memberId, do: "remove" } })],
  "POST /prompts/:promptId/delete": [
    "prompt.deleted",
    () => at(`/prompts/${newPrompt()}/delete`, { typedName: "Install" }),
  ],
  "POST /runs/:runId/delete": ["run.deleted", async () => at(`/runs/${await newRun()}/delete`)],
  "POST /reports/:slug/delete": ["run.deleted", () => at(`/reports/${newReport().slug}/delete`)],
  "POST /deletions/:deletionId/restore": [
    "deletion.restored",
    async () => at(`/deletions/${(await app.send("DELETE", `/api/v1/prompts/${newPrompt()}`)).body.id}/restore`),
  ],
  "POST /deletions/:deletionId/erase": [
    "deletion.erasure_requested",
    async () => at(`/deletions/${(await app.send("DELETE", `/api/v1/prompts/${newPrompt()}`)).body.id}/erase`),
  ],
  "POST /schedules/pause": ["schedules.paused"],
  "POST /schedules/resume": ["schedules.resumed"],
  "POST /account/name": ["account.renamed", () => ({ body: { name: "Ada" } })],
  "POST /account/password": [
    "password.changed",
    async () => ({
      as: await newBrowser(),
      body: { currentPassword: password, newPassword: "another horse battery staple" },
    }),
  ],
  "POST /account/end": [
    "session.ended",
    async () => {
      const as = await newBrowser();
      await browse(app).post("/sign-in", { email: as.email, password });
      return { as };
    },
  ],
  "POST /account/leave": ["member.left", async () => ({ as: await newBrowser(), body: { org } })],
  "POST /account/create-organization": [
    "organization.created",
    async () => ({ as: await newBrowser(), body: { orgName: "Another" } }),
  ],
  "POST /sign-in": ["sign_in.succeeded", () => ({ as: browse(app), body: { email: member().email, password } })],
  "POST /sign-out": ["sign_out.completed", async () => ({ as: await newBrowser() })],
  "POST /reset/:token": [
    "password.reset",
    async () => {
      const person = listMembers(ctx, org).find(({ email }) => email === "owner@acme.example");
      const { path } = toResetPathByOwner(ctx, org, member().memberId, person as never);
      return { as: browse(app), path, body: { password: "another horse battery staple" } };
    },
  ],
  "POST /setup/:token": [
    "member.added",
    () => {
      const path = setupPath(ctx, createOrg(ctx, "Newcomers").id);
      const body = { name: "Bea", email: "bea@newcomers.example", password: "another horse battery staple" };
      return { as: browse(app), path, body };
    },
  ],
  "POST /invite/:token": [
    "invitation.accepted",
    async () => {
      const email = `invited-${++people}@acme.example`;
      await owner.post("/settings/members/invite", { email, role: "member" });
      const { path } = listInvitations(ctx, org).find((each) => each.email === email) as { path: string };
      return { as: browse(app), path, body: { name: "Cy", password: "another horse battery staple" } };
    },
  ],
};

/** Forms that need a second factor, a passkey, an email or an organization of their own. */
const further: Record<string, Driven> = {
  "POST /account/email/:token": [
    "account.email_changed",
    async () => {
      const as = await newBrowser();
      const email = `moved-${++people}@acme.example`;
      await as.post("/account/email", { email });
      return { as, path: await mailedPath(email) };
    },
  ],
  "POST /account/delete": [
    "account.deleted",
    async () => {
      const as = await newBrowser();
      return { as, body: { typedName: as.email } };
    },
  ],
  "POST /account/restore": [
    "deletion.restored",
    async () => {
      const as = await signedIn(app, { org: createOrg(ctx, "Restored").id });
      await as.post("/settings/data/delete", { confirmed: "1", typedName: "Restored" });
      const [, deletion] = /name="deletion" value="([0-9a-f-]{36})"/.exec((await as.get("/account")).body) ?? [];
      return { as, body: { deletion } };
    },
  ],
  "POST /settings/data": ["retention.changed", () => ({ body: { sessions: "30" } })],
  "POST /settings/data/delete": [
    "organization.deleted",
    async () => {
      const as = await signedIn(app, { org: createOrg(ctx, "Deleted").id });
      return { as, body: { typedName: "Deleted" } };
    },
  ],
  "POST /settings/backups": ["backup.created", () => ({ body: void app.db.$client.run("delete from backups") })],
  "POST /settings/queue/pauses": ["queue.paused", () => ({ body: pause })],
  "POST /settings/queue/resume": [
    "queue.resumed",
    async () => {
      await app.send("POST", "/api/v1/queue/pauses", { body: pause, headers: operator });
      return { body: pause };
    },
  ],
  "POST /settings/queue/failures/:groupId/retry": [
    "queue.retried",
    async () => {
      evaluation(app, newPrompt(), ["infrastructure: no network"]);
      const [group] = (await app.send("GET", "/api/v1/queue/failures", { headers: operator })).body;
      return at(`/settings/queue/failures/${encodeURIComponent(group.id)}/retry`);
    },
  ],
  "POST /settings/sign-in": [
    "sign_in_policy.changed",
    async () => ({
      as: await signedIn(app, { org: createOrg(ctx, "Strict").id, email: `s-${++people}@strict.example` }),
      body: { emailDomains: "strict.example" },
    }),
  ],
  "POST /account/passkeys": ["passkey.added", async () => newPasskey(await newBrowser())],
  "POST /account/passkeys/remove": [
    "passkey.removed",
    async () => {
      const as = await newBrowser();
      await as.post("/account/passkeys", (await newPasskey(as)).body);
      const [, passkey] = /name="passkey" value="([^"]+)"/.exec((await as.get("/account")).body) ?? [];
      return { as, body: { passkey } };
    },
  ],
  "POST /sign-in/passkey": [
    "sign_in.succeeded",
    async () => {
      const device = createPasskeyDevice(app.baseUrl);
      const { as: owner, body } = await newPasskey(await newBrowser(), device);
      await owner.post("/account/passkeys", body);
      const as = browse(app);
      const options = await as.post("/sign-in/passkey/options");
      return { as, body: { credential: device.get(options.body) } };
    },
  ],
  "POST /account/two-factor/confirm": ["two_factor.enabled", async () => beginTwoFactor(await newBrowser())],
  "POST /account/two-factor/backup-codes": [
    "two_factor.backup_codes_renewed",
    async () => ({ as: (await withTwoFactor()).as, body: { password } }),
  ],
  "POST /account/two-factor/disable": [
    "two_factor.disabled",
    async () => ({ as: (await withTwoFactor()).as, body: { password } }),
  ],
  "POST /sign-in/code": [
    "sign_in.succeeded",
    async () => {
      const {
        as: { email },
        codeAt,
      } = await withTwoFactor();
      const as = browse(app);
      await as.post("/sign-in", { email, password });
      // That of now was used to turn it on.
      return { as, body: { code: codeAt(Date.now() + 30_000) } };
    },
  ],
  "POST /sign-in/forgotten": [
    "password.reset_requested",
    async () => ({ as: browse(app), body: { email: (await newBrowser()).email } }),
  ],
  "POST /settings/models/logins": [
    "agent_login.stored",
    () => ({ body: { agent: "claude", file: Buffer.from(loginFile).toString("base64") } }),
  ],
  "POST /settings/models/logins/remove": [
    "agent_login.removed",
    async () => {
      await app.send("PUT", "/api/v1/agent-logins/claude", { body: { file: loginFile } });
      return { body: { agent: "claude" } };
    },
  ],
};

/** What a route without an entry writes: only rows of these tables. `completedBy`: the route that goes on, and has an entry. */
type WithoutEntry = { writes: readonly string[]; completedBy?: string; request?: () => Request | Promise<Request> };

const withoutEntry: Record<string, WithoutEntry> = {
  "POST /api/v1/experiments/estimate": {
    writes: [],
    request: () => ({ body: newExperiment() }),
  },
  "POST /api/mcp": { writes: [], request: () => ({ body: { jsonrpc: "2.0", id: 1, method: "tools/list" } }) },
  // Reports of agents, whose key may be public. They are a log of their own.
  "POST /api/v1/field-friction": {
    writes: ["field_friction", "field_reports"],
    request: () => ({
      body: { where: `https://docs.acme.dev/${++points}`, tried: "To upload", happened: "It failed" },
    }),
  },
  "POST /api/v1/field-sessions": {
    writes: ["field_friction", "field_reports"],
    request: () => ({
      body: {
        agent: "Claude Code 2.1.3",
        calls: [
          { tool: "fetch_page", input: "https://docs.acme.dev/sdk", ok: false, exitCode: null, text: "HTTP 404" },
        ],
      },
    }),
  },
  // Cookies and the session of this browser.
  "POST /theme": { writes: [], request: () => ({ as: owner, body: { theme: "dark" } }) },
  "POST /first-steps/hide": { writes: [], request: () => ({ as: owner }) },
  "POST /account/organization": { writes: ["sign_ins"], request: () => ({ as: owner, body: { org } }) },
  "POST /account/passkeys/options": {
    writes: ["verifications"],
    completedBy: "POST /account/passkeys",
    request: async () => ({ as: await newBrowser(), body: { password } }),
  },
  "POST /account/email": {
    writes: [],
    completedBy: "POST /account/email/:token",
    request: () => ({ as: owner, body: { email: `moved-${++people}@acme.example` } }),
  },
  "POST /account/two-factor": {
    writes: ["two_factors"],
    completedBy: "POST /account/two-factor/confirm",
    request: async () => ({ as: await newBrowser(), body: { password } }),
  },
  "POST /sign-in/passkey/options": {
    writes: ["verifications"],
    completedBy: "POST /sign-in/passkey",
    request: () => ({ as: browse(app) }),
  },
  "POST /prompts/derived-fields": { writes: [], request: () => ({ as: owner, body: promptFields }) },
  "POST /settings/models/test": {
    writes: [],
    request: () => ({ as: owner, body: { model: "openai-compatible/llama3" } }),
  },
};

/** Routes that need workers on a real Redis: test/slow/workers.test.ts drives them, and checks their entries. */
const withWorkers = {
  "POST /api/v1/workers/:workerId/drain": "worker.drained",
  "DELETE /api/v1/workers/:workerId": "worker.removed",
  "POST /settings/workers/:workerId": "worker.drained",
} as const satisfies Record<string, AuditAction>;

test("every route that may change something is listed once", async () => {
  const routes = (await app.app.loadRoutes())
    .filter(({ method, hooks }) => !["GET", "OPTIONS"].includes(method) && !isFormAddress(hooks))
    .map(({ method, path }) => `${method} ${path}`);
  const listed = [api, operations, forms, further, withoutEntry, withWorkers].flatMap((each) => Object.keys(each));
  expect([...new Set(routes)].sort()).toEqual([...listed].sort());
});

const actionsOf = (requestId: string | null) =>
  app.db
    .select({ action: auditEntries.action })
    .from(auditEntries)
    .where(eq(auditEntries.requestId, requestId ?? ""))
    .all()
    .map(({ action }) => action as AuditAction);

describe.each(Object.entries({ ...api, ...operations }))("%s", (route, [action, request = () => at("")]) => {
  test(`records ${action}`, async () => {
    const [method = "", routePath = ""] = route.split(" ");
    const { path, body, headers } = await request();
    const answer = await app.send(method, path ? `/api/v1${path}` : routePath, { body, headers });
    if (answer.status >= 300) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
    expect(actionsOf(answer.headers.get("x-request-id"))).toContain(action);
  });
});

/** The text of a page, for the message of a form that failed. */
const textOf = (html: unknown) =>
  String(html)
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .slice(-600);

describe.each(Object.entries({ ...forms, ...further }))("the form %s", (route, [action, request = () => at("")]) => {
  test(`records ${action}`, async () => {
    const { path, body, as = owner } = await request();
    const form = { confirmed: "1", ...(body as Record<string, string>) };
    const answer = await as.post(path || (route.split(" ")[1] ?? ""), form);
    if (![200, 303].includes(answer.status)) throw new Error(`${answer.status} ${textOf(answer.body)}`);
    expect(actionsOf(answer.headers.get("x-request-id"))).toContain(action);
  });
});

/** Each table with its rows, without the times at which keys and sessions were last used. */
const contents = () =>
  app.db.$client
    .query<{ name: string }, []>("select name from sqlite_master where type = 'table' and name not like 'sqlite%'")
    .all()
    .map(({ name }) => {
      const rows = app.db.$client.query<object, []>(`select * from "${name}"`).all();
      return { name, text: JSON.stringify(rows.map((row) => ({ ...row, last_used_at: 0, updated_at: 0 }))) };
    });

describe.each(Object.entries(withoutEntry))("%s", (route, { writes, completedBy, request = () => at("") }) => {
  test(`writes ${writes.join(" and ") || "nothing"}`, async () => {
    const [method = "", routePath = ""] = route.split(" ");
    const { path, body, headers, as } = await request();
    const before = contents();
    const answer = as
      ? await as.post(path || routePath, body as Record<string, string>)
      : await app.send(method, path || routePath, { body, headers });
    if (answer.status >= 400) throw new Error(`${answer.status} ${textOf(JSON.stringify(answer.body))}`);
    const after = contents();
    expect(
      after
        .filter(({ text }, i) => text !== before[i]?.text)
        .map(({ name }) => name)
        .sort(),
    ).toEqual([...writes]);
    if (completedBy) expect(Object.keys({ ...forms, ...further })).toContain(completedBy);
  });
});

/** Calls of the MCP tools that change something. */
const tools: Record<string, [AuditAction, () => object | Promise<object>]> = {
  create_prompt: ["prompt.created", () => ({ text: "Install it" })],
  update_prompt: ["prompt.updated", () => ({ promptId: newPrompt(), title: "Other" })],
  request_eval: ["evaluation.requested", () => ({ promptId: newPrompt() })],
  cancel_run: ["run.cancelled", async () => ({ runId: await newRun() })],
};

test("every MCP tool that changes something records it", async () => {
  const changing = [...toTools(ctx), ...toEditTools(ctx)].filter(({ annotations }) => !annotations.readOnlyHint);
  expect(changing.map(({ name }) => name).sort()).toEqual(Object.keys(tools).sort());
  const { key, apiKey } = createKey(ctx, org, "editor", { scopes: ["read", "run", "write"] });
  const { call } = rpc(app, key);
  for (const [name, [action, toArguments]] of Object.entries(tools)) {
    await call(name, await toArguments());
    const entry = app.db.select().from(auditEntries).where(eq(auditEntries.actorId, apiKey.id)).all().at(-1);
    expect([name, entry?.action, entry?.actorName]).toEqual([name, action, "editor"]);
  }
});
