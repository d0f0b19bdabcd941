import { expect, test } from "bun:test";
import { join } from "node:path";
import type { AgentEvent } from "../src/agents/agent.ts";
import { scriptedAgent, testApp } from "./support/app.ts";
import { answer, judgedApps, says } from "./support/judged.ts";

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const hexDigits = "0123456789abcdef";
let seed = 20261122;
/** Characters as in a real secret. Made here, because a scanner of this repository would report them. */
const some = (count: number, from = letters + hexDigits.slice(0, 10)) =>
  Array.from({ length: count }, () => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return from[Math.floor((seed / 2147483648) * from.length)];
  }).join("");
const hex = (count: number) => some(count, hexDigits);
const word = some(20);

/** What surrounds a secret, `*` its place, and the secret. */
const kinds: Record<string, [text: string, secret: string]> = {
  "GitHub personal": ["GITHUB_TOKEN=*", `ghp_${some(36)}`],
  "GitHub OAuth": ["git clone https://*@github.com/acme/app", `gho_${some(36)}`],
  "GitHub app": ["token *", `ghs_${some(36)}`],
  "GitHub fine-grained": ["Use * here.", `github_pat_${some(22)}_${some(59)}`],
  GitLab: ["PRIVATE-TOKEN: *", `glpat-${some(20)}`],
  "GitLab runner": ["register --token *", `glrt-${some(20)}`],
  "Slack bot": ['{"token":"*"}', `xoxb-${some(12, "123456789")}-${some(12, "123456789")}-${some(24)}`],
  "Slack app": ["*", `xapp-1-${some(11)}-${some(13, "123456789")}-${hex(64)}`],
  "Slack webhook": ["curl -d x *", `https://hooks.slack.com/services/T${some(10)}/B${some(10)}/${some(24)}`],
  "Stripe live": ["stripe.api_key = '*'", `sk_live_${some(24)}`],
  "Stripe restricted": ["*", `rk_live_${some(24)}`],
  "Stripe webhook": ["*", `whsec_${some(32)}`],
  npm: ["//registry.npmjs.org/:_authToken=*", `npm_${some(36)}`],
  PyPI: ["password = *", `pypi-AgEIcHlwaS5vcmc${some(60)}`],
  "Docker Hub": ["docker login -p *", `dckr_pat_${some(27)}`],
  "Hugging Face": ["HF_TOKEN=*", `hf_${some(34)}`],
  SendGrid: ["*", `SG.${some(22)}.${some(43)}`],
  Brevo: ["*", `xkeysib-${hex(64)}-${some(16)}`],
  Shopify: ["X-Shopify-Access-Token: *", `shpat_${hex(32)}`],
  DigitalOcean: ["*", `dop_v1_${hex(64)}`],
  "HashiCorp Vault": ["*", `hvs.${some(90)}`],
  "Azure client secret": ["AZURE_CLIENT_SECRET=*", `${some(3)}8Q~${some(34)}`],
  "Azure storage": ["DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=*;EndpointSuffix=x", `${some(86)}==`],
  "Azure SAS": ["https://acme.blob.core.windows.net/a?sv=2024-01-01&sig=*", `${some(40)}%3D`],
  Anthropic: ["\\n*", `sk-ant-api03-${some(93)}AA`],
  OpenAI: ["OPENAI_API_KEY=*", `sk-proj-${some(74)}T3BlbkFJ${some(74)}`],
  OpenRouter: ["*", `sk-or-v1-${hex(64)}`],
  "Google API": ["https://maps.googleapis.com/?key=*", `AIza${some(35)}`],
  "Google OAuth": ["*", `ya29.${some(60)}`],
  AWS: ["aws_access_key_id = *", `AKIA${some(16, letters.slice(0, 26))}`],
  "AWS signature": ["https://a.s3.amazonaws.com/b?X-Amz-Date=1&X-Amz-Signature=*", hex(64)],
  Telegram: ["https://api.telegram.org/bot*/getMe", `${some(9, "123456789")}:AA${some(33)}`],
  Grafana: ["*", `glsa_${some(32)}_${hex(8)}`],
  Linear: ["*", `lin_api_${some(40)}`],
  "an access token in a URL": ["https://api.acme.dev/v1?page=1&access_token=*&x=1", word],
  "a password in a form": ["user=ada&password=*", `hunter-${word}`],
  "a password in JSON": ['{\\"user\\": \\"ada\\", \\"password\\": \\"*\\"}', word],
  "a password in YAML": ['db_password: "*"', word],
  "a secret in code": ["const clientSecret = '*';", word],
  "a cookie": ["Cookie: theme=dark; session=*; lang=en", word],
  "a cookie that is set": ["Set-Cookie: sid=*; Path=/; HttpOnly", word],
  "a password in a URL": ["postgres://admin:*@db.internal:5432/x", `hunter-${word}`],
  "a bearer token": ["Authorization: Bearer *", `token-${word}`],
};

const { judged } = judgedApps();

/** The texts of thoughts as they are stored. */
async function stored(texts: string[]): Promise<string[]> {
  const agent = scriptedAgent(async function* (): AsyncGenerator<AgentEvent> {
    for (const text of texts) yield { type: "thought", text, by: "rule" };
    yield { type: "end", outcome: "not_judged", reason: "scripted" };
  });
  const app = testApp({ agent });
  const { id } = (await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
  await app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  return app.db.$client
    .query<{ text: string }, []>("select data ->> 'text' text from session_events where type = 'thought' order by seq")
    .all()
    .map(({ text }) => text);
}

test(`${Object.keys(kinds).length} kinds of secrets are not stored`, async () => {
  const all = Object.entries(kinds);
  const texts = await stored(all.map(([, [text, secret]]) => text.replace("*", secret)));
  expect(texts.length).toBe(all.length);
  for (const [i, [name, [, secret]]] of all.entries())
    expect([name, texts[i]?.includes(secret.slice(-16)), texts[i]?.includes("[redacted]")]).toEqual([
      name,
      false,
      true,
    ]);
});

test("properties that are named as secrets are not stored", async () => {
  const names = ["password", "Authorization", "cookie", "x-api-key", "client_secret", "accessToken", "api-key"];
  const input = Object.fromEntries(names.map((name) => [name, word]));
  const agent = scriptedAgent(async function* (): AsyncGenerator<AgentEvent> {
    yield { type: "tool_call", id: "1", tool: "http_request", input };
    yield { type: "end", outcome: "not_judged", reason: "scripted" };
  });
  const app = testApp({ agent });
  const { id } = (await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
  await app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  expect(Buffer.from(app.db.$client.serialize()).includes(word)).toBe(false);
});

test("a model key that is pasted into a prompt is in no event of a judge and in no report or log", async () => {
  const key = "operator-key-of-letters-only";
  const quoted = { keyFinding: `The key ${key} was used.`, verdict: Buffer.from(key).toString("base64") };
  const { run, db } = judged({ turns: [says(answer(quoted))], env: { OPENAI_COMPATIBLE_API_KEY: key } });
  const { report, trace } = await run({ endGoal: `The SDK was installed with ${key}. Its three rows were printed.` });
  const names = trace.flatMap((event: { type: string; name?: string }) =>
    event.type === "milestone" ? event.name : [],
  );
  expect(names).toContain("judged");
  expect(report.judge.parts.length).toBe(2);
  const rows = db.$client.query("select data from session_events union all select judge from reports").all();
  for (const spelling of [key, Buffer.from(key).toString("base64").slice(0, 20)])
    expect(JSON.stringify([rows, report.judge, report.keyFinding, report.verdict]).includes(spelling)).toBe(false);
});

test.each([
  'curl -H "Authorization: Bearer $ACME_TOKEN" https://api.acme.dev?api_key=YOUR_API_KEY',
  "Authorization: Bearer <your-access-token>",
  'const client = new Acme({ apiKey: process.env.ACME_API_KEY, password: "your-password" });',
  "password: string, at least 12 characters. secret: required. token = get_token(user_id=42)",
  "postgres://user:password@localhost:5432/mydb and mysql://root:$MYSQL_PASSWORD@db/app",
  "Cookie: name=value; we use cookies: they=keep you signed in",
  "Keys start with sk-ant-, ghp_ or AIza, for example ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.",
  '"integrity": "sha512-4bYm+dq0aWbW0cBG6w3Yw8NhWgS0NuIq5pMYLxK5L7Fh2YjL2M0cJ8zJtVf9gqQ3e1Kq7w2s5s6r8u9v0x1y2z=="',
  "commit 5e0db62ccc98a7f899e5ac7903c8354c3685d693, run 0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20",
  "?token=<token>&sig={signature}&next=/home?password=***",
])("ordinary text is stored as it is: %s", async (text) => {
  expect(await stored([text])).toEqual([text]);
});

test("real documentation is stored as it is", async () => {
  const folder = join(import.meta.dir, "..", "node_modules", "bun-types", "docs");
  const files = [...new Bun.Glob("{runtime,guides}/**/*.mdx").scanSync(folder)].sort().slice(0, 150);
  const texts = (await Promise.all(files.map((file) => Bun.file(join(folder, file)).text()))).map((text) =>
    text.slice(0, 8000),
  );
  expect(texts.length).toBe(150);
  expect(await stored(texts)).toEqual(texts);
});
