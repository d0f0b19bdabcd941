import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { lazy } from "../../src/once.ts";
import { buildExecutable, call, client, emptyFolder, executable, furnish, serve } from "../support/executable.ts";
import { makeCertificate, startMailServer } from "../support/installation.ts";
import { startOidc } from "../support/oidc.ts";
import { freePort, startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";

/** What `evald doctor --json` prints for a finding. */
type Result = {
  check: string;
  subject: string | null;
  state: string;
  cause: string | null;
  remedy: string | null;
  command: string | null;
};

type Env = Record<string, string>;
const dayMs = 86_400_000;
const secretKey = Buffer.alloc(32, 7).toString("base64");
const closings: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closings.reverse()) await close();
});

/** A server on loopback, without or with TLS. */
function startServer(fetch: (request: Request) => Response | Promise<Response>, tls?: Bun.TLSOptions): string {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch, ...(tls && { tls }) });
  closings.push(() => server.stop(true));
  return `http${tls ? "s" : ""}://127.0.0.1:${server.port}`;
}

const webhook = { kind: "webhook", url: "https://example.com/hook", events: ["run.completed"] };

/** An installation whose every connection works, and its folder with a database that a service has used. */
let healthy: { cwd: string; env: Env; key: string; expired: string; nowhere: string; elsewhere: string };

beforeAll(async () => {
  await buildExecutable();
  const mail = startMailServer();
  const oidc = startOidc({ id: "evald", secret: "secret" });
  const redis = await startRedis({ password: "secret" });
  closings.push(mail.close, oidc.close, redis.kill, () => expect(mail.state.mails).toBe(0));
  const hasKey = ({ headers }: Request) => headers.get("authorization") === "Bearer good";
  const model = startServer((request) =>
    hasKey(request) ? Response.json({ data: [] }) : new Response("no", { status: 401 }),
  );
  const collector = startServer((request) =>
    new URL(request.url).pathname === "/v1/traces" ? Response.json({}) : new Response("no", { status: 404 }),
  );
  const gateway = startServer(() => Response.json({ error: { type: "unauthorized" } }, { status: 401 }));
  const own = await makeCertificate(30);
  const old = await makeCertificate(-1);
  const cwd = emptyFolder();
  const env = {
    EVALD_PORT: String(await freePort()),
    EVALD_SECRET_KEY: secretKey,
    EVALD_SMTP_URL: mail.url(),
    EVALD_MAIL_FROM: "evald@example.com",
    EVALD_OIDC_ISSUER: oidc.issuer,
    EVALD_OIDC_CLIENT_ID: "evald",
    EVALD_OIDC_CLIENT_SECRET: "secret",
    OPENAI_COMPATIBLE_BASE_URL: `${model}/v1`,
    OPENAI_COMPATIBLE_API_KEY: "good",
    EVALD_OTLP_URL: `${collector}/v1/traces`,
    EVALD_REDIS_URL: redis.url,
    EVALD_GATEWAY_URL: `${gateway}/gateway`,
    HTTP_PROXY: model,
    NO_PROXY: "127.0.0.1",
    NODE_EXTRA_CA_CERTS: own.certificate,
  };
  const { key } = await furnish(cwd);
  const service = await serve({ cwd, env: { EVALD_SECRET_KEY: secretKey } });
  expect((await client(service.url, key)("POST", "/api/v1/destinations", webhook)).status).toBe(201);
  await service.stop();
  healthy = {
    ...{ cwd, env, key, expired: old.certificate },
    nowhere: `127.0.0.1:${await freePort()}`,
    elsewhere: startServer(() => new Response("hello")),
  };
}, 300_000);

/** A copy of the healthy installation. */
function copy(): { cwd: string; data: string; write: (sql: string) => void } {
  const cwd = emptyFolder();
  const data = join(cwd, "data");
  cpSync(join(healthy.cwd, "data"), data, { recursive: true });
  chmodSync(data, 0o700);
  return {
    ...{ cwd, data },
    write(sql) {
      const db = new Database(join(data, "evald.db"));
      db.run(sql);
      db.close();
    },
  };
}

/** Runs the doctor in an installation. `env` changes the healthy one. */
async function diagnose(cwd: string, env: Env = {}, under: string[] = []) {
  const { stdout, stderr, code } = await call(["doctor", "--json"], { cwd, env: { ...healthy.env, ...env }, under });
  if (!stdout.startsWith("[")) throw new Error(stderr);
  const results: Result[] = JSON.parse(stdout);
  const problems = results.filter(({ state }) => state === "failed" || state === "warning");
  for (const { remedy } of problems) expect(remedy).not.toBe("");
  return { code, results, problems, causes: [...new Set(problems.map(({ cause }) => cause))].sort() };
}

test("a healthy installation has no problem, and every connection was tried", async () => {
  const { code, problems, results } = await diagnose(healthy.cwd);
  expect([code, problems]).toEqual([0, []]);
  const stateOf = (check: string) => results.find((each) => each.check === check)?.state;
  const tried = [
    "database",
    "secret_key",
    "clock",
    "port",
    "smtp",
    "oidc",
    "models",
    "otlp",
    "redis",
    "gateway",
    "proxies",
  ];
  expect(tried.map((check) => [check, stateOf(check)])).toEqual(tried.map((check) => [check, "ok"]));
}, 60_000);

/** A fault of the settings, and what its remedy changes in them. */
type Fault = { cause: string; plant: () => Env; remedy: (finding: Result) => Env | Promise<Env> };

/** Sets variables as in the healthy installation. */
const correct =
  (...names: string[]) =>
  (): Env =>
    Object.fromEntries(names.map((name) => [name, healthy.env[name] ?? ""]));

/** Runs the command of a finding, as its reader would. Returns what it prints. Not synchronously: servers of this process may answer it. */
async function follow({ command }: Result, { cwd = healthy.cwd, port = 0, backup = "" } = {}): Promise<string> {
  const child = Bun.spawn(["sh", "-c", (command ?? "").replace("BACKUP", backup)], {
    cwd,
    env: {
      ...process.env,
      PATH: `${programs()}:${process.env.PATH}`,
      REDIS_PORT: String(port),
      REDISCLI_AUTH: "secret",
    },
    stderr: "pipe",
  });
  const [text, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`${command}: ${error}`);
  return text;
}

/** A folder with the programs that commands name, for this machine: no sudo is needed, and Redis has a port of its own. */
const programs = lazy(() => {
  const folder = emptyFolder();
  symlinkSync(executable, join(folder, "evald"));
  writeFileSync(join(folder, "sudo"), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 });
  const redis = Bun.which("redis-cli");
  writeFileSync(join(folder, "redis-cli"), `#!/bin/sh\nexec ${redis} -p "$REDIS_PORT" "$@"\n`, { mode: 0o755 });
  return folder;
});

const copyOfExpired = lazy(() => {
  const file = join(emptyFolder(), "authorities.pem");
  cpSync(healthy.expired, file);
  return file;
});

/** By check, because a check names one cause at a time. */
const faults: Record<string, Fault[]> = {
  smtp: [
    {
      cause: "smtp_unreachable",
      plant: () => ({ EVALD_SMTP_URL: `smtp://${healthy.nowhere}` }),
      remedy: correct("EVALD_SMTP_URL"),
    },
    {
      cause: "smtp_login_refused",
      plant: () => ({ EVALD_SMTP_URL: healthy.env.EVALD_SMTP_URL?.replace("user:password", "user:wrong") ?? "" }),
      remedy: correct("EVALD_SMTP_URL"),
    },
    {
      cause: "smtp_failed",
      plant: () => ({ EVALD_SMTP_URL: startWrongServer() }),
      remedy: correct("EVALD_SMTP_URL"),
    },
  ],
  oidc: [
    {
      cause: "oidc_unreachable",
      plant: () => ({ EVALD_OIDC_ISSUER: `http://${healthy.nowhere}` }),
      remedy: correct("EVALD_OIDC_ISSUER"),
    },
    {
      cause: "oidc_wrong_issuer",
      plant: () => ({ EVALD_OIDC_ISSUER: `${healthy.env.EVALD_OIDC_ISSUER}/realm` }),
      remedy: async (finding) => ({ EVALD_OIDC_ISSUER: JSON.parse(await follow(finding)).issuer }),
    },
    {
      cause: "oidc_invalid",
      plant: () => ({ EVALD_OIDC_ISSUER: healthy.elsewhere }),
      remedy: correct("EVALD_OIDC_ISSUER"),
    },
    {
      cause: "oidc_no_keys",
      plant: () => ({ EVALD_OIDC_ISSUER: issuerWithoutKeys() }),
      async remedy(finding) {
        expect(JSON.parse(await follow(finding)).jwks_uri).toContain("/keys");
        return correct("EVALD_OIDC_ISSUER")();
      },
    },
  ],
  models: [
    {
      cause: "model_unreachable",
      plant: () => ({ OPENAI_COMPATIBLE_BASE_URL: `http://${healthy.nowhere}/v1` }),
      remedy: correct("OPENAI_COMPATIBLE_BASE_URL"),
    },
    {
      cause: "model_key_refused",
      plant: () => ({ OPENAI_COMPATIBLE_API_KEY: "wrong" }),
      remedy: correct("OPENAI_COMPATIBLE_API_KEY"),
    },
    {
      cause: "model_failed",
      plant: () => ({ OPENAI_COMPATIBLE_BASE_URL: `${answering(503)}/v1` }),
      async remedy(finding) {
        expect(await follow(finding)).toContain("answer 503");
        return correct("OPENAI_COMPATIBLE_BASE_URL")();
      },
    },
  ],
  otlp: [
    {
      cause: "otlp_unreachable",
      plant: () => ({ EVALD_OTLP_URL: `http://${healthy.nowhere}/v1/traces` }),
      remedy: correct("EVALD_OTLP_URL"),
    },
    {
      cause: "otlp_failed",
      plant: () => ({ EVALD_OTLP_URL: (healthy.env.EVALD_OTLP_URL ?? "").replace("/v1/traces", "/") }),
      remedy: ({ subject }) => ({ EVALD_OTLP_URL: `${subject?.replace(/\/$/, "")}/v1/traces` }),
    },
    {
      cause: "otlp_refused",
      plant: () => ({ EVALD_OTLP_URL: collectorWithKey() }),
      remedy: () => ({ EVALD_OTLP_HEADERS: "authorization=Bearer good" }),
    },
  ],
  gateway: [
    {
      cause: "gateway_unreachable",
      plant: () => ({ EVALD_GATEWAY_URL: `http://${healthy.nowhere}/gateway` }),
      remedy: correct("EVALD_GATEWAY_URL"),
    },
    {
      cause: "gateway_elsewhere",
      plant: () => ({ EVALD_GATEWAY_URL: healthy.elsewhere }),
      async remedy(finding) {
        const changes = correct("EVALD_GATEWAY_URL")();
        const command = finding.command?.replace(finding.subject ?? "", changes.EVALD_GATEWAY_URL ?? "") ?? null;
        expect(await follow({ ...finding, command })).toContain("401");
        return changes;
      },
    },
  ],
  redis: [
    {
      cause: "redis_unreachable",
      plant: () => ({ EVALD_REDIS_URL: `redis://${healthy.nowhere}` }),
      remedy: correct("EVALD_REDIS_URL"),
    },
  ],
  proxies: [
    {
      cause: "proxy_unreachable",
      plant: () => ({ HTTP_PROXY: `http://${healthy.nowhere}` }),
      remedy: () => ({ HTTP_PROXY: "" }),
    },
  ],
  authorities: [
    {
      cause: "authority_unreadable",
      plant: () => ({ NODE_EXTRA_CA_CERTS: "/nonexistent/ca.pem" }),
      remedy: correct("NODE_EXTRA_CA_CERTS"),
    },
    {
      cause: "authority_expired",
      plant: () => ({ NODE_EXTRA_CA_CERTS: copyOfExpired() }),
      async remedy(finding) {
        expect(await follow(finding)).toContain("notAfter=");
        cpSync(healthy.env.NODE_EXTRA_CA_CERTS ?? "", copyOfExpired());
        return { NODE_EXTRA_CA_CERTS: copyOfExpired() };
      },
    },
    {
      cause: "authority_invalid",
      plant: () => ({ NODE_EXTRA_CA_CERTS: withoutCertificate() }),
      async remedy(finding) {
        cpSync(healthy.env.NODE_EXTRA_CA_CERTS ?? "", finding.subject ?? "");
        expect(await follow(finding)).toContain("notAfter=");
        return {};
      },
    },
  ],
  secret_key: [
    {
      cause: "secret_key_changed",
      plant: () => ({ EVALD_SECRET_KEY: Buffer.alloc(32, 8).toString("base64") }),
      remedy: correct("EVALD_SECRET_KEY"),
    },
    { cause: "secret_key_missing", plant: () => ({ EVALD_SECRET_KEY: "" }), remedy: correct("EVALD_SECRET_KEY") },
  ],
  port: [
    {
      cause: "port_taken",
      plant: () => ({ EVALD_PORT: new URL(healthy.elsewhere).port }),
      async remedy(finding) {
        expect(await follow(finding)).toContain(`:${finding.subject}`);
        return { EVALD_PORT: String(await freePort()) };
      },
    },
    {
      cause: "host_unavailable",
      plant: () => ({ EVALD_HOST: "192.0.2.1" }),
      remedy: () => ({ EVALD_HOST: "127.0.0.1" }),
    },
  ],
};

/** A server that answers with this status and says so. */
const answering = (status: number): string => startServer(() => new Response(`answer ${status}`, { status }));

const collectorWithKey = (): string =>
  startServer(({ headers }) =>
    headers.get("authorization") === "Bearer good" ? Response.json({}) : new Response("no", { status: 401 }),
  );

/** An identity provider that has no keys. */
function issuerWithoutKeys(): string {
  const issuer: string = startServer(({ url }) =>
    Response.json(
      url.endsWith("/keys")
        ? { keys: [] }
        : {
            issuer,
            authorization_endpoint: `${issuer}/authorize`,
            token_endpoint: `${issuer}/token`,
            jwks_uri: `${issuer}/keys`,
          },
    ),
  );
  return issuer;
}

function withoutCertificate(): string {
  const file = join(emptyFolder(), "authorities.pem");
  writeFileSync(file, "no certificate\n");
  return file;
}

function startWrongServer(): string {
  const server = startMailServer({ speaks: false });
  closings.push(server.close);
  return server.url();
}

// Each diagnosis takes a second, so faults of different checks are planted together.
const rounds = [0, 1, 2, 3].map((i) => Object.values(faults).flatMap((each) => each[i] ?? []));
test.each(rounds.map((round) => [round.map(({ cause }) => cause).join(", "), round] as const))(
  "%s, and their remedies heal them",
  async (_, round) => {
    const planted = Object.assign({}, ...round.map(({ plant }) => plant())) as Env;
    const found = await diagnose(healthy.cwd, planted);
    expect([found.code, found.causes]).toEqual([1, round.map(({ cause }) => cause).sort()]);
    const healed = { ...planted };
    for (const { cause, remedy } of round) {
      const finding = found.problems.find((each) => each.cause === cause) as Result;
      Object.assign(healed, await remedy(finding));
    }
    expect(await diagnose(healthy.cwd, healed)).toMatchObject({ code: 0, causes: [] });
  },
  60_000,
);

test("a lost secret key is replaced by a new one from the command, once destinations are stored again", async () => {
  const { cwd } = copy();
  const [finding] = (await diagnose(cwd, { EVALD_SECRET_KEY: "" })).problems;
  const env = { EVALD_SECRET_KEY: (await follow(finding as Result)).trim() };
  const service = await serve({ cwd, env });
  const ask = client(service.url, healthy.key);
  const [{ id }] = (await ask("GET", "/api/v1/destinations")).body;
  await ask("DELETE", `/api/v1/destinations/${id}`);
  expect((await ask("POST", "/api/v1/destinations", webhook)).status).toBe(201);
  await service.stop();
  expect(await diagnose(cwd, env)).toMatchObject({ code: 0, causes: [] });
}, 60_000);

test("the certificates of servers, and their authority heals them", async () => {
  const { certificate, key } = await makeCertificate(30);
  const tls = { cert: Bun.file(certificate), key: Bun.file(key) };
  const mail = startMailServer({ tls });
  closings.push(mail.close);
  const issuer: string = startServer(({ url }) => {
    const [authorization_endpoint, token_endpoint, jwks_uri] = ["a", "t", "keys"].map((path) => `${issuer}/${path}`);
    const metadata = { issuer, authorization_endpoint, token_endpoint, jwks_uri };
    return Response.json(url.endsWith("/keys") ? { keys: [{ kty: "RSA" }] } : metadata);
  }, tls);
  const other = startServer(
    ({ url }) =>
      url.includes("/gateway")
        ? Response.json({ error: { type: "unauthorized" } }, { status: 401 })
        : Response.json({ data: [] }),
    tls,
  );
  const env = {
    EVALD_SMTP_URL: mail.url(),
    EVALD_OIDC_ISSUER: issuer,
    OPENAI_COMPATIBLE_BASE_URL: `${other}/v1`,
    EVALD_OTLP_URL: `${other}/v1/traces`,
    EVALD_GATEWAY_URL: `${other}/gateway`,
  };
  const found = await diagnose(healthy.cwd, env);
  expect([found.code, found.causes]).toEqual([
    1,
    ["gateway_certificate", "model_certificate", "oidc_certificate", "otlp_certificate", "smtp_certificate"],
  ]);
  for (const { remedy } of found.problems) expect(remedy).toContain("NODE_EXTRA_CA_CERTS");
  expect((await diagnose(healthy.cwd, { ...env, NODE_EXTRA_CA_CERTS: certificate })).causes).toEqual([]);
}, 60_000);

test("redis_evicts, redis_memory_low, redis_not_persistent, and their commands heal them", async () => {
  const own = await startRedis({ password: "secret", options: ["--maxmemory", "1mb"] });
  closings.push(own.kill);
  const look = () => diagnose(healthy.cwd, { EVALD_REDIS_URL: own.url });
  const port = Number(new URL(own.url).port);
  const small = await look();
  expect(small.causes).toEqual(["redis_memory_low"]);
  await follow(small.problems[0] as Result, { port });
  await own.command("config", "set", "maxmemory-policy", "allkeys-lru");
  await own.command("config", "set", "appendonly", "no");
  const evicting = await look();
  expect([evicting.code, evicting.causes]).toEqual([1, ["redis_evicts", "redis_not_persistent"]]);
  for (const problem of evicting.problems) await follow(problem, { port });
  expect((await look()).causes).toEqual([]);
}, 60_000);

test("redis_open, redis_settings_hidden, and their remedies heal them", async () => {
  const own = await startRedis({ password: "secret" });
  closings.push(own.kill);
  const port = Number(new URL(own.url).port);
  const look = (url = own.url) => diagnose(healthy.cwd, { EVALD_REDIS_URL: url });
  await own.command("acl", "setuser", "default", "-config|get");
  expect((await look()).causes).toEqual(["redis_settings_hidden"]);
  await own.command("acl", "setuser", "default", "+config|get", "nopass");
  const open = await look();
  expect([open.code, open.causes]).toEqual([1, ["redis_open"]]);
  const [problem] = open.problems as [Result];
  await follow({ ...problem, command: problem.command?.replace("PASSWORD", "another") ?? null }, { port });
  expect((await look(own.url.replace("secret", "another"))).causes).toEqual([]);
}, 60_000);

describe("the data", () => {
  test("data_directory_visible, database_unknown, and a directory of its own heals both", async () => {
    const { cwd, write } = copy();
    const visible = await diagnose(cwd, { EVALD_DATA_DIR: "/usr/share/evald-none" });
    expect([visible.code, visible.causes]).toEqual([1, ["data_directory_visible"]]);
    write("update __drizzle_migrations set hash = 'x'");
    expect(await diagnose(cwd)).toMatchObject({ code: 1, causes: ["database_unknown"] });
    expect((await diagnose(cwd, { EVALD_DATA_DIR: join(emptyFolder(), "data") })).causes).toEqual([]);
  }, 60_000);

  test("database_unreadable, database_read_only", async () => {
    const { cwd, data } = copy();
    const file = join(data, "evald.db");
    const readOnly = `mount --bind ${file} ${file} && mount -o remount,ro,bind ${file} && exec "$0" "$@"`;
    if (process.getuid?.() === 0) {
      const { causes } = await diagnose(cwd, {}, ["unshare", "--mount", "sh", "-c", readOnly]);
      expect(causes).toContain("database_read_only");
    }
    renameSync(file, `${file}.away`);
    mkdirSync(file, { mode: 0o700 });
    const { code, causes, problems } = await diagnose(cwd);
    expect([code, causes]).toEqual([1, ["database_unreadable"]]);
    expect(await follow(problems[0] as Result)).toContain("evald.db.away");
    rmSync(file, { recursive: true });
    renameSync(`${file}.away`, file);
    expect((await diagnose(cwd)).causes).toEqual([]);
  }, 60_000);

  test("data_exposed", async () => {
    const { cwd, data } = copy();
    chmodSync(data, 0o777);
    chmodSync(join(data, "evald.db"), 0o666);
    const { code, causes, problems } = await diagnose(cwd);
    expect([code, causes]).toEqual([1, ["data_exposed"]]);
    await follow(problems[0] as Result);
    expect((await diagnose(cwd)).causes).toEqual([]);
  }, 60_000);

  test("database_damaged", async () => {
    const { cwd, data } = copy();
    const backup = join(cwd, "copy");
    expect((await call(["backup", backup], { cwd })).code).toBe(0);
    const damages = [
      () => truncateSync(join(data, "evald.db"), 40_000),
      () => writeFileSync(join(data, "evald.db"), "no database ".repeat(1000)),
    ];
    for (const damage of damages) {
      damage();
      const { code, causes, problems } = await diagnose(cwd);
      expect([code, causes]).toEqual([1, ["database_damaged"]]);
      await follow(problems[0] as Result, { backup });
      expect((await diagnose(cwd)).causes).toEqual([]);
    }
  }, 60_000);

  test("database_newer, and it stays as it is", async () => {
    const { cwd, data, write } = copy();
    const backup = join(cwd, "copy");
    expect((await call(["backup", backup], { cwd })).code).toBe(0);
    write("insert into __drizzle_migrations (hash, created_at) values ('x', 9999999999999)");
    const before = Bun.hash(await Bun.file(join(data, "evald.db")).bytes());
    expect(await diagnose(cwd)).toMatchObject({ code: 1, causes: ["database_newer"] });
    expect(Bun.hash(await Bun.file(join(data, "evald.db")).bytes())).toBe(before);
    expect((await call(["restore", backup], { cwd })).code).toBe(0);
    expect((await diagnose(cwd)).causes).toEqual([]);
  }, 60_000);

  test("time_zone_unknown", async () => {
    const { cwd, write } = copy();
    write("update orgs set time_zone = 'Mars/Olympus'");
    expect(await diagnose(cwd)).toMatchObject({ code: 1, causes: ["time_zone_unknown"] });
    expect((await call(["org", "set", "Acme", "--time-zone", "Europe/Berlin"], { cwd })).code).toBe(0);
    expect((await diagnose(cwd)).causes).toEqual([]);
  }, 60_000);

  test("backup_missing, backup_late, and a new backup heals it", async () => {
    const { cwd, data, write } = copy();
    write(`update orgs set created_at = ${Date.now() - 10 * dayMs}`);
    const missing = await diagnose(cwd);
    expect([missing.code, missing.causes]).toEqual([0, ["backup_missing"]]);
    await follow(missing.problems[0] as Result, { cwd: emptyFolder() });
    expect((await diagnose(cwd)).causes).toEqual([]);
    const old = (Date.now() - 9 * dayMs) / 1000;
    utimesSync(join(data, "evald.last-backup"), old, old);
    const late = await diagnose(cwd);
    expect(late.causes).toEqual(["backup_late"]);
    await follow(late.problems[0] as Result, { cwd: emptyFolder() });
    expect((await diagnose(cwd)).causes).toEqual([]);
  }, 60_000);

  test.skipIf(process.getuid?.() !== 0)(
    "data_directory_read_only, disk_full, disk_filling",
    async () => {
      const { cwd, data } = copy();
      const mount = (...args: string[]) => expect(Bun.spawnSync(["mount", ...args]).exitCode).toBe(0);
      mount("-t", "tmpfs", "-o", "size=1g,mode=700", "tmpfs", data);
      closings.push(() => Bun.spawnSync(["umount", "-l", data]));
      const foreign = join(data, "video.mkv");
      expect(Bun.spawnSync(["fallocate", "-l", "700M", foreign]).exitCode).toBe(0);
      const full = await diagnose(cwd);
      expect([full.code, full.causes]).toEqual([1, ["disk_full"]]);
      expect(await follow(full.problems[0] as Result)).toContain(foreign);
      rmSync(foreign);
      expect((await diagnose(cwd)).causes).toEqual([]);
      const samples = (lost: number) =>
        writeFileSync(
          join(data, "evald.disk"),
          JSON.stringify([{ at: Date.now() - 5 * dayMs, freeBytes: 1024 ** 3 + lost }]),
          { mode: 0o600 },
        );
      // In five days, 50 and 500 MiB of 1 GiB.
      samples(50 * 1024 ** 2);
      expect((await diagnose(cwd)).causes).toEqual([]);
      samples(500 * 1024 ** 2);
      expect(await diagnose(cwd)).toMatchObject({ code: 0, causes: ["disk_filling"] });
      mount("-o", "remount,size=8g", data);
      expect((await diagnose(cwd)).causes).toEqual([]);
      mount("-o", "remount,ro", data);
      expect((await diagnose(cwd)).causes).toContain("data_directory_read_only");
      mount("-o", "remount,rw", data);
      expect((await diagnose(cwd)).causes).toEqual([]);
    },
    60_000,
  );
});

describe("the machine", () => {
  test("clock_behind, in a new installation as well", async () => {
    const library = [...new Bun.Glob("/usr/lib/*/faketime/libfaketime.so.1").scanSync("/")][0];
    if (!library) return;
    const past = { LD_PRELOAD: `/${library.replace(/^\//, "")}`, FAKETIME: "@2020-01-01 00:00:00" };
    const fresh = await diagnose(emptyFolder(), past);
    expect([fresh.code, fresh.causes]).toEqual([1, ["clock_behind"]]);
    expect((await diagnose(emptyFolder())).causes).toEqual([]);
  }, 60_000);

  test("clock_differs", async () => {
    let date = new Date(Date.now() + 3600_000).toUTCString();
    const ahead = startServer(() => Response.json({ data: [] }, { headers: { date } }));
    const env = { OPENAI_COMPATIBLE_BASE_URL: `${ahead}/v1` };
    expect(await diagnose(healthy.cwd, env)).toMatchObject({ code: 1, causes: ["clock_differs"] });
    date = new Date().toUTCString();
    expect((await diagnose(healthy.cwd, env)).causes).toEqual([]);
  }, 60_000);

  test("open_files_low", async () => {
    const low = ["prlimit", "--nofile=1024:1024"];
    const { causes, problems } = await diagnose(healthy.cwd, {}, low);
    expect(causes).toContain("open_files_low");
    // Root in a container may not raise it either: there, the limit is that of the container.
    if (Bun.spawnSync([...low, "prlimit", "--nofile=65536"]).exitCode !== 0) return;
    const shell = [
      "sh",
      "-c",
      `${problems.find(({ cause }) => cause === "open_files_low")?.command} && exec "$0" "$@"`,
    ];
    const PATH = `${programs()}:${process.env.PATH}`;
    expect((await diagnose(healthy.cwd, { PATH }, [...low, ...shell])).causes).toEqual([]);
  }, 60_000);

  test("sandbox_missing, browser_missing, also for a browser that doesn't start", async () => {
    const bare = await diagnose(healthy.cwd, { PATH: "/nonexistent" });
    expect(bare.causes).toEqual(["browser_missing", "page_sandbox_missing", "sandbox_missing"]);
    if (process.getuid?.() !== 0) return;
    const fake = join(emptyFolder(), "chromium");
    writeFileSync(fake, "#!/bin/sh\nexit 3\n", { mode: 0o755 });
    const mounted = `mount --bind ${fake} ${realpathSync(Bun.which("chromium") ?? "")} && exec "$0" "$@"`;
    const broken = await diagnose(healthy.cwd, {}, ["unshare", "--mount", "sh", "-c", mounted]);
    expect([broken.code, broken.causes]).toEqual([0, ["browser_missing"]]);
  }, 60_000);

  test("sandbox_missing, workspace_on_disk, program_missing, browser_missing, and the programs heal them", async () => {
    if (process.getuid?.() !== 0) return;
    // Hides programs for one command, as if their packages were not installed.
    const without = (...names: string[]) => {
      const mounts = names.map((name) => `mount --bind /dev/null ${realpathSync(Bun.which(name) ?? "")}`);
      return diagnose(healthy.cwd, {}, ["unshare", "--mount", "sh", "-c", `${mounts.join(" && ")} && exec "$0" "$@"`]);
    };
    const bare = await without("bwrap");
    expect([bare.code, bare.causes]).toEqual([0, ["browser_missing", "page_sandbox_missing", "sandbox_missing"]]);
    expect((await without("nsenter", "git", "chromium")).causes).toEqual([
      "browser_missing",
      "program_missing",
      "workspace_on_disk",
    ]);
    expect((await diagnose(healthy.cwd)).causes).toEqual([]);
  }, 60_000);
});

describe("a running service", () => {
  /** A service of a copy. `env` in place of the healthy one, which the doctor gets or not. */
  async function start(env: Env) {
    const { cwd, data } = copy();
    const service = await serve({ cwd, env: { EVALD_SECRET_KEY: secretKey, ...env } });
    closings.push(() => service.stop("SIGKILL"));
    return { cwd, data, service };
  }
  const readiness = async (url: string) => await (await fetch(`${url}/readyz`)).json();

  test("base_url_unreachable, base_url_elsewhere, and neither behind a proxy that leads to it", async () => {
    let target = "";
    const proxy = startServer(async (request) => {
      const { pathname } = new URL(request.url);
      return await fetch(target + pathname);
    });
    const { cwd, service } = await start({ EVALD_BASE_URL: proxy });
    target = service.url;
    const look = async (url: string) => (await diagnose(cwd, { EVALD_BASE_URL: url })).causes;
    expect(await look(proxy)).toEqual([]);
    expect(await look(`http://${healthy.nowhere}`)).toEqual(["base_url_unreachable"]);
    expect(await look(healthy.elsewhere)).toEqual(["base_url_elsewhere"]);
    // Another evald is also somewhere else.
    const other = await start({});
    expect(await look(other.service.url)).toEqual(["base_url_elsewhere"]);
    service.signal("SIGSTOP");
    expect((await diagnose(cwd, {})).causes).toEqual(["service_silent"]);
    // There is no systemd here: a restart is its end and a start.
    await service.stop("SIGKILL");
    const again = await serve({ cwd, env: { EVALD_SECRET_KEY: secretKey } });
    closings.push(() => again.stop("SIGKILL"));
    expect((await diagnose(cwd, {})).causes).toEqual([]);
  }, 60_000);

  test("names its own problems at /readyz, in metrics and to a doctor without its settings", async () => {
    const metrics = `127.0.0.1:${await freePort()}`;
    const { cwd, service } = await start({
      EVALD_METRICS_ADDRESS: metrics,
      EVALD_SECRET_KEY: "",
      EVALD_BASE_URL: healthy.elsewhere,
      EVALD_SMTP_URL: `smtp://${healthy.nowhere}`,
      EVALD_MAIL_FROM: "evald@example.com",
      EVALD_OIDC_ISSUER: `http://${healthy.nowhere}`,
      EVALD_OIDC_CLIENT_ID: "evald",
      EVALD_OIDC_CLIENT_SECRET: "secret",
      OPENAI_COMPATIBLE_BASE_URL: `http://${healthy.nowhere}`,
      EVALD_OTLP_URL: `http://${healthy.nowhere}/v1/traces`,
    });
    expect((await readiness(service.url)).status).toBe("ready");
    await until("its checks ran", async () => (await readiness(service.url)).problems, 30_000);
    const expected = [
      ...["base_url_elsewhere", "model_unreachable", "oidc_unreachable", "otlp_unreachable"],
      ...["secret_key_missing", "smtp_unreachable"],
    ];
    const { status, problems } = await readiness(service.url);
    expect([status, problems.map(({ cause }: Result) => cause).sort()]).toEqual(["ready", expected]);
    const text = await (await fetch(`http://${metrics}/metrics`)).text();
    expect(text).toContain('evald_check_status{check="smtp"} 2');
    expect(text).toContain('evald_check_status{check="disk"} 0');
    const { stdout, code } = await call(["doctor", "--json"], { cwd });
    const causes = (JSON.parse(stdout) as Result[]).flatMap(({ cause }) => cause ?? []);
    expect([code, causes.sort()]).toEqual([1, expected]);
    expect(await service.stop()).toBe(0);
  }, 60_000);
});

test("the doctor's text says what to do, with a command that works", async () => {
  const { cwd, data } = copy();
  chmodSync(data, 0o777);
  const { env } = healthy;
  const { stdout, code } = await call(["doctor"], { cwd, env });
  const [, command = ""] = /^ {2}(chmod .*)$/m.exec(stdout) ?? [];
  expect([code, command]).toEqual([1, `chmod -R go-rwx ${data}`]);
  expect(Bun.spawnSync(["sh", "-c", command]).exitCode).toBe(0);
  expect((await call(["doctor"], { cwd, env })).code).toBe(0);
}, 60_000);
