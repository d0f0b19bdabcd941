import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startCiIssuer } from "../support/ci-issuer.ts";
import { buildExecutable, call, client, emptyFolder, executable, serve, untilRun } from "../support/executable.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { call as use } from "../support/model-runs.ts";
import { startOidc } from "../support/oidc.ts";
import { descendantsOf, processFile } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { serveSite } from "../support/site.ts";
import { startSmtp } from "../support/smtp.ts";
import { until } from "../support/until.ts";

// This test searches for every secret that the service holds or creates in everything that it writes or sends.

const canary = () => crypto.randomUUID().replaceAll("-", "");
const modelKey = `sk-operator-${canary()}`;
const orgKey = `sk-organization-${canary()}`;
const masterKey = Buffer.from(canary()).toString("base64");
const smtpPassword = `mail-${canary()}`;
const oidcSecret = `oidc-${canary()}`;
const previewToken = canary();
const webhookHeader = `header-${canary()}`;
const slackPath = `path-${canary()}`;
const loginToken = `login-${canary()}`;
const refreshToken = `refresh-${canary()}`;
const password = `a long password ${canary()}`;

let smtp: ReturnType<typeof startSmtp>;
let oidc: ReturnType<typeof startOidc>;
let fake: ReturnType<typeof serveFakeModel>;
let docs: ReturnType<typeof serveSite>;
let ci: ReturnType<typeof startCiIssuer>;
let receiver: ReturnType<typeof startReceiver>;
beforeAll(async () => {
  await buildExecutable();
  smtp = startSmtp();
  ci = startCiIssuer();
  receiver = startReceiver();
  oidc = startOidc({ id: "evald", secret: oidcSecret });
  docs = serveSite({
    // This preview repeats the token of the request.
    "/": (request) =>
      new Response(`<title>Acme</title><h1>Acme</h1><p>You asked for ${request.url}. Keys: ${modelKey} ${orgKey}</p>`, {
        headers: { "content-type": "text/html" },
      }),
  });
  const look = "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; ls -la / /proc/1/fd; sleep 1";
  const turns = [
    use("fetch_page", { url: "https://notes.test/" }),
    use("run_command", { command: look }),
    use("finish", { outcome: "succeeded", summary: "It was read." }),
  ];
  fake = serveFakeModel({ scenarios: { looks: { turns } } });
}, 300_000);
afterAll(async () => {
  docs.stop();
  ci.close();
  receiver.close();
  await Promise.all([smtp.close(), oidc.close(), fake.stop()]);
});

const spellings = (secret: string) => [
  secret,
  Buffer.from(secret).toString("base64").replace(/=+$/, ""),
  Buffer.from(secret).toString("hex"),
  encodeURIComponent(secret),
];

test("20 kinds of secrets are in no database, log, export, report, page, backup or process", async () => {
  const cwd = emptyFolder();
  const env = {
    OPENAI_COMPATIBLE_API_KEY: modelKey,
    OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
    EVALD_AGENT_MODEL: "openai-compatible/looks",
    EVALD_MODEL_PRICES: '{"openai-compatible/looks": {"in": 10, "out": 100}}',
    EVALD_ALLOW_PRIVATE: "127.0.0.1",
    EVALD_SECRET_KEY: masterKey,
    EVALD_SMTP_URL: smtp.url.replace("://", `://mailer:${smtpPassword}@`),
    EVALD_MAIL_FROM: "evald@acme.example",
    EVALD_OIDC_ISSUER: oidc.issuer,
    EVALD_OIDC_CLIENT_ID: "evald",
    EVALD_OIDC_CLIENT_SECRET: oidcSecret,
    EVALD_LOG_LEVEL: "trace",
    // This agent repeats its login in all that it prints.
    EVALD_AGENTS: JSON.stringify([
      {
        ...{ id: "acme", command: join(import.meta.dir, "..", "support", "fake-agent.mjs"), args: ["login", "", ""] },
        ...{ stream: "claude", provider: "openai-compatible", env: { GATEWAY: "{gateway}" } },
        login: { file: ".acme/auth.json", emptied: ["tokens.refresh_token"], env: { GATEWAY: null } },
      },
    ]),
  };
  const tell = async (...args: string[]) => (await call(args, { cwd, env })).stdout.trim();
  await tell("org", "create", "Acme");
  const apiKey = await tell("key", "create", "--name", "test");
  const stored = Bun.spawnSync([executable, "model", "set-key", "openai", "--org", "Acme"], {
    ...{ cwd, env: { PATH: process.env.PATH ?? "", ...env }, stdin: Buffer.from(orgKey) },
  });
  const tokens = { access_token: loginToken, refresh_token: refreshToken };
  const storedLogin = Bun.spawnSync([executable, "agent", "set-login", "acme"], {
    ...{ cwd, env: { PATH: process.env.PATH ?? "", ...env }, stdin: Buffer.from(JSON.stringify({ tokens })) },
  });
  const service = await serve({ cwd, env });
  const ask = client(service.url, apiKey);
  const form = (path: string, fields: Record<string, string>, cookie = "") =>
    fetch(service.url + path, {
      method: "POST",
      redirect: "manual",
      headers: { origin: service.url, cookie, accept: "text/html" },
      body: new URLSearchParams(fields),
    });

  const setup = await tell("org", "setup-link", "Acme");
  const owner = await form(new URL(setup).pathname, { name: "Ada", email: "ada@acme.example", password });
  const cookie = owner.headers
    .getSetCookie()
    .map((each) => each.split(";")[0])
    .join("; ");
  await form("/settings/members/invite", { email: "bea@acme.example", role: "member" }, cookie);
  const members = await (await fetch(`${service.url}/settings/members`, { headers: { cookie } })).text();
  const invitation = /\/invite\/([\w.-]+)/.exec(members)?.[1] ?? "";
  const reset = await tell("person", "reset-link", "ada@acme.example");
  await form("/sign-in", { email: "ada@acme.example", password: `${password}x` });
  await form("/sign-in/oidc", {});

  const { body: webhook } = await ask("POST", "/api/v1/destinations", {
    ...{ kind: "webhook", name: "CI", events: ["run.completed"] },
    ...{ url: receiver.url, headers: { Authorization: `Bearer ${webhookHeader}` } },
  });
  const { body: slack } = await ask("POST", "/api/v1/destinations", {
    ...{ kind: "slack", name: "Slack", events: ["run.completed"], url: `${receiver.url}/${slackPath}` },
  });
  const trust = { provider: "github", issuer: ci.issuer, repository: "acme/docs", scopes: ["read"] };
  await ask("POST", "/api/v1/oidc/trusts", trust);
  const idToken = ci.token({ aud: service.url });
  const exchanged = await ask("POST", "/api/v1/oidc/exchange", { token: idToken, organization: "Acme" });

  const { body: prompt } = await ask("POST", "/api/v1/prompts", {
    ...{ text: "Read https://notes.test/", agent: "llm", endGoal: "It was read." },
  });
  const urlMap = { "notes.test": `${docs.url}/?bypass=${previewToken}` };
  const { body: asked } = await ask("POST", `/api/v1/prompts/${prompt.id}/run`, { urlMap });
  const processes = new Map<string, string>();
  const watched = untilRun(ask, asked.runId, "completed", "failed");
  let isOver = false;
  void watched.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const own = processFile(service.pid, "cmdline");
    // A child process is a copy of the service until it executes its program.
    for (const pid of descendantsOf(service.pid).filter((child) => processFile(child, "cmdline") !== own))
      for (const name of ["cmdline", "environ"])
        processes.set(`${name} of a child`, `${processes.get(`${name} of a child`) ?? ""}\n${processFile(pid, name)}`);
    await Bun.sleep(20);
  }
  const run = await watched;
  const slug = run.report?.slug;
  const { body: loginPrompt } = await ask("POST", "/api/v1/prompts", {
    ...{ text: "Read https://notes.test/", agents: [{ agent: "acme", options: { login: true } }] },
  });
  const { body: withLogin } = await ask("POST", `/api/v1/prompts/${loginPrompt.id}/run`, { urlMap: {} });
  const loginRun = await untilRun(ask, withLogin.runId, "completed", "failed");
  expect([storedLogin.exitCode, loginRun.failureReason]).toEqual([0, null]);
  const { body: share } = await ask("POST", `/api/v1/reports/${slug}/shares`, { days: 7, withSession: true });
  expect([stored.exitCode, run.status, run.failureReason]).toEqual([0, "completed", null]);

  await until("both destinations were told of both runs", () => receiver.received.length === 4);
  const secrets: Record<string, string> = {
    "API key": apiKey,
    "operator's model key": modelKey,
    "organization's model key": orgKey,
    "master key": masterKey,
    "SMTP password": smtpPassword,
    "client secret of single sign-on": oidcSecret,
    "session cookie": decodeURIComponent(/session_token=([^;]+)/.exec(cookie)?.[1] ?? ""),
    password,
    "setup link": setup.split("/").at(-1) ?? "",
    "invitation link": invitation,
    "reset link": reset.split("/").at(-1) ?? "",
    "share link": share.url?.split("/").at(-1) ?? "",
    "preview token": previewToken,
    "webhook secret": webhook.secret?.replace("whsec_", "") ?? "",
    "header of a webhook": webhookHeader,
    "URL of a Slack channel": slackPath,
    "ID token of a CI job": idToken,
    "key of a CI job": exchanged.body.key ?? "",
    "token of a login": loginToken,
    "refresh token of a login": refreshToken,
  };
  for (const [kind, secret] of Object.entries(secrets)) expect([kind, secret.length > 15]).toEqual([kind, true]);

  const places: Record<string, string> = Object.fromEntries(processes);
  places["the command line of the service"] = processFile(service.pid, "cmdline");
  const headers = { authorization: `Bearer ${apiKey}` };
  const api = [
    "/prompts",
    "/runs",
    `/runs/${run.runId}`,
    `/runs/${run.runId}/attempts`,
    `/runs/${run.runId}/events`,
    "/eval-requests",
    `/reports/${slug}`,
    `/reports/${slug}/trace?limit=500`,
    `/reports/${slug}/shares`,
    "/export",
    "/export?format=csv",
    "/export?format=junit",
    "/export?format=markdown",
    "/whoami",
    "/destinations",
    `/destinations/${webhook.id}/deliveries`,
    "/oidc/trusts",
    "/agent-logins",
    `/runs/${loginRun.runId}/events`,
    `/runs/${loginRun.runId}/output`,
    `/reports/${loginRun.report?.slug}/trace?limit=500`,
  ];
  for (const path of api) {
    const response = await fetch(`${service.url}/api/v1${path}`, { headers });
    expect([path, response.status]).toEqual([path, 200]);
    places[path] = await response.text();
  }
  const pages = [
    "/",
    "/runs",
    "/prompts",
    `/prompts/${prompt.id}`,
    `/runs/${run.runId}`,
    `/reports/${slug}`,
    `/reports/${slug}.md`,
    `/reports/${slug}/session`,
    "/settings/models",
    "/settings/keys",
    "/settings/ci",
    "/settings/notifications",
    "/account",
  ];
  for (const path of pages) {
    const response = await fetch(service.url + path, { headers: { cookie, accept: "text/html" } });
    expect([path, response.status]).toEqual([path, 200]);
    places[path] = await response.text();
  }
  for (const path of ["", "/session"]) {
    const shared = await fetch(share.url + path, { headers: { accept: "text/html" } });
    expect([path, shared.status]).toEqual([path, 200]);
    // The page links to itself.
    places[`shared page ${path}`] = (await shared.text()).replaceAll(secrets["share link"] ?? "", "");
  }
  expect((await call(["backup", join(cwd, "copy")], { cwd, env })).code).toBe(0);
  const read = (folder: string) =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => [`file ${name}`, readFileSync(join(folder, name), "latin1")]);
  Object.assign(places, Object.fromEntries([...read(join(cwd, "data")), ...read(cwd)]));
  expect(await service.stop()).toBe(0);
  const digest = new Bun.CryptoHasher("sha256").update(loginToken).digest("hex");
  expect(places[`/runs/${loginRun.runId}/output`]).toContain(digest);
  places["output of a command"] = storedLogin.stdout.toString() + storedLogin.stderr.toString();
  places.log = service.stderr() + service.stdout();
  const leaks = Object.entries(secrets).flatMap(([kind, secret]) =>
    Object.entries(places)
      // A run that is executed again needs the token of its preview.
      .filter(([place]) => !(kind === "preview token" && /^file (evald\.db|copy)/.test(place)))
      // The bridge of a sandbox adds it to requests.
      .filter(([, text]) => spellings(secret).some((spelling) => text.includes(spelling)))
      .map(([place]) => `${kind}: ${place}`),
  );
  expect([processes.size, slack.secret]).toEqual([2, null]);
  expect(leaks).toEqual([]);
});
