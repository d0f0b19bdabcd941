import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Egress, startEgress } from "../../src/agents/egress/egress.ts";
import { testAgentSandbox, toSandboxCommand } from "../../src/agents/sandbox/agent-command.ts";
import { nobody } from "../../src/agents/sandbox/bubblewrap.ts";
import { createDelegatedCgroup } from "../../src/agents/sandbox/control-group.ts";
import { compiledProgram, detectSandbox, ownProgram } from "../../src/agents/sandbox/sandbox.ts";
import { buildExecutable, call, client, emptyFolder, executable, serve, untilRun } from "../support/executable.ts";
import { descendantsOf, isGone, isWaiting, processFile } from "../support/processes.ts";
import { serveSite } from "../support/site.ts";
import { until } from "../support/until.ts";

const kinds = ["rules", "model"] as const;
const problems = { rules: await testAgentSandbox("rules", {}), model: await testAgentSandbox("model", {}) };
const hasSandbox = problems.rules === null;
const secret = "sk-test-secret-of-the-service";
const folder = emptyFolder();
const home = emptyFolder();
const database = join(folder, "evald.db");
const site = serveSite({ "/": { body: "for everybody" } });
const forbidden = serveSite({ "/": { body: "only for the machine" } });
const portOf = ({ url }: { url: string }) => Number(new URL(url).port);
let egress: Egress;
let token = "";

beforeAll(async () => {
  await buildExecutable();
  writeFileSync(database, secret);
  for (const name of ["own", "run", "other"]) mkdirSync(join(home, name));
  writeFileSync(join(home, "other", "file"), secret);
  egress = await startEgress({ socketPath: join(home, "own", "socket"), operatorHosts: [], now: Date.now });
  const hosts = { anyHost: true as const, urls: [], docsUrls: [], urlMap: {} };
  const allowPrivate = [{ host: "127.0.0.1", port: portOf(site) }];
  token = egress.open({ ...hosts, allowPrivate, onEvent: () => {} }).token;
}, 300_000);
afterAll(async () => {
  await egress.close();
  site.stop();
  forbidden.stop();
  for (const path of [folder, home]) rmSync(path, { recursive: true });
});

/** Runs as a process that a hostile page has taken over, and prints what it reached. */
async function probe() {
  const [fs, net, dns] = await Promise.all([import("node:fs"), import("node:net"), import("node:dns/promises")]);
  const { socket, token, own, other, files, folder } = JSON.parse(process.argv.at(-1) ?? "");
  const attempt = async (work: () => unknown) => {
    try {
      return await work();
    } catch (error) {
      return (error as { code?: string }).code ?? String(error);
    }
  };
  const connect = (host: string, port: number) =>
    new Promise((resolve, reject) => {
      const socket = net.connect({ host, port });
      setTimeout(() => reject(new Error("no answer")), 3000);
      socket.on("connect", () => resolve("connected"));
      socket.on("error", reject);
    });
  /** What a command prints in a sandbox created by the process, where it is root. */
  const nested = (...argv: string[]) => {
    const { stdout, stderr } = Bun.spawnSync([
      "bwrap",
      "--dev-bind",
      "/",
      "/",
      "--uid",
      "0",
      "--cap-add",
      "ALL",
      ...argv,
    ]);
    return `${stdout}${stderr}`.trim().split("\n").at(-1);
  };
  /** The status line of the proxy's answer. */
  const tunnel = (place: string, password: string) =>
    new Promise((resolve, reject) => {
      const outer = net.connect({ path: socket });
      outer.on("error", reject);
      outer.once("data", (data) => resolve(String(data).split("\r\n")[0]));
      outer.write(`CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\nProxy-Authorization: Bearer ${password}\r\n\r\n`);
    });
  const found = {
    loopback: await attempt(() => connect("127.0.0.1", other)),
    metadata: await attempt(() => connect("169.254.169.254", 80)),
    elsewhere: await attempt(() => connect("93.184.215.14", 80)),
    lookup: await attempt(() => dns.lookup("example.com")),
    files: await Promise.all(files.map((path: string) => attempt(() => fs.readFileSync(path, "utf8")))),
    writes: await Promise.all(
      ["/usr/bin/evil", "/evil", `${folder}/file`].map((path) => attempt(() => fs.writeFileSync(path, "x"))),
    ),
    nested: [
      nested("cat", files[0]),
      nested("chroot", "/proc/1/root", "cat", files[0]),
      nested("sh", "-c", "mount -o remount,rw,bind /usr; touch /usr/evil"),
    ],
    sockets: fs.readdirSync(socket.replace(/\/[^/]+\/[^/]+$/, "")).sort(),
    variables: Object.keys(process.env).sort(),
    processes: fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).length,
    own: await attempt(() => tunnel(`127.0.0.1:${own}`, token)),
    throughProxy: {
      loopback: await attempt(() => tunnel(`127.0.0.1:${other}`, token)),
      metadata: await attempt(() => tunnel("169.254.169.254:80", token)),
      network: await attempt(() => tunnel("10.0.0.7:443", token)),
      port: await attempt(() => tunnel("93.184.215.14:22", token)),
      withoutToken: await attempt(() => tunnel(`127.0.0.1:${own}`, "guessed")),
    },
  };
  console.log(JSON.stringify(found));
  process.exit();
}

const programs = {
  "from source": () => ({ ...ownProgram(), argv: ["/run/evald/bun"] }),
  compiled: () => ({ ...compiledProgram(executable), argv: ["/usr/bin/env", "BUN_BE_BUN=1", "/run/evald/evald"] }),
};

describe.each(kinds)("in place of the process of an agent (%s)", (kind) => {
  test.if(problems[kind] === null).each(Object.keys(programs) as (keyof typeof programs)[])(
    "a program can reach nothing of the machine (%s)",
    async (form) => {
      const socket = egress.socketPath;
      const own = join(home, "run");
      const others = [join(home, "other", "file"), "/etc/shadow", "/etc/passwd", "/root", import.meta.path];
      const files = [database, `/proc/${process.pid}/environ`, ...others];
      const ports = { own: portOf(site), other: portOf(forbidden) };
      const input = JSON.stringify({ socket, token, files, folder: own, ...ports });
      const { argv, binds } = programs[form]();
      const access = kind === "model" ? { sockets: [socket], folders: [own] } : { sockets: [socket], folders: [] };
      const nesting = kind === "model" ? { programs: { files: [], links: [] }, group: null } : null;
      const command =
        toSandboxCommand([...argv, "-e", `(${probe})()`, input], {
          env: {},
          nesting,
          access,
          executableBinds: binds,
        }) ?? [];
      const child = Bun.spawn(command, {
        cwd: "/",
        env: { PATH: process.env.PATH ?? "" },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const [said, complaints] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      expect(complaints).toBe("");
      const { files: read, lookup, writes, nested, variables, ...found } = JSON.parse(said);
      // Bun's name for both is the second one in some cases.
      const unreachable = expect.stringMatching(/^(ENETUNREACH|ECONNREFUSED)$/);
      expect(found).toEqual({
        loopback: "ECONNREFUSED",
        metadata: unreachable,
        elsewhere: unreachable,
        sockets: kind === "model" ? ["own", "run"] : ["own"],
        processes: expect.any(Number),
        own: "HTTP/1.1 200 Connection Established",
        throughProxy: {
          loopback: "HTTP/1.1 403 Forbidden",
          metadata: "HTTP/1.1 403 Forbidden",
          network: "HTTP/1.1 403 Forbidden",
          port: "HTTP/1.1 403 Forbidden",
          withoutToken: "HTTP/1.1 407 Proxy Authentication Required",
        },
      });
      expect(found.processes).toBeLessThan(5);
      const known = [...(form === "compiled" ? ["BUN_BE_BUN"] : []), ...(kind === "model" ? ["PATH"] : []), "PWD"];
      expect(variables).toEqual(known);
      expect(said).not.toContain(secret);
      expect(read).toEqual(files.map(() => "ENOENT"));
      expect(lookup).toMatch(/^(EAI_|ENOTFOUND|ECONNREFUSED|DNS_)/);
      const refused = expect.stringMatching(/^(EROFS|EACCES)$/);
      expect(writes).toEqual([refused, refused, ...(kind === "model" ? [null] : ["ENOENT"])]);
      const denied = kind === "model" ? /No such file|Read-only|Permission denied/ : /Creating new namespace failed/;
      expect(nested).toEqual(nested.map(() => expect.stringMatching(denied)));
      expect(nested.length).toBe(3);
    },
    300_000,
  );
});

test.if(problems.model === null)(
  "the process of an agent with a model limits its sandboxes like the service, and changes no control groups of others",
  async () => {
    const group = createDelegatedCgroup(process.getuid?.() === 0 ? nobody : null);
    const code = `
      const { detectSandbox } = await import("/run/evald/src/agents/sandbox/sandbox.ts");
      const { mkdirSync } = await import("node:fs");
      const make = (path) => { try { return mkdirSync(path + "/evil") ?? "made"; } catch ({ code }) { return code; } };
      console.log(JSON.stringify({ sandbox: await detectSandbox(), made: process.argv.slice(1).map(make) }));
    `;
    const places = (group?.folders ?? []).map((path) => dirname(path));
    const nesting = { programs: { files: [], links: [] }, group };
    const access = { sockets: [], folders: [] };
    const { binds } = ownProgram();
    const command =
      toSandboxCommand(["/run/evald/bun", "-e", code, ...places], {
        env: {},
        nesting,
        access,
        executableBinds: binds,
      }) ?? [];
    const child = Bun.spawn(command, {
      cwd: "/",
      env: { PATH: process.env.PATH ?? "" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [said, complaints] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect(complaints).toBe("");
    const sandbox = await detectSandbox();
    expect(JSON.parse(said)).toEqual({ sandbox, made: places.map(() => "EROFS") });
    expect(group !== null).toBe(sandbox.detail.includes("control group"));
    await group?.remove();
    expect(group?.folders.filter((path) => existsSync(path)) ?? []).toEqual([]);
  },
  300_000,
);

test.if(problems.model === null)(
  "the process of an agent with a model and its sandboxes share a group with less CPU time, which they can't change",
  async () => {
    const group = createDelegatedCgroup(process.getuid?.() === 0 ? nobody : null);
    const script = `
      read go
      shares=$(ls -d /sys/fs/cgroup/*/evald-*/cpu.shares /sys/fs/cgroup/*/evald-*/*/cpu.shares /sys/fs/cgroup/evald-*/cpu.weight 2>/dev/null)
      for file in $shares; do (echo 100 > $file) 2>/dev/null && echo "changed $file"; done
      bwrap --unshare-user --unshare-pid --unshare-net --ro-bind / / cat /proc/self/cgroup
    `;
    const nesting = { programs: { files: [], links: [] }, group };
    const access = { sockets: [], folders: [] };
    const command =
      toSandboxCommand(["/bin/sh", "-c", script], { env: {}, nesting, access, executableBinds: [] }) ?? [];
    const env = { PATH: process.env.PATH ?? "" };
    const child = Bun.spawn(command, { cwd: "/", env, stdio: ["pipe", "pipe", "inherit"] });
    const isLower = group?.lowerPriority() ?? false;
    child.stdin.write("go\n");
    child.stdin.end();
    const said = await new Response(child.stdout).text();
    const weights = (group?.procsFiles ?? []).flatMap((procsFile) =>
      ["cpu.shares", "cpu.weight"].flatMap((name) => {
        const file = join(dirname(procsFile), name);
        return existsSync(file) ? [readFileSync(file, "utf8").trim()] : [];
      }),
    );
    expect(said).not.toContain("changed");
    if (group && existsSync("/sys/fs/cgroup/cpu/cgroup.procs")) expect(isLower).toBe(true);
    expect(weights.length > 0).toBe(isLower);
    // Of 1,024 in version 1 and 100 in version 2: less than others, but not so little that two busy programs starve it.
    for (const weight of weights) expect(["512", "50"]).toContain(weight);
    const own = /^\d+:[\w,]*\bcpu\b[\w,]*:(.*)$/m.exec(said)?.[1] ?? "";
    if (isLower && own !== "") expect(own).toContain(`evald-${process.pid}-`);
    await group?.remove();
    expect(group?.procsFiles.filter((path) => existsSync(path)) ?? []).toEqual([]);
  },
  300_000,
);

test.if(hasSandbox)(
  "the explorer has no network, the service refuses a redirect to a private address, and the process ends with the service",
  async () => {
    const held = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const docs = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch({ url }) {
        const { pathname } = new URL(url);
        if (pathname === "/private") return Response.redirect("http://169.254.169.254/latest/meta-data/");
        if (pathname === "/robots.txt") return new Response("", { status: 404 });
        if (pathname === "/held") {
          asked.resolve();
          await held.promise;
        }
        const links = '<a href="/private">Upload a file</a> <a href="/held">Upload</a>';
        return new Response(`<title>Acme</title><h1>Acme</h1><p>${links}</p>`, {
          headers: { "content-type": "text/html" },
        });
      },
    });
    const start = `http://127.0.0.1:${docs.port}/`;
    const cwd = emptyFolder();
    await call(["org", "create", "Acme"], { cwd });
    const key = (await call(["key", "create", "--name", "test"], { cwd })).stdout.trim();
    const env = {
      EVALD_ALLOW_PRIVATE: `127.0.0.1:${docs.port}`,
      EVALD_SECRET_KEY: Buffer.alloc(32).toString("base64"),
    };
    const service = await serve({ cwd, env });
    const ask = client(service.url, key);
    const { body: prompt } = await ask("POST", "/api/v1/prompts", { text: `Upload a file. See ${start}` });
    const run = async () => (await ask("POST", `/api/v1/prompts/${prompt.id}/run`, { urlMap: {} })).body.runId;

    const first = await run();
    await asked.promise;
    // This is checked from outside: bubblewrap itself is in the namespaces of the service, or above them.
    const programOf = (pid: number) => processFile(pid, "cmdline");
    const agents = descendantsOf(service.pid).filter((pid) => programOf(pid).startsWith("/run/evald/evald\0__agent"));
    expect(agents.length).toBeGreaterThan(0);
    for (const pid of agents) {
      expect(readlinkSync(`/proc/${pid}/ns/net`)).not.toBe(readlinkSync(`/proc/${service.pid}/ns/net`));
      expect(processFile(pid, "net/route").trim().split("\n").length).toBe(1);
      expect(processFile(pid, "status")).toMatch(/^Seccomp:\t2$/m);
    }
    for (const pid of descendantsOf(service.pid)) expect(processFile(pid, "environ")).not.toContain("EVALD_SECRET_KEY");
    held.resolve();
    const done = await untilRun(ask, first, "completed", "failed");
    expect([done.status, done.failureReason]).toEqual(["completed", null]);
    const { body: trace } = await ask("GET", `/api/v1/reports/${done.report.slug}/trace?types=http&limit=500`);
    const redirected = trace.events.find(({ url }: { url: string }) => url === `${start}private`);
    expect(redirected).toMatchObject({ status: null, source: "agent", error: { kind: "refused" } });
    expect(redirected.error.message).toContain("169.254.169.254");

    await until("the next process waits", () => descendantsOf(service.pid).some(isWaiting));
    const all = descendantsOf(service.pid);
    await service.stop("SIGKILL");
    await until("all processes have ended", () => all.every(isGone));
    docs.stop(true);
    rmSync(cwd, { recursive: true });
  },
  300_000,
);
