import { expect, test } from "bun:test";
import { join } from "node:path";
import type { AgentEvent } from "../src/agents/agent.ts";
import { scriptedAgent, testApp } from "./support/app.ts";
import { answer, judgedApps, says } from "./support/judged.ts";

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const hexDigits = "0123456789abcdef";
let seed = 20261122;
/** Characters like those in a real secret. They are made here because a scanner of this repository would report them. */
const some = (count: number, from = letters + hexDigits.slice(0, 10)) =>
  Array.from({ length: count }, () => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return from[Math.floor((seed / 2147483648) * from.length)];
  }).join("");
const hex = (count: number) => some(count, hexDigits);
const word = some(20);

/** The text around a secret, with `*` in its place, and the secret. */
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
  "a database password": ["export DATABASE_PASSWORD=*", word],
  "a password without digits": ["DATABASE_PASSWORD=*", "correct-horse-battery"],
  "a token of a service": ["MY_SERVICE_TOKEN=*", word],
  "a password of Postgres": ["PGPASSWORD=* psql -h db.internal", `hunter-${word}`],
  "a password of MySQL": ["MYSQL_PWD=*", word],
  Datadog: ["DD_API_KEY=*", hex(32)],
  Heroku: ["HEROKU_API_KEY=*", crypto.randomUUID()],
  Cloudflare: ["CLOUDFLARE_API_TOKEN=*", some(40)],
  "a variable in PowerShell": ["$env:ACME_API_TOKEN = '*'", word],
  "a variable in JSON": ['{"env": {"ACME_API_TOKEN": "*"}}', word],
  "a key in YAML": ["acme:\n  api_key: *\n  region: eu", word],
  "a password in .netrc": ["machine api.acme.dev\n  login ada\n  password *\n", word],
  "a password in a line of .netrc": ["machine api.acme.dev login ada password *", word],
  "a password in an INI file": ["[client]\nuser = ada\npassword = *\n", word],
  "X-Api-Key": ["X-Api-Key: *", word],
  "X-Auth-Token": ["> x-auth-token: *\r\n> accept: */*", word],
  "X-Access-Token": ["curl -H 'X-Access-Token: *' https://api.acme.dev/", word],
  "PRIVATE-TOKEN": ['curl --header "PRIVATE-TOKEN: *" https://git.acme.dev/api', word],
  "X-Vault-Token": ["X-Vault-Token: *", word],
  "a token in a URL": ["https://api.acme.dev/v1?jwt=*&page=2", word],
  "a token with a prefix in a URL": ["https://api.acme.dev/v1?api_token=*&page=2", word],
  "an encoded URL": ["https://acme.dev/?next=https%3A%2F%2Fapi.acme.dev%2F%3Ftoken%3D*%26page%3D2", word],
  "a DSN": ["https://*@o450.ingest.sentry.io/450", hex(32)],
  "a DSN with a secret": ["https://public:*@sentry.acme.dev/2", hex(32)],
  "a token in the URL of a clone": ["git clone https://*@git.acme.dev/acme/app.git", word],
  "a password in the URL of a clone": ["git clone https://ada:*@git.acme.dev/acme/app.git", word],
  "a password with an @": ["psql postgresql://ada:p@*@db.internal/app", word],
  "curl -u": ["curl -s -u admin:* https://api.acme.dev/", word],
  "curl -u without digits": ["curl -u 'admin:*' https://api.acme.dev/", "correct-horse"],
  "curl --user": ["curl https://api.acme.dev/?a=1\\&b=2 \\\n  --user admin:*", word],
  "curl -u, joined": ["curl -uadmin:* https://api.acme.dev/", word],
  "wget --password": ["wget --user ada --password * https://acme.dev/a", word],
  "wget --http-password": ["wget --http-password=* https://acme.dev/a", word],
  "mysql -p": ["mysql -h db -u root -p* app", word],
  "mysqldump -p": ["mysqldump -uroot -p'*' app > dump.sql", `correct-horse`],
  "docker login": ["docker login -u ada -p * registry.acme.dev", word],
  "redis-cli": ["redis-cli -h cache -a * ping", word],
  "--token": ["acme deploy --token *", word],
  "--api-key": ["acme deploy --api-key *", word],
  "--api-key=": ["acme deploy --api-key=*", word],
  "an option in a list": ['["acme", "--auth-token", "*"]', word],
  "New Relic": ["*", `NRAK-${some(27, "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789")}`],
  Doppler: ["*", `dp.pt.${some(43)}`],
  "Grafana Cloud": ["*", `glc_${some(80)}`],
  "Fly.io": ["*", `fo1_${some(43)}`],
  Supabase: ["*", `sb_secret_${some(31)}`],
  Notion: ["*", `secret_${some(43)}`],
  Discord: ["*", `M${some(25)}.${some(6)}.${some(38)}`],
  "Twilio key": ["*", `SK${hex(32)}`],
  "Twilio token": ["curl https://api.twilio.com/ -u *", `AC${hex(32)}:${hex(32)}`],
};

const { judged } = judgedApps();

/** A completed run of an agent. */
async function ran(agent: ReturnType<typeof scriptedAgent>) {
  const app = testApp({ agent });
  const { id } = (await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
  await app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  return app;
}

/** The texts of thoughts as they are stored. */
async function stored(texts: string[]): Promise<string[]> {
  const agent = scriptedAgent(async function* (): AsyncGenerator<AgentEvent> {
    for (const text of texts) yield { type: "thought", text, by: "rule" };
    yield { type: "end", outcome: "not_judged", reason: "scripted" };
  });
  const app = await ran(agent);
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

test("properties whose names mean secrets are not stored", async () => {
  const names = [
    ...["password", "Authorization", "cookie", "x-api-key", "client_secret", "accessToken", "api-key"],
    ...["DATABASE_PASSWORD", "MY_SERVICE_TOKEN", "PRIVATE-TOKEN", "X-Access-Token", "token", "jwt"],
  ];
  const kept = { page_token: `page-1-${word}`, token: "sha256", secret: "required", password: "string" };
  const input = { ...Object.fromEntries(names.map((name) => [name, word])), kept, password: "hunter2" };
  const agent = scriptedAgent(async function* (): AsyncGenerator<AgentEvent> {
    yield { type: "tool_call", id: "1", tool: "http_request", input };
    yield { type: "end", outcome: "not_judged", reason: "scripted" };
  });
  const app = await ran(agent);
  const [row] = app.db.$client
    .query<{ data: string }, []>("select data from session_events where type = 'tool_call'")
    .all();
  const shown = JSON.parse(row?.data ?? "{}").input;
  expect(shown).toEqual({ ...Object.fromEntries(names.map((name) => [name, "[redacted]"])), kept });
});

const body = Array.from({ length: 20 }, () => some(64));
const pem = ["-----BEGIN RSA PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "", ...body, "-----END RSA PRIVATE KEY-----"];

test("a private key is not stored, however its text is split into events", async () => {
  const whole = pem.join("\n");
  const splits: Record<string, string[]> = {
    lines: pem,
    "lines with ends": pem.map((line) => `${line}\n`),
    "numbered lines": pem.map((line, i) => `${String(i + 1).padStart(6)}\t${line}`),
    halves: [whole.slice(0, 700), whole.slice(700)],
    "a split start": [whole.slice(0, 17), whole.slice(17, 400), whole.slice(400)],
    "a split end": [whole.slice(0, -12), whole.slice(-12)],
    "halves in JSON": [JSON.stringify(whole).slice(0, 700), JSON.stringify(whole).slice(700)],
    OpenSSH: pem.map((line) => line.replace("RSA", "OPENSSH")),
  };
  for (const [name, parts] of Object.entries(splits)) {
    const texts = await stored(["$ cat key", ...parts, "Done, it has 20 lines.", "one-word"]);
    const all = texts.join("");
    expect([name, body.filter((line) => all.includes(line) || all.includes(line.slice(0, 30)))]).toEqual([name, []]);
    expect(texts[0]).toBe("$ cat key");
    expect(texts.slice(-2)).toEqual(["Done, it has 20 lines.", "one-word"]);
  }
});

test("a private key is not stored if its lines are a list, or mixed with the lines of another command", async () => {
  const agent = scriptedAgent(async function* (): AsyncGenerator<AgentEvent> {
    yield { type: "tool_call", id: "0", tool: "write", input: { lines: pem } };
    for (const [i, text] of pem.entries()) {
      yield { type: "message", id: "1", text };
      yield { type: "message", id: "2", text: `line${i}` };
    }
    yield { type: "end", outcome: "not_judged", reason: "scripted" };
  });
  const app = await ran(agent);
  const data = Buffer.from(app.db.$client.serialize());
  expect(body.filter((line) => data.includes(line))).toEqual([]);
  const others = "select count(*) n from session_events where data ->> 'text' like 'line%'";
  expect(app.db.$client.query<{ n: number }, []>(others).get()).toEqual({ n: pem.length });
});

test("text after an incomplete private key is stored", async () => {
  const texts = [
    "A key starts with -----BEGIN PRIVATE KEY-----",
    "Store it in a file, and continue.",
    "token",
    "Next.",
  ];
  expect((await stored(texts)).slice(1)).toEqual(texts.slice(1));
});

test("a model key pasted into a prompt is in no judge event, report or log", async () => {
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
  `export ACME_API_KEY=YOUR_API_KEY DATABASE_PASSWORD=<password> MY_SERVICE_TOKEN=\${TOKEN} PGPASSWORD=$PGPASSWORD`,
  "OPENAI_API_KEY=sk-xxxx ANTHROPIC_API_KEY=sk-ant-your-key DD_API_KEY=**** POSTGRES_PASSWORD=postgres",
  "api_key: YOUR_API_KEY\npassword: required\ntoken: str = Field(...)\nsecret: Uint8Array\naccess_token: XOAuth2Token\nid_token: getURLForID",
  '"token": {"type": "string"}, "password": {"type": "string", "minLength": 12}',
  "max_tokens=100 tokens: 5,000 page_token=abc1234567 MAX_TOKEN=4096 next_page_token: x1y2z3w4v5",
  'client = Acme(api_key=api_key, token=os.environ["ACME_TOKEN"], secret=settings.SECRET_2)',
  "const token = process.env.ACME_TOKEN; const apiKey = config.keys.acme1; const password = readLine2();",
  "acme login --token $TOKEN --api-key <key> --password PASSWORD --secret id=npm1token,src=.npmrc",
  "--token is required. --password prompts for it. Use --api-key to pass a 32-character key.",
  "curl -u user:password https://api.acme.dev/ and curl -u $USER:$TOKEN, or curl --user <name>:<password>",
  "docker run -u 1000:1000 -p 8080:80 app && ssh login -p 2222 && mkdir -p src/app1 && mysql -u root -p app",
  "X-Api-Key: your-api-key, X-Auth-Token: <token>, PRIVATE-TOKEN: $GITLAB_TOKEN, x-request-id: 1a2b3c4d5e",
  "The password: at least 8 characters. Token: a 64-bit value. secret: sha256 of the body. token: 2026-01-01T00:00:00Z",
  "https://github.com/acme/app/blob/main/README.md?token%3D%3Ctoken%3E and git@github.com:acme/app1234567890abc.git",
  "machine api.acme.dev login <name> password <password>; the account name and password fields",
  "type Login = { password: string; token?: string; apiKey: ApiKey2; privateKey: Uint8Array }",
])("ordinary text is stored unchanged: %s", async (text) => {
  expect(await stored([text])).toEqual([text]);
});

test("real documentation is stored unchanged", async () => {
  const folder = join(import.meta.dir, "..", "node_modules", "bun-types", "docs");
  const files = [...new Bun.Glob("{runtime,guides}/**/*.mdx").scanSync(folder)].sort().slice(0, 150);
  const texts = (await Promise.all(files.map((file) => Bun.file(join(folder, file)).text()))).map((text) =>
    text.slice(0, 8000),
  );
  expect(texts.length).toBe(150);
  expect(await stored(texts)).toEqual(texts);
});
