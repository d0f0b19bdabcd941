import { expect, test } from "bun:test";
import { createCodingAgent } from "../src/agents/coding/coding.ts";
import { presets } from "../src/agents/coding/presets.ts";
import { agentLogins } from "../src/db/tables/keys.ts";
import { listModelSecrets } from "../src/models/models.ts";
import { secretsInLogin } from "../src/redaction/login-secrets.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";

const now = Date.UTC(2026, 10, 26, 12);
const hourMs = 3600_000;
const agents = Object.fromEntries(presets.map((preset) => [preset.id, createCodingAgent(preset, { path: "" })]));
const secretKey = Buffer.alloc(32, 7).toString("base64");
const openApp = (env: Record<string, string> = { EVALD_SECRET_KEY: secretKey }) =>
  testApp({ agents, env, now: () => now });

const jwt = (payload: object) =>
  ["{}", JSON.stringify(payload), "signature"].map((part) => Buffer.from(part).toString("base64url")).join(".");
const accessToken = "sk-ant-oat01-0123456789abcdef0123456789";
const claudeFile = (expiresAt = now + hourMs) =>
  JSON.stringify({
    claudeAiOauth: {
      ...{ accessToken, refreshToken: "sk-ant-ort01-0123456789abcdef", expiresAt },
      ...{ scopes: ["user:inference"], subscriptionType: "max" },
    },
  });
const codexFile = (exp = (now + hourMs) / 1000) =>
  JSON.stringify({
    OPENAI_API_KEY: null,
    tokens: { ...{ id_token: jwt({ exp: 1 }), access_token: jwt({ exp }) }, refresh_token: "rt-0123456789abcdef01234" },
    last_refresh: "2026-11-26T11:00:00.000000Z",
  });
const geminiFile = JSON.stringify({
  ...{ access_token: "ya29.0123456789abcdef", refresh_token: "1//0123456789abcdef0123" },
  ...{ scope: "https://www.googleapis.com/auth/cloud-platform", expiry_date: now - hourMs },
});

type App = ReturnType<typeof openApp>;
const set = ({ send }: App, agent: string, file: string, headers = {}) =>
  send("PUT", `/api/v1/agent-logins/${agent}`, { body: { file }, headers });

test("logins of the known agents are stored with the expiry that their files say", async () => {
  const app = openApp();
  const expiresAt = "2026-11-26T13:00:00.000Z";
  const createdAt = "2026-11-26T12:00:00.000Z";
  const stored = [
    (await set(app, "claude", claudeFile())).body,
    (await set(app, "codex", codexFile())).body,
    (await set(app, "gemini", geminiFile)).body,
  ];
  expect(stored).toEqual([
    { agent: "claude", state: "usable", expiresAt, createdAt },
    { agent: "codex", state: "usable", expiresAt, createdAt },
    { agent: "gemini", state: "usable", expiresAt: null, createdAt },
  ]);
  const list = await app.send("GET", "/api/v1/agent-logins");
  expect([list.body, list.headers.get("x-total-count")]).toEqual([stored, "3"]);
  // A token that works only once is not kept.
  const secrets = listModelSecrets(app.service.ctx, app.a.org);
  expect(secrets).toContain(accessToken);
  expect(secrets).toContain(JSON.parse(codexFile()).tokens.access_token);
  expect(secrets).toContain(JSON.parse(geminiFile).refresh_token);
  expect(secrets.filter((secret) => /^(sk-ant-ort|rt-)/.test(secret))).toEqual([]);
  const replaced = await set(app, "claude", claudeFile(now + 2 * hourMs));
  expect(replaced.body.expiresAt).toBe("2026-11-26T14:00:00.000Z");
  expect((await app.send("DELETE", "/api/v1/agent-logins/claude")).body).toEqual(replaced.body);
  expect((await app.send("DELETE", "/api/v1/agent-logins/claude")).status).toBe(404);
});

test.each([
  ["another agent's file", "claude", codexFile()],
  ["a file with an API key only", "codex", JSON.stringify({ OPENAI_API_KEY: "sk-0123456789abcdef", tokens: null })],
  ["an expired login", "claude", claudeFile(now - 1)],
  ["an expired token", "codex", codexFile(now / 1000 - 1)],
  ["text that is no JSON", "codex", `${accessToken} is no JSON`],
  ["an empty file", "gemini", " "],
  ["a file that is too large", "gemini", "x".repeat(65 * 1024)],
  ["an agent without logins", "pi", geminiFile],
  ["an unknown agent", "none", geminiFile],
])("%s is rejected without quoting it", async (_, agent, file) => {
  const app = openApp();
  const { status, body } = await set(app, agent, file);
  expect(status).toBe(400);
  for (const secret of secretsInLogin(file)) expect(JSON.stringify(body)).not.toContain(secret);
  expect(app.db.select().from(agentLogins).all()).toEqual([]);
});

test("logins need EVALD_SECRET_KEY, and belong to one organization", async () => {
  expect((await set(openApp({}), "claude", claudeFile())).status).toBe(400);
  const app = openApp();
  await set(app, "claude", claudeFile());
  const asB = { headers: { authorization: `Bearer ${app.b.key}` } };
  expect((await app.send("GET", "/api/v1/agent-logins", asB)).body).toEqual([]);
  expect((await app.send("DELETE", "/api/v1/agent-logins/claude", asB)).status).toBe(404);
  // Sealed for its organization and its agent.
  app.db.update(agentLogins).set({ agent: "codex" }).run();
  expect((await app.send("GET", "/api/v1/agent-logins")).body).toMatchObject([{ agent: "codex", state: "unreadable" }]);
  app.db.update(agentLogins).set({ agent: "claude", orgId: app.b.org }).run();
  expect((await app.send("GET", "/api/v1/agent-logins", asB)).body).toMatchObject([{ state: "unreadable" }]);
  expect(listModelSecrets(app.service.ctx, app.b.org)).not.toContain(accessToken);
});

test("a file is uploaded, replaced and removed on the settings page", async () => {
  const app = openApp();
  const { get, post, postBody } = await signedIn(app);
  const upload = async (agent: string, file: string) => {
    const page = String((await get("/settings/models")).body);
    const action = /action="[^"]*(\/settings\/models\/logins\?[^"]*)"/.exec(page)?.[1] ?? "";
    const form = new FormData();
    form.append("agent", agent);
    form.append("file", new Blob([file]), "auth.json");
    const multipart = await new Response(form).blob();
    return await postBody(action.replaceAll("&amp;", "&"), await multipart.bytes(), {
      "content-type": multipart.type,
      origin: new URL(app.baseUrl).origin,
    });
  };
  const saved = await upload("codex", codexFile());
  expect(String(saved.body)).toContain("in 1 hour");
  expect(String(saved.body)).not.toContain(JSON.parse(codexFile()).tokens.access_token);
  const rejected = await upload("claude", claudeFile(now - 1));
  expect(rejected.status).toBe(400);
  expect(String(rejected.body)).not.toContain(Buffer.from(claudeFile(now - 1)).toString("base64"));
  expect((await app.send("GET", "/api/v1/agent-logins")).body).toMatchObject([{ agent: "codex" }]);
  await post("/settings/models/logins/remove", { agent: "codex" });
  expect((await app.send("GET", "/api/v1/agent-logins")).body).toEqual([]);
});
