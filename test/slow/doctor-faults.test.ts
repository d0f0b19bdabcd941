import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, cpSync, realpathSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildExecutable, call, client, emptyFolder, furnish, serve } from "../support/executable.ts";
import { makeCertificate, startMailServer } from "../support/installation.ts";
import { startOidc } from "../support/oidc.ts";
import { freePort, startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";

/** What `evald doctor --json` prints for a finding. */
type Result = { check: string; subject: string | null; state: string; cause: string | null; remedy: string | null };

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

/** An installation whose every connection works, and its folder with a database that a service has used. */
let healthy: { cwd: string; env: Env; expired: string; otherTls: string; nowhere: string; elsewhere: string };

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
  const webhook = { kind: "webhook", url: "https://example.com/hook", events: ["run.completed"] };
  expect((await client(service.url, key)("POST", "/api/v1/destinations", webhook)).status).toBe(201);
  await service.stop();
  const tls = { cert: Bun.file(old.certificate), key: Bun.file(old.key) };
  healthy = {
    ...{ cwd, env, expired: old.certificate },
    otherTls: startServer(() => Response.json({}), tls),
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

/** Faults of settings and servers: the environment with the fault, by the only cause that the doctor may name. */
const faults: [string, () => Env][] = [
  ["smtp_unreachable", () => ({ EVALD_SMTP_URL: `smtp://${healthy.nowhere}` })],
  [
    "smtp_login_refused",
    () => ({ EVALD_SMTP_URL: healthy.env.EVALD_SMTP_URL?.replace("user:password", "user:wrong") ?? "" }),
  ],
  ["smtp_failed", () => ({ EVALD_SMTP_URL: startWrongServer() })],
  ["smtp_certificate", () => ({ EVALD_SMTP_URL: healthy.otherTls.replace("https", "smtps") })],
  ["oidc_unreachable", () => ({ EVALD_OIDC_ISSUER: `http://${healthy.nowhere}` })],
  ["oidc_wrong_issuer", () => ({ EVALD_OIDC_ISSUER: `${healthy.env.EVALD_OIDC_ISSUER}/realm` })],
  ["oidc_invalid", () => ({ EVALD_OIDC_ISSUER: healthy.elsewhere })],
  ["oidc_certificate", () => ({ EVALD_OIDC_ISSUER: healthy.otherTls })],
  ["model_unreachable", () => ({ OPENAI_COMPATIBLE_BASE_URL: `http://${healthy.nowhere}/v1` })],
  ["model_key_refused", () => ({ OPENAI_COMPATIBLE_API_KEY: "wrong" })],
  ["model_certificate", () => ({ OPENAI_COMPATIBLE_BASE_URL: healthy.otherTls })],
  ["otlp_unreachable", () => ({ EVALD_OTLP_URL: `http://${healthy.nowhere}/v1/traces` })],
  ["otlp_failed", () => ({ EVALD_OTLP_URL: (healthy.env.EVALD_OTLP_URL ?? "").replace("/v1/traces", "/") })],
  ["gateway_unreachable", () => ({ EVALD_GATEWAY_URL: `http://${healthy.nowhere}/gateway` })],
  ["gateway_elsewhere", () => ({ EVALD_GATEWAY_URL: healthy.elsewhere })],
  ["redis_unreachable", () => ({ EVALD_REDIS_URL: `redis://${healthy.nowhere}` })],
  ["proxy_unreachable", () => ({ HTTP_PROXY: `http://${healthy.nowhere}` })],
  ["authority_unreadable", () => ({ NODE_EXTRA_CA_CERTS: "/nonexistent/ca.pem" })],
  ["authority_expired", () => ({ NODE_EXTRA_CA_CERTS: healthy.expired })],
  ["secret_key_changed", () => ({ EVALD_SECRET_KEY: Buffer.alloc(32, 8).toString("base64") })],
  ["secret_key_missing", () => ({ EVALD_SECRET_KEY: "" })],
  ["port_taken", () => ({ EVALD_PORT: new URL(healthy.elsewhere).port })],
  ["host_unavailable", () => ({ EVALD_HOST: "192.0.2.1" })],
];

function startWrongServer(): string {
  const server = startMailServer({ speaks: false });
  closings.push(server.close);
  return server.url();
}

test.each(faults)(
  "%s",
  async (cause, plant) => {
    expect(await diagnose(healthy.cwd, plant())).toMatchObject({
      code: cause === "authority_expired" ? 0 : 1,
      causes: [cause],
    });
  },
  60_000,
);

test("redis_evicts, redis_memory_low", async () => {
  const own = await startRedis({ password: "secret", options: ["--maxmemory", "1mb"] });
  closings.push(own.kill);
  expect((await diagnose(healthy.cwd, { EVALD_REDIS_URL: own.url })).causes).toEqual(["redis_memory_low"]);
  await own.command("config", "set", "maxmemory", "0");
  await own.command("config", "set", "maxmemory-policy", "allkeys-lru");
  expect(await diagnose(healthy.cwd, { EVALD_REDIS_URL: own.url })).toMatchObject({
    code: 1,
    causes: ["redis_evicts"],
  });
}, 60_000);

describe("the data", () => {
  test("data_exposed", async () => {
    const { cwd, data } = copy();
    chmodSync(data, 0o777);
    chmodSync(join(data, "evald.db"), 0o666);
    const { code, causes } = await diagnose(cwd);
    expect([code, causes]).toEqual([1, ["data_exposed"]]);
  }, 60_000);

  test("database_damaged", async () => {
    const { cwd, data } = copy();
    truncateSync(join(data, "evald.db"), 40_000);
    expect(await diagnose(cwd)).toMatchObject({ code: 1, causes: ["database_damaged"] });
    writeFileSync(join(data, "evald.db"), "no database ".repeat(1000));
    expect(await diagnose(cwd)).toMatchObject({ code: 1, causes: ["database_damaged"] });
  }, 60_000);

  test("database_newer, and it stays as it is", async () => {
    const { cwd, data, write } = copy();
    write("insert into __drizzle_migrations (hash, created_at) values ('x', 9999999999999)");
    const before = Bun.hash(await Bun.file(join(data, "evald.db")).bytes());
    expect(await diagnose(cwd)).toMatchObject({ code: 1, causes: ["database_newer"] });
    expect(Bun.hash(await Bun.file(join(data, "evald.db")).bytes())).toBe(before);
  }, 60_000);

  test("time_zone_unknown", async () => {
    const { cwd, write } = copy();
    write("update orgs set time_zone = 'Mars/Olympus'");
    expect(await diagnose(cwd)).toMatchObject({ code: 1, causes: ["time_zone_unknown"] });
  }, 60_000);

  test("backup_missing, backup_late, and a new backup heals it", async () => {
    const { cwd, data, write } = copy();
    write(`update orgs set created_at = ${Date.now() - 10 * dayMs}`);
    expect(await diagnose(cwd)).toMatchObject({ code: 0, causes: ["backup_missing"] });
    expect((await call(["backup", "copy"], { cwd })).code).toBe(0);
    expect((await diagnose(cwd)).causes).toEqual([]);
    const old = (Date.now() - 9 * dayMs) / 1000;
    utimesSync(join(data, "evald.last-backup"), old, old);
    expect((await diagnose(cwd)).causes).toEqual(["backup_late"]);
  }, 60_000);

  test.skipIf(process.getuid?.() !== 0)(
    "data_directory_read_only, disk_full, disk_filling",
    async () => {
      const { cwd, data } = copy();
      const mount = (...args: string[]) => expect(Bun.spawnSync(["mount", ...args]).exitCode).toBe(0);
      mount("-t", "tmpfs", "-o", "size=64m,mode=700", "tmpfs", data);
      closings.push(() => Bun.spawnSync(["umount", "-l", data]));
      expect(await diagnose(cwd)).toMatchObject({ code: 1, causes: ["disk_full"] });
      mount("-o", "remount,size=1g", data);
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
      mount("-o", "remount,ro", data);
      expect((await diagnose(cwd)).causes).toContain("data_directory_read_only");
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
  }, 60_000);

  test("clock_differs", async () => {
    const date = new Date(Date.now() + 3600_000).toUTCString();
    const ahead = startServer(() => Response.json({ data: [] }, { headers: { date } }));
    const env = { OPENAI_COMPATIBLE_BASE_URL: `${ahead}/v1` };
    expect(await diagnose(healthy.cwd, env)).toMatchObject({ code: 1, causes: ["clock_differs"] });
  }, 60_000);

  test("open_files_low", async () => {
    const { causes } = await diagnose(healthy.cwd, {}, ["prlimit", "--nofile=1024:1024"]);
    expect(causes).toContain("open_files_low");
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
    service.signal("SIGCONT");
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
