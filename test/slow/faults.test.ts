import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import {
  buildExecutables,
  call,
  client,
  emptyFolder,
  furnish,
  instant,
  serve,
  untilRun,
} from "../support/executable.ts";
import { until } from "../support/until.ts";

beforeAll(buildExecutables, 300_000);

/** Makes system calls fail in a running process, each as `syscalls:error=NAME:when=FIRST..LAST`. */
async function inject(pid: number, ...faults: string[]) {
  const calls = faults.map((fault) => fault.split(":")[0]).join();
  const strace = Bun.spawn(
    [
      ...["strace", "-f", "-o", "/dev/null", "-e", `trace=${calls}`, "-p", String(pid)],
      ...faults.flatMap((fault) => ["-e", `inject=${fault}`]),
    ],
    { stdout: "ignore", stderr: "pipe" },
  );
  const attached = Promise.withResolvers<void>();
  // Read to its end, because it also reports each new thread.
  void (async () => {
    let said = "";
    for await (const bytes of strace.stderr) {
      said += new TextDecoder().decode(bytes);
      if (said.includes("attached")) attached.resolve();
    }
    attached.reject(new Error(said));
  })();
  await attached.promise;
  return async () => {
    // Its own way to detach may last forever: it waits for the first process of a sandbox to stop, which waits until strace has seen the end of
    // the other processes of the sandbox.
    strace.kill("SIGKILL");
    await strace.exited;
  };
}

/** A service with data, and a client to request runs. */
async function setUp(cwd = emptyFolder(), env: Record<string, string> = {}) {
  const { key, promptId } = await furnish(cwd);
  const service = await serve({ cwd, env, file: instant });
  const ask = client(service.url, key);
  const acknowledged: string[] = [];
  const refused: { retryAfter: string | null; error: string }[] = [];

  /** Requests one run; returns the status. */
  async function post(): Promise<number> {
    const { status, headers, body } = await ask("POST", `/api/v1/prompts/${promptId}/run`, { urlMap: {} });
    if (status === 200) acknowledged.push(body.runId);
    else refused.push({ retryAfter: headers.get("retry-after"), error: body.error });
    return status;
  }

  /** Requests runs until one is accepted. */
  const untilTaken = () => until("a run is accepted", async () => (await post()) === 200);

  const isWhole = async (asked: typeof ask) => {
    for (const id of acknowledged) expect((await untilRun(asked, id, "completed", "failed")).status).toBe("completed");
    const db = new Database(join(cwd, "data", "evald.db"), { readonly: true });
    expect(db.query("pragma integrity_check").get()).toEqual({ integrity_check: "ok" });
    db.close();
  };
  return { cwd, key, service, ask, acknowledged, refused, post, untilTaken, isWhole };
}

const unavailable = { retryAfter: "5", error: "unavailable" };

test.each([
  ["fsync,fdatasync:error=EIO:when=7..9"],
  ["fsync,fdatasync:error=EIO:when=40..45"],
  ["pwrite64:error=EIO:when=9..12"],
  ["pwrite64:error=EIO:when=300..310"],
  ["pwrite64:error=EIO:when=301+"],
])(
  "after %s, the response is 503, the process exits with 74, and no acknowledged work is lost",
  async (fault) => {
    const { cwd, key, service, ask, acknowledged, refused, post, isWhole } = await setUp();
    while (acknowledged.length < 5) await post();
    const detach = await inject(service.pid, fault);
    const write = async () => {
      try {
        for (;;) {
          await post();
          // Pages outside of the cache are read from the disk.
          const { status } = await ask("GET", `/api/v1/runs?limit=100&offset=${acknowledged.length}`);
          expect([200, 503]).toContain(status);
        }
      } catch {
        // The process has ended.
      }
    };
    await Promise.all([write(), write(), write(), write()]);
    expect(await service.exited).toBe(74);
    await detach();
    expect(refused.length).toBeGreaterThan(0);
    for (const each of refused) expect(each).toEqual(unavailable);
    expect(service.stderr()).toContain("the database disk has failed; shutting down");
    const again = await serve({ cwd, file: instant });
    await isWhole(client(again.url, key));
    expect(await again.stop()).toBe(0);
  },
  300_000,
);

// The fsyncs are the commits of a run in turn: it is accepted, claimed, its session is stored, it is settled.
test.each([9, 10, 11, 12])(
  "a single failed fsync ends the process, whatever caused it: number %d",
  async (nth) => {
    const { cwd, key, service, ask, acknowledged, post, isWhole } = await setUp();
    const detach = await inject(service.pid, `fsync,fdatasync:error=EIO:when=${nth}`);
    try {
      for (;;) if ((await post()) === 200) await untilRun(ask, acknowledged.at(-1) as string, "completed");
    } catch {
      // The process has ended.
    }
    expect(await service.exited).toBe(74);
    await detach();
    const again = await serve({ cwd, file: instant });
    await isWhole(client(again.url, key));
    expect(await again.stop()).toBe(0);
  },
  300_000,
);

test.each([
  ["evald.db-wal", 0],
  // Nothing can be rescued.
  ["evald.db", null],
])(
  "the service exits with 74 when %s is deleted, and doesn't accept rows that would disappear",
  async (file, lost) => {
    const { cwd, key, service, acknowledged, refused, post, isWhole } = await setUp();
    while (acknowledged.length < 5) await post();
    rmSync(join(cwd, "data", file));
    try {
      for (;;) await post();
    } catch {
      // The process has ended.
    }
    expect(await service.exited).toBe(74);
    expect(acknowledged.length).toBe(5);
    for (const each of refused) expect(each).toEqual(unavailable);
    if (lost === null) return;
    const again = await serve({ cwd, file: instant });
    await isWhole(client(again.url, key));
    expect(await again.stop()).toBe(0);
  },
  300_000,
);

test("a failed read returns 503, and the process exits with 74", async () => {
  const { cwd, key, service, acknowledged, post, isWhole } = await setUp();
  while (acknowledged.length < 100) await post();
  await service.stop();
  // Nothing of the runs is in memory yet.
  const cold = await serve({ cwd, file: instant });
  const detach = await inject(cold.pid, "pread64:error=EIO");
  const { status, headers, body } = await client(cold.url, key)("GET", "/api/v1/runs");
  expect([status, headers.get("retry-after"), body.error]).toEqual([503, "5", "unavailable"]);
  expect(await cold.exited).toBe(74);
  await detach();
  const again = await serve({ cwd, file: instant });
  await isWhole(client(again.url, key));
  await again.stop();
});

test.each([
  ["full", ["pwrite64:error=ENOSPC:when=20+"]],
  ["read-only", ["pwrite64:error=EROFS:when=20+"]],
  ["full for a quota", ["pwrite64:error=EDQUOT:when=20+"]],
])(
  "a disk that becomes %s still allows reads, writes return 503, and the service recovers by itself",
  async (_, faults) => {
    const { service, ask, acknowledged, refused, post, untilTaken, isWhole } = await setUp();
    while (acknowledged.length < 5) await post();
    const detach = await inject(service.pid, ...faults);
    while (refused.length < 50) await post();
    for (const each of refused) expect(each).toEqual(unavailable);
    expect((await ask("GET", "/api/v1/runs")).status).toBe(200);
    expect((await ask("GET", "/readyz")).status).toBe(503);
    expect((await ask("GET", "/healthz")).status).toBe(200);
    await detach();
    await untilTaken();
    await isWhole(ask);
    expect((await ask("GET", "/readyz")).status).toBe(200);
    expect(await service.stop()).toBe(0);
  },
  300_000,
);

test.each(["EROFS", "EDQUOT"])(
  "%s also makes a write outside of a transaction return 503, and the write at the end does no harm",
  async (name) => {
    const { service, ask } = await setUp();
    const detach = await inject(service.pid, `pwrite64:error=${name}`);
    const prompt = (await ask("GET", "/api/v1/prompts")).body[0];
    const asked: [string, string, unknown][] = [
      ["PATCH", `/api/v1/prompts/${prompt.id}`, { title: "New" }],
      ["POST", "/api/v1/prompts", { text: "See https://docs.test/" }],
    ];
    for (const [method, path, body] of asked) {
      const { status, headers, body: answer } = await ask(method, path, body);
      expect([method, status, headers.get("retry-after"), answer.error]).toEqual([method, 503, "5", "unavailable"]);
    }
    expect((await ask("GET", "/healthz")).status).toBe(200);
    expect(await service.stop()).toBe(0);
    await detach();
    expect(service.stderr()).not.toContain("shutting down");
    expect(service.stdout() + service.stderr()).toContain("could not store when API keys were last used");
  },
  300_000,
);

/** A second process that holds the write lock of a database until `release`. */
async function hold(dataDir: string) {
  const code = `const db = new (require("bun:sqlite").Database)(${JSON.stringify(join(dataDir, "evald.db"))});
    db.run("pragma busy_timeout = 5000"); db.run("begin immediate"); console.log("held");
    process.stdin.once("data", () => { db.run("rollback"); process.exit(); });`;
  const other = Bun.spawn([process.execPath, "-e", code], { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
  await other.stdout.getReader().read();
  return async () => {
    other.stdin.write("go\n");
    other.stdin.flush();
    await other.exited;
  };
}

test("a database that another process holds still answers reads, and writes wait for it at most 5 seconds", async () => {
  const { cwd, ask, post, service, acknowledged, isWhole } = await setUp();
  expect(await post()).toBe(200);
  const [prompt] = (await ask("GET", "/api/v1/prompts")).body;
  const tool = (name: string, args: object) =>
    ask("POST", "/api/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });
  const writes = () => [
    post(),
    ask("POST", "/api/v1/prompts", { text: "See https://docs.test/" }).then(({ status }) => status),
    ask("PATCH", `/api/v1/prompts/${prompt.id}`, { title: "New" }).then(({ status }) => status),
    tool("request_eval", { promptId: prompt.id }).then(({ status }) => status),
  ];
  let release = await hold(join(cwd, "data"));
  let pending = writes();
  const read = async () => {
    for (const path of ["/healthz", "/api/v1/runs", `/api/v1/runs/${acknowledged[0]}`])
      expect((await ask("GET", path)).status).toBe(200);
    expect((await tool("list_prompts", {})).body.result.isError).toBeUndefined();
  };
  await read();
  expect(await Promise.race([...pending, "waiting"])).toBe("waiting");
  await release();
  expect(await Promise.all(pending)).toEqual([200, 201, 200, 200]);
  release = await hold(join(cwd, "data"));
  pending = writes().slice(0, 3);
  let isWaiting = true;
  const answered = Promise.all(pending).finally(() => (isWaiting = false));
  while (isWaiting) await read();
  expect(await answered).toEqual([503, 503, 503]);
  await release();
  expect(await post()).toBe(200);
  await isWhole(ask);
  expect(await service.stop()).toBe(0);
});

describe.skipIf(process.getuid?.() !== 0)("a disk of 32 MB", () => {
  const mounted: string[] = [];
  const mount = (...args: string[]) => {
    const { success, stderr } = Bun.spawnSync(["mount", ...args]);
    if (!success) throw new Error(String(stderr));
  };
  afterAll(() => {
    for (const folder of mounted) Bun.spawnSync(["umount", "-l", folder]);
  });

  function smallDisk() {
    const cwd = emptyFolder();
    const data = join(cwd, "data");
    mkdirSync(data);
    mount("-t", "tmpfs", "-o", "size=32m", "tmpfs", data);
    mounted.push(data);
    const ballast = join(data, "ballast");

    /** Fills the disk to the last byte. */
    function fill(): void {
      const file = openSync(ballast, "a");
      for (let bytes = 65_536; bytes >= 1; ) {
        try {
          if (writeSync(file, new Uint8Array(bytes)) < bytes) bytes >>= 1;
        } catch {
          bytes >>= 1;
        }
      }
      closeSync(file);
    }
    return { cwd, data, fill, empty: () => rmSync(ballast) };
  }

  test("that fills up three times causes no crash: reads return 200, writes 503, and all acknowledged work is completed", async () => {
    const { cwd, fill, empty } = smallDisk();
    const { service, ask, acknowledged, refused, post, untilTaken, isWhole } = await setUp(cwd);
    for (let round = 1; round <= 3; round++) {
      const enough = acknowledged.length + 20;
      while (acknowledged.length < enough) await post();
      // First the remaining space in the WAL is used, then there is none.
      fill();
      while (refused.length < round * 50) await post();
      expect((await ask("GET", "/api/v1/runs")).status).toBe(200);
      expect((await ask("GET", `/api/v1/runs/${acknowledged[0]}`)).status).toBe(200);
      while ((await ask("GET", "/readyz")).status !== 503) await post();
      empty();
      await untilTaken();
    }
    for (const each of refused) expect(each).toEqual(unavailable);
    await isWhole(ask);
    expect((await ask("GET", "/readyz")).status).toBe(200);
    expect(await service.stop()).toBe(0);
  });

  test("that is full lets the service stop cleanly but not start, with the reason, and read-only commands work", async () => {
    const { cwd, fill, empty } = smallDisk();
    // A stop waits for unstored results as long as it may take.
    const { service, acknowledged, post, key } = await setUp(cwd, { EVALD_DRAIN_SECONDS: "1" });
    while (acknowledged.length < 20) await post();
    fill();
    expect(await service.stop()).toBe(0);
    fill();
    expect(await call(["serve"], { cwd, env: { EVALD_PORT: "0" } })).toEqual({
      code: 3,
      stdout: "",
      stderr: expect.stringMatching(/^error: data\/evald\.lock .* disk is full\. .*--data/),
    });
    // The write-ahead log may have room for a few writes.
    let created = await call(["org", "create", "Other 1"], { cwd });
    for (let n = 2; created.code === 0 && n <= 5; n++) {
      fill();
      created = await call(["org", "create", `Other ${n}`], { cwd });
    }
    expect(created.stderr).toMatch(/^error: .*full.*space/);
    expect((await call(["org", "list"], { cwd })).stdout).toContain("Acme");
    expect((await call(["doctor"], { cwd })).stdout).toMatch(/^failed +disk +0\.0 GiB free; /m);
    expect((await call(["backup", "copy"], { cwd })).code).toBe(0);
    expect((await call(["backup", "data/copy"], { cwd })).stderr).toStartWith(`error: The disk of ${cwd}/data is full`);
    expect((await call(["restore", "copy"], { cwd })).stderr).toMatch(/^error: .* full\. /);
    empty();
    const again = await serve({ cwd, file: instant });
    for (const id of acknowledged) await untilRun(client(again.url, key), id, "completed");
    await again.stop();
  });

  test("that is read-only prevents the start, with the reason, until it is writable again", async () => {
    const { cwd, data } = smallDisk();
    const { service, ask, acknowledged, post, key } = await setUp(cwd);
    await post();
    await untilRun(ask, acknowledged[0] as string, "completed");
    await service.stop();
    mount("-o", "remount,ro", data);
    for (const args of [["serve"], ["restore", "copy"]])
      expect((await call(args, { cwd, env: { EVALD_PORT: "0" } })).code).toBe(args[0] === "serve" ? 3 : 2);
    expect((await call(["serve"], { cwd, env: { EVALD_PORT: "0" } })).stderr).toMatch(
      /^error: data\/evald\.lock .* read-only\. .*--data/,
    );
    expect((await call(["--data", "data/new", "serve"], { cwd })).stderr).toMatch(/^error: .* data\/new \(EROFS/);
    expect((await call(["doctor"], { cwd })).stdout).toMatch(/^failed +data_directory +no write access to \S+/m);
    mount("-o", "remount,rw", data);
    const again = await serve({ cwd, file: instant });
    expect((await client(again.url, key)("GET", "/api/v1/runs")).body[0].status).toBe("completed");
    // A read-only view of the folder, for processes that open it from now on.
    mount("--bind", data, data);
    mounted.push(data);
    mount("-o", "remount,bind,ro", data);
    expect((await call(["backup", "copy"], { cwd })).code).toBe(0);
    expect((await call(["org", "create", "Other"], { cwd })).stderr).toMatch(/^error: .*make it writable\.\n$/);
    await again.stop();
  });
});
