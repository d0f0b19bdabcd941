import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Egress, type EgressSession, startEgress } from "../../src/agents/egress/egress.ts";
import { compiledProgram, detectSandbox, runSandboxed, type SandboxProcess } from "../../src/agents/sandbox/sandbox.ts";
import { openWorkspace, pathOf } from "../../src/agents/sandbox/workspace.ts";
import { buildExecutable, call, executable } from "../support/executable.ts";
import { allProcesses, processesWith, processFile } from "../support/processes.ts";
import { randomOf } from "../support/random.ts";
import { inSandbox } from "../support/sandboxed.ts";
import { type Site, serveSite } from "../support/site.ts";
import { until } from "../support/until.ts";

const root = join(import.meta.dir, "..", "..");
const asRoot = process.getuid?.() === 0;
const MiB = 1024 ** 2;
const canary = `canary-${crypto.randomUUID()}`;
let folder = "";
let site: Site;
let egress: Egress;
let session: EgressSession;

beforeAll(async () => {
  await buildExecutable();
  folder = mkdtempSync(join(tmpdir(), "evald-sandbox-"));
  site = serveSite({ "/": { body: `<title>old</title><script>document.title = "new"</script>${canary}` } });
  egress = await startEgress({ socketPath: join(folder, "egress.sock"), operatorHosts: [], now: () => 0 });
  session = egress.open({
    urls: [],
    docsUrls: ["http://docs.test/"],
    urlMap: { "docs.test": site.url },
    allowPrivate: [
      { host: "127.0.0.1", port: site.port },
      { host: "registry.npmjs.org", port: 443 },
    ],
    onEvent: () => {},
  });
});
afterAll(async () => {
  session.close();
  await egress.close();
  site.stop();
  rmSync(folder, { recursive: true });
});

/** A workspace on disk, of which only the size is watched. */
const workspace = () => ({ path: mkdtempSync(join(folder, "workspace-")), holder: null });
const python = (code: string) => ["python3", "-c", code];
const shell = (code: string) => ["sh", "-c", code];

/** Processes with an argument. */
const running = (mark: string) => processesWith(`\0${mark}\0`);
const untilGone = (mark: string) => until("its processes are gone", () => running(mark).length === 0);

describe("the isolation level", () => {
  const sandboxOf = (findings: string) =>
    JSON.parse(findings).find(({ check }: { check: string }) => check === "sandbox") as {
      state: string;
      detail: string;
    };

  test("is determined by running bubblewrap, and the doctor reports it", async () => {
    expect(await detectSandbox()).toEqual({
      level: "bubblewrap",
      detail: expect.stringMatching(/\/bwrap; memory and processes limited by (a control group|rlimits)$/),
    });
    const { stdout } = await call(["doctor", "--json"], { cwd: folder });
    expect(sandboxOf(stdout).state).toBe("ok");
  });

  test("is none without bubblewrap, and the doctor says why", async () => {
    const missing = await call(["doctor", "--json"], { cwd: folder, env: { PATH: "/nonexistent" } });
    expect(sandboxOf(missing.stdout)).toMatchObject({
      state: "warning",
      detail: expect.stringContaining("apt-get install bubblewrap"),
    });
  });
});

test("the doctor says how to fix a sandbox without a browser", async () => {
  const bare = mkdtempSync(join(tmpdir(), "evald-bare-"));
  for (const name of ["bwrap", "true"]) symlinkSync(Bun.which(name) ?? "", join(bare, name));
  const { stdout } = await call(["doctor", "--json"], { cwd: folder, env: { PATH: bare } });
  rmSync(bare, { recursive: true });
  const findings: { check: string; state: string; detail: string }[] = JSON.parse(stdout);
  expect(findings.filter(({ check }) => check === "sandbox" || check === "browser")).toMatchObject([
    { check: "sandbox", state: "ok", detail: expect.any(String) },
    {
      check: "browser",
      state: "warning",
      detail: expect.stringContaining("apt-get install chromium"),
    },
  ]);
});

describe("a command in the sandbox can't", () => {
  let host: Record<string, string> = {};
  let victim: ReturnType<typeof Bun.spawn>;
  let listener: { stop(): void };
  beforeAll(() => {
    // The folder is open to everyone on the machine, so that only the sandbox isolates it.
    chmodSync(folder, 0o755);
    const data = join(folder, "data");
    mkdirSync(data);
    writeFileSync(join(data, "evald.db"), canary, { mode: 0o644 });
    const other = workspace().path;
    chmodSync(other, 0o755);
    writeFileSync(join(other, "secret"), canary, { mode: 0o644 });
    victim = Bun.spawn(["sleep", "86400"]);
    const unix = join(folder, "host.sock");
    listener = Bun.listen({ unix, socket: { data: () => {} } });
    chmodSync(unix, 0o777);
    process.env.EVALD_TEST_CANARY = canary;
    host = { DATA: data, OTHER: other, PORT: String(site.port), VICTIM: String(victim.pid), UNIX: unix };
  });
  afterAll(() => {
    delete process.env.EVALD_TEST_CANARY;
    victim.kill();
    listener.stop();
  });

  const connect = (kind: string, to: string, send = "") =>
    python(
      `import os, socket\ns = socket.socket(${kind})\ns.settimeout(2)\ns.connect(${to})\n${send && `s.send(${send}); s.recv(1)`}`,
    );

  // A case exits with 0 if the escape succeeds.
  test.each<[string, string[]]>([
    ["read the machine's passwords", shell("cat /etc/shadow")],
    ["read root's home", shell("ls /root || ls /home | grep -v '^agent$'")],
    ["read another run's workspace", shell('cat "$OTHER/secret" || ls "$OTHER"')],
    ["read the data folder", shell('cat "$DATA/evald.db" || ls "$DATA"')],
    ["read keys of TLS servers", shell("ls /etc/ssl/private")],
    [
      "write outside its folders",
      shell("for to in / /usr /etc /bin /lib /dev /run /run/evald /proc; do touch $to/x && exit 0; done; exit 1"),
    ],
    [
      "change the kernel's settings",
      shell("echo core >/proc/sys/kernel/core_pattern || echo 1 >/proc/sys/vm/drop_caches"),
    ],
    ["reach the machine's loopback", connect("", '("127.0.0.1", int(os.environ["PORT"]))')],
    ["reach cloud metadata", connect("", '("169.254.169.254", 80)')],
    ["reach cloud metadata through the proxy", shell("curl -sf http://169.254.169.254/")],
    [
      "reach the machine's loopback through the proxy",
      shell('curl -sf --noproxy "" "http://127.0.0.1:$PORT/" || curl -sfp --noproxy "" "http://127.0.0.1:$PORT/"'),
    ],
    ["open a TCP connection out", connect("", '("203.0.113.80", 443)')],
    ["send UDP out", connect("socket.AF_INET, socket.SOCK_DGRAM", '("8.8.8.8", 53)', 'b"x"')],
    ["resolve a name", python("import socket; socket.getaddrinfo('registry.npmjs.org', 443)")],
    ["reach a Unix socket of the machine", connect("socket.AF_UNIX", 'os.environ["UNIX"]')],
    ["open a raw socket", connect("socket.AF_INET, socket.SOCK_RAW, 1", '("127.0.0.1", 0)')],
    ["close the way out to others", shell("chmod 0 /run/evald/egress.sock || rm /run/evald/egress.sock")],
    ["kill or see a process of the machine", shell('kill -9 "$VICTIM" || ls "/proc/$VICTIM"')],
    [
      "trace a process of the machine",
      python("import ctypes, os, sys; sys.exit(ctypes.CDLL(None).ptrace(16, int(os.environ['VICTIM']), 0, 0) != 0)"),
    ],
    [
      "read the token of the run",
      shell("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep '^[E]VALD_BRIDGE='"),
    ],
    [
      "trace the bridge",
      python(
        "import ctypes, os, sys; trace = ctypes.CDLL(None).ptrace; sys.exit(all(trace(16, pid, 0, 0) != 0 for pid in range(2, os.getpid())))",
      ),
    ],
    [
      "open the memory of the bridge",
      shell("for pid in $(seq 2 $(($$ - 1))); do head -c 0 /proc/$pid/mem && exit 0; done; exit 1"),
    ],
    ["mount a file system", shell("mount -t tmpfs x /tmp || mount -o remount,rw /usr || umount /usr")],
    ["create a user namespace", shell("unshare --user --map-root-user true")],
    ["become root", shell("setpriv --reuid 0 true || su -c true || sudo -n true")],
    [
      "find a secret of the service",
      shell(`cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep [E]VALD_TEST_CANARY`),
    ],
    ["find an open file of the service", shell("ls /proc/self/fd | grep -v '^[0123]$'")],
  ])("%s", async (_, argv) => {
    const probe = {
      argv,
      env: host,
      workspace: workspace(),
      sockets: { egress: { path: egress.socketPath, token: session.token } },
    };
    const { exitCode, out } = await inSandbox({ ...probe, program: compiledProgram(executable) });
    expect({ escaped: exitCode === 0, sawSecret: out.includes(canary) }).toEqual({ escaped: false, sawSecret: false });
  });

  test("kill processes outside, which still run", () => {
    expect(victim.exitCode).toBeNull();
  });

  test("find the token of the run in anything that the kernel shows of a process", async () => {
    const half = session.token.slice(0, Math.floor(session.token.length / 2));
    const { out } = await inSandbox({
      argv: python(searchOfProcesses),
      env: { HALF: half },
      workspace: workspace(),
      sockets: { egress: { path: egress.socketPath, token: session.token } },
      program: compiledProgram(executable),
    });
    // The search finds what another process of the sandbox has in its variables and in an open file, and no token.
    expect(JSON.parse(out)).toEqual([`${half}-in-a-file`, `${half}-in-a-variable`]);
  });

  test("see the token of the run in a command line", async () => {
    const sandboxed = runSandboxed({
      argv: shell("echo up; read line"),
      sockets: { egress: { path: egress.socketPath, token: session.token } },
      program: compiledProgram(executable),
    });
    await sandboxed.stdout.getReader().read();
    const lines = allProcesses().map((pid) => processFile(pid, "cmdline"));
    sandboxed.kill();
    await sandboxed.ended;
    expect(lines.filter((line) => line.includes(session.token))).toEqual([]);
    expect(lines.some((line) => line.includes("bwrap"))).toBe(true);
  });
});

/** Prints each text after HALF in the variables, arguments, open files and memory of all other processes, as JSON. */
const searchOfProcesses = `
import glob, json, os, re, subprocess
half = os.environ.pop("HALF")
open("plant", "w").write(half + "-in-a-file")
with open("plant") as file:
    plant = subprocess.Popen(["sleep", "60"], env={"PLANT": half + "-in-a-variable"}, stdin=file)
found = set()
def search(data):
    found.update(each.decode() for each in re.findall(re.escape(half).encode() + rb"[\\w-]+", data))
def searchMemory(folder):
    with open(folder + "/mem", "rb") as memory:
        for line in open(folder + "/maps"):
            addresses, access = line.split()[:2]
            start, end = (int(at, 16) for at in addresses.split("-"))
            for at in range(start, end if "r" in access else start, 1 << 24):
                try:
                    memory.seek(at)
                    search(memory.read(min(end - at, 1 << 24)))
                except (OSError, OverflowError, ValueError): pass
for folder in glob.glob("/proc/[0-9]*"):
    if folder == f"/proc/{os.getpid()}": continue
    for path in [folder + "/environ", folder + "/cmdline", *glob.glob(folder + "/fd/*")]:
        try:
            if os.path.isfile(path): search(open(path, "rb").read())
        except OSError: pass
    try: searchMemory(folder)
    except OSError: pass
plant.kill()
print(json.dumps(sorted(found)))
`;

describe("the sandbox limits", () => {
  const hogs = {
    memory: python("held = []\nwhile True: held.append(bytearray(8 << 20))"),
    processes: python(
      "import os, signal\nn = 0\ntry:\n  while True:\n    if os.fork() == 0: signal.pause()\n    n += 1\nexcept OSError: print(n)",
    ),
  };

  test("a memory hog, which is stopped", async () => {
    const { exitCode, limit } = await inSandbox({ argv: hogs.memory, limits: { memoryBytes: 256 * MiB } });
    expect({ exitCode, limit }).toEqual({
      exitCode: 137,
      limit: { limit: "memory", value: 256 * MiB, unit: "bytes" },
    });
  });

  test("folders in memory", async () => {
    const { out } = await inSandbox({
      argv: shell(
        'for at in /tmp /home /dev/shm; do head -c 100M /dev/zero 2>/dev/null >"$at/x"; wc -c <"$at/x"; rm "$at/x"; done',
      ),
      limits: { memoryBytes: 128 * MiB },
    });
    expect(out).toBe(`${32 * MiB}\n`.repeat(3));
  });

  test("a fork bomb", async () => {
    const { exitCode, out } = await inSandbox({ argv: hogs.processes, limits: { processes: 64 } });
    expect(exitCode).toBe(0);
    expect(Number(out)).toBeGreaterThan(30);
    expect(Number(out)).toBeLessThan(64);
  });

  test("the disk, which neither many files nor one can fill", async () => {
    const limits = { workspaceBytes: 20 * MiB };
    const limit = { limit: "workspace_bytes", value: 20 * MiB, unit: "bytes" } as const;
    const many = await inSandbox({
      argv: shell("i=0; while :; do i=$((i + 1)); head -c 3M /dev/zero >$i; done"),
      workspace: workspace(),
      limits,
    });
    expect({ ...many, err: "" }).toMatchObject({ exitCode: 137, limit });
    const empty = await inSandbox({
      argv: python("n = 0\nwhile True:\n  n += 1\n  open(str(n), 'w').close()"),
      workspace: workspace(),
      limits: { workspaceBytes: 4 * MiB },
    });
    expect(empty).toMatchObject({ exitCode: 137, limit: { ...limit, value: 4 * MiB } });
    const one = await inSandbox({ argv: shell("head -c 40M /dev/zero >one"), workspace: workspace(), limits });
    expect(one).toMatchObject({ exitCode: 153, limit });
  });

  test.each([
    ["open", "f = os.open(name, os.O_RDWR | os.O_CREAT)\n  os.unlink(name)\n  os.write(f, bytes(1 << 20))"],
    [
      "mapped",
      "f = os.open(name, os.O_RDWR | os.O_CREAT)\n  os.write(f, bytes(1 << 20))\n  maps.append(mmap.mmap(f, 1 << 20))\n  os.unlink(name)\n  os.close(f)",
    ],
  ])("a process that fills the disk with deleted files that are still %s", async (_, step) => {
    const code = `import mmap, os, time\nmaps = []\nfor i in range(200):\n  name = str(i)\n  ${step}\ntime.sleep(60)`;
    const filled = await inSandbox({
      argv: python(code),
      workspace: workspace(),
      limits: { workspaceBytes: 20 * MiB },
    });
    expect({ ...filled, err: "" }).toMatchObject({
      exitCode: 137,
      limit: { limit: "workspace_bytes", value: 20 * MiB, unit: "bytes" },
    });
  });

  describe("a workspace that is a file system, where", () => {
    const bytes = 20 * MiB;
    const limits = { workspaceBytes: bytes };
    const limit = { limit: "workspace_bytes", value: bytes, unit: "bytes" } as const;
    const openFiles = `import os
for i in range(40):
  f = os.open(str(i), os.O_RDWR | os.O_CREAT)
  os.unlink(str(i))
  os.write(f, bytes(1 << 20))`;

    test.each([
      ["one file", shell("head -c 60M /dev/zero >one"), limit],
      ["many files", shell("for i in $(seq 20); do head -c 3M /dev/zero >$i || exit 1; done"), limit],
      // The space of deleted files is free again when the command has ended.
      ["deleted files that stay open", python(openFiles), null],
    ])("%s beyond the limit fail immediately, and are not on the disk", async (_, argv, hit) => {
      await using mounted = await openWorkspace(workspace().path, bytes);
      const { exitCode, err, limit: reached } = await inSandbox({ argv, workspace: mounted, limits });
      expect([exitCode, reached]).toEqual([1, hit]);
      expect(err).toContain("No space left on device");
      expect(statSync(pathOf(mounted)).dev).not.toBe(statSync(folder).dev);
    });

    test("files stay for the next command, and the host sees them only in the workspace", async () => {
      const at = workspace().path;
      const mounted = await openWorkspace(at, bytes);
      await inSandbox({ argv: shell("echo kept >note"), workspace: mounted, limits });
      expect(await inSandbox({ argv: ["cat", "note"], workspace: mounted, limits })).toMatchObject({ out: "kept\n" });
      expect([readdirSync(at), readdirSync(pathOf(mounted))]).toEqual([[], ["note"]]);
      const holder = mounted.holder;
      await mounted[Symbol.asyncDispose]();
      await until("the holder is gone", () => !existsSync(`/proc/${holder}`));
    });

    test("the model is warned near the limit, and too many files are stopped", async () => {
      await using mounted = await openWorkspace(workspace().path, bytes);
      let near: unknown = null;
      const onNear = (hit: unknown) => {
        near = hit;
      };
      const run = { workspace: mounted, limits, onNear };
      expect(await inSandbox({ argv: shell("head -c 17M /dev/zero >x"), ...run })).toMatchObject({ limit: null });
      expect(near).toEqual(limit);
      const files = python("import os\nos.remove('x')\nn = 0\nwhile True:\n  n += 1\n  open(str(n), 'w').close()");
      expect(await inSandbox({ argv: files, ...run })).toMatchObject({ exitCode: 137, limit });
    });

    test("files don't count as memory of a command", async () => {
      await using mounted = await openWorkspace(workspace().path, 200 * MiB);
      const run = { workspace: mounted, limits: { memoryBytes: 128 * MiB, workspaceBytes: 200 * MiB } };
      const both = shell("head -c 190M /dev/zero >x; python3 -c 'bytearray(60 << 20)'; rm x");
      expect(await inSandbox({ argv: both, ...run })).toMatchObject({ exitCode: 0, limit: null });
      const hog = await inSandbox({ argv: python("import time; x = bytearray(200 << 20); time.sleep(60)"), ...run });
      expect(hog).toMatchObject({ exitCode: 137, limit: { limit: "memory", value: 128 * MiB } });
    });

    test("memory that a starting process shares with the one that starts it counts once", async () => {
      await using mounted = await openWorkspace(workspace().path, bytes);
      // Until something writes to its input, the new process uses the memory of the one that starts it.
      const start = `import os
held = bytearray(80 << 20)
input = (os.POSIX_SPAWN_OPEN, 0, "input", os.O_RDONLY, 0)
os.waitpid(os.posix_spawn("/bin/true", ["true"], {}, file_actions=[input]), 0)`;
      const argv = shell(`mkfifo input; (sleep 1; : >input) & exec python3 -c '${start}'`);
      const run = { argv, workspace: mounted, limits: { memoryBytes: 128 * MiB, workspaceBytes: bytes } };
      expect(await inSandbox(run)).toMatchObject({ exitCode: 0, limit: null, err: "" });
    });

    test("a command ends when its workspace is closed", async () => {
      const mounted = await openWorkspace(workspace().path, bytes);
      const sandboxed = runSandboxed({ argv: shell("echo up; read line"), workspace: mounted, limits });
      await sandboxed.stdout.getReader().read();
      await mounted[Symbol.asyncDispose]();
      sandboxed.kill();
      expect(await sandboxed.ended).toEqual({ exitCode: 137, limit: null, hasRun: false, wasDiskFull: false });
    });

    test("files stay on disk if there is not enough memory", async () => {
      const at = workspace().path;
      const { path, holder, problem } = await openWorkspace(at, 2 ** 50);
      expect([path, holder, problem]).toEqual([realpathSync(at), null, expect.stringContaining("memory")]);
    });

    test("a holder ends with the process that opened it", async () => {
      const code = `const { openWorkspace } = await import("${root}/src/agents/sandbox/workspace.ts");
        console.log((await openWorkspace("${workspace().path}", ${bytes})).holder); await Bun.sleep(1e6);`;
      const opener = Bun.spawn([process.execPath, "-e", code], { stdout: "pipe" });
      const { value } = await opener.stdout.getReader().read();
      const holder = Number(Buffer.from(value ?? []).toString());
      expect(existsSync(`/proc/${holder}`)).toBe(true);
      opener.kill("SIGKILL");
      await until("the holder is gone", () => !existsSync(`/proc/${holder}`));
    });
  });

  test("commands by rlimits and monitoring if there are no control groups", async () => {
    const run = (argv: string[]) => {
      const script = [process.execPath, join(root, "test/support/sandboxed.ts")];
      const limits = { memoryBytes: 256 * MiB, processes: 64 };
      const shown = "--dev-bind / / --ro-bind /sys/fs/cgroup /sys/fs/cgroup --cap-add ALL --".split(" ");
      const ran = Bun.spawnSync(["bwrap", ...shown, ...script, JSON.stringify({ argv, limits })]);
      return JSON.parse(ran.stdout.toString());
    };
    expect(run(hogs.memory)).toMatchObject({
      boundBy: "rlimits",
      exitCode: 137,
      limit: { limit: "memory", value: 256 * MiB, unit: "bytes" },
    });
    const { out } = run(hogs.processes);
    expect(Number(out)).toBeGreaterThan(30);
    expect(Number(out)).toBeLessThan(64);
  });
});

test.skipIf(process.arch !== "x64")(
  "keyrings, io_uring, other machine types and other socket families are denied",
  async () => {
    const { out } = await inSandbox({
      argv: python(`
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(*numbers):
  libc.syscall(*numbers)
  return ctypes.get_errno()
print([call(250, 0, -3, 0), call(248, b"user", b"a", b"b", 1, -3), call(249, b"user", b"a", None, -3)])
print([call(425, 1, 0), call(0x40000000 + 39)])
def family(number):
  try:
    socket.socket(number, socket.SOCK_DGRAM).close()
    return 0
  except OSError as error:
    return error.errno
print([family(each) for each in (1, 2, 10, 16)], [family(each) for each in (17, 38, 40)])
`),
    });
    const [EPERM, ENOSYS, EAFNOSUPPORT] = [1, 38, 97];
    expect(
      out
        .trim()
        .split("\n")
        .map((line) => line.match(/\d+/g)?.map(Number)),
    ).toEqual([
      [EPERM, EPERM, EPERM],
      [ENOSYS, ENOSYS],
      [0, 0, 0, 0, EAFNOSUPPORT, EAFNOSUPPORT, EAFNOSUPPORT],
    ]);
  },
);

describe("a sandboxed command", () => {
  /** A number of seconds of sleep that identifies a process. */
  const markOf = (n: number) => String(process.pid * 10 + 1_000_000 + n);
  const marks = [markOf(1), markOf(2), markOf(3), markOf(4), markOf(5)] as const;

  test("ends with all processes that it leaves behind with setsid", async () => {
    const { exitCode } = await inSandbox({
      argv: shell(`setsid sleep ${marks[0]} & until pgrep -x sleep; do sleep 0.01 & wait $!; done`),
    });
    expect(exitCode).toBe(0);
    await untilGone(marks[0]);
  });

  test.each([
    ["a kill", marks[1], (sandboxed: SandboxProcess, _abort: AbortController) => sandboxed.kill()],
    ["an abort", marks[2], (_sandboxed: SandboxProcess, abort: AbortController) => abort.abort()],
  ])("ends with everything inside after %s", async (_, mark, end) => {
    const abort = new AbortController();
    const sandboxed = runSandboxed({ argv: shell(`setsid sleep ${mark} & echo up; wait`), signal: abort.signal });
    await sandboxed.stdout.getReader().read();
    end(sandboxed, abort);
    expect(await sandboxed.ended).toEqual({ exitCode: 137, limit: null, hasRun: false, wasDiskFull: false });
    await untilGone(mark);
  });

  test("ends with everything inside after a kill at any moment of its start", async () => {
    const random = randomOf(1);
    for (let i = 0; i < 100; i++) {
      const sandboxed = runSandboxed({ argv: shell(`setsid sleep ${marks[4]} & wait`) });
      // This is a busy loop because a timer is not precise enough.
      for (const end = performance.now() + random() * 25; performance.now() < end; );
      sandboxed.kill();
      await sandboxed.ended;
    }
    await untilGone(marks[4]);
  });

  test("ends with everything below it when the service is killed", async () => {
    const run = { argv: shell(`setsid sleep ${marks[3]} & echo up; wait`), workspace: workspace() };
    const service = Bun.spawn(
      [process.execPath, join(root, "test/support/sandboxed.ts"), JSON.stringify(run), "follow"],
      { stdout: "pipe" },
    );
    await service.stdout.getReader().read();
    await until("its process is running", () => running(marks[3]).length === 1);
    service.kill("SIGKILL");
    await untilGone(marks[3]);
  });

  test("leaves no control group behind", async () => {
    // Other test files run in this process as well, and may have left theirs.
    const groups = () =>
      Bun.spawnSync(["find", "/sys/fs/cgroup", "-name", `evald-${process.pid}-*`])
        .stdout.toString()
        .split("\n")
        .sort();
    const before = groups();
    await inSandbox({ argv: ["true"] });
    expect(groups().filter((group) => !before.includes(group))).toEqual([]);
  });

  test.each([
    ["alone", false],
    ["behind the bridge", true],
  ])("gets signals, input and arguments, and returns its exit code: %s", async (_, bridged) => {
    const sockets = bridged ? { egress: { path: egress.socketPath, token: session.token } } : undefined;
    const run = (argv: string[]) => inSandbox({ argv, sockets, program: compiledProgram(executable) });
    expect((await run(shell("exit 7"))).exitCode).toBe(7);
    expect((await run(shell("kill -9 $$"))).exitCode).toBe(137);
    expect((await run(["printf", "%s|", "--help", "a b", "--", "$HOME"])).out).toBe("--help|a b|--|$HOME|");
    const sandboxed = runSandboxed({
      argv: shell("trap 'echo told; exit 3' TERM; read line; echo \"$line\"; while :; do sleep 0.05; done"),
      sockets,
      program: compiledProgram(executable),
    });
    sandboxed.stdin.write("hello\n");
    sandboxed.stdin.flush();
    const reader = sandboxed.stdout.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("hello\n");
    sandboxed.signal("SIGTERM");
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("told\n");
    expect((await sandboxed.ended).exitCode).toBe(3);
  });

  test("returns its complete output after it used the network, however long", async () => {
    const { exitCode, out, err } = await inSandbox({
      argv: shell("curl -s http://docs.test/ >&2; head -c 5000000 /dev/zero; head -c 3000000 /dev/zero >&2"),
      sockets: { egress: { path: egress.socketPath, token: session.token } },
      program: compiledProgram(executable),
    });
    expect([exitCode, out.length]).toEqual([0, 5_000_000]);
    expect(err.length).toBeGreaterThan(3_000_000);
  });

  test("ends with its bridge, whatever it left open", async () => {
    const hold =
      "import socket, time; s = socket.create_connection(('127.0.0.1', 3128)); print('up', flush=True); time.sleep(60)";
    const { exitCode } = await inSandbox({
      argv: ["bash", "-c", `exec 3< <(exec python3 -c "${hold}"); read -u 3 line`],
      sockets: { egress: { path: egress.socketPath, token: session.token } },
      program: compiledProgram(executable),
    });
    expect(exitCode).toBe(0);
  });

  test("is reported by name if its program is missing", async () => {
    const sockets = { egress: { path: egress.socketPath, token: session.token } };
    const { exitCode, err } = await inSandbox({ argv: ["no-such-program"], sockets });
    expect({ exitCode, err }).toEqual({ exitCode: 127, err: expect.stringContaining("no-such-program cannot be run") });
  });
});

describe.each([["from source"], ["compiled"]])("in a sandbox, %s", (how) => {
  const run = (code: string) =>
    inSandbox({
      argv: shell(code),
      workspace: workspace(),
      sockets: { egress: { path: egress.socketPath, token: session.token } },
      program: how === "compiled" ? compiledProgram(executable) : undefined,
    });

  test("an npm package is installed through the proxy, and node, python and git run", async () => {
    const { exitCode, out, err } = await run(
      "npm install --no-audit --no-fund --no-update-notifier ms@2.1.3 >&2 && node -p 'require(\"ms\")(1000)' && python3 -c 'print(6 * 7)' && git init -q . && ls -d .git && id -un",
    );
    expect({ exitCode, out, err: exitCode === 0 ? "" : err }).toEqual({
      exitCode: 0,
      out: "1s\n42\n.git\nagent\n",
      err: "",
    });
  });

  // Without root, this can be set ten times a second on the whole machine.
  test.if(existsSync("/proc/self/autogroup"))(
    "commands have a lower priority than the rest of the machine",
    async () => {
      const { out } = await run('until grep "nice 5" /proc/self/autogroup; do sleep 0.1; done; nice');
      expect(out).toMatch(/^\/autogroup-\d+ nice 5\n19\n$/);
    },
    300_000,
  );

  test("a browser reads a page of the run", async () => {
    const { out } = await run(
      "chromium --headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --no-first-run --proxy-server=http://127.0.0.1:3128 --dump-dom http://docs.test/",
    );
    expect(out).toContain("<title>new</title>");
    expect(out).toContain(canary);
  });
});

/** Result of a command in the sandbox of an ordinary user. */
function byUser(argv: string[], limits: object = {}, mountedBytes = 0) {
  const program = [process.execPath, root].map((path) => realpathSync(path));
  const code = `
    import { mkdtempSync } from "node:fs";
    const { inSandbox } = await import("/run/evald/test/support/sandboxed.ts");
    const { openWorkspace } = await import("/run/evald/src/agents/sandbox/workspace.ts");
    const folder = mkdtempSync("/tmp/evald-user-");
    await using mounted = ${mountedBytes} > 0 ? await openWorkspace(folder, ${mountedBytes}) : null;
    const workspace = mounted ?? { path: folder, holder: null };
    const ran = await inSandbox({ argv: ${JSON.stringify(argv)}, workspace, limits: ${JSON.stringify(limits)} });
    console.log(JSON.stringify({ uid: process.getuid(), isMounted: workspace.holder !== null, ...ran }));
  `;
  const places = `--dev-bind / / --tmpfs /run --size ${32 * MiB} --tmpfs /tmp --chmod 1777 /tmp`.split(" ");
  const ran = Bun.spawnSync([
    ...["bwrap", "--cap-add", "ALL", ...places],
    ...["--ro-bind", program[0] ?? "", "/run/bun", "--ro-bind", program[1] ?? "", "/run/evald"],
    ...["--", "setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups", "--", "/run/bun", "-e", code],
  ]);
  return JSON.parse(ran.stdout.toString());
}

describe.if(asRoot)("an ordinary user", () => {
  test("has a sandbox too", () => {
    const ran = byUser(shell("id -u; touch here; ls; cat /etc/shadow ; true"));
    expect(ran).toMatchObject({ uid: 65533, exitCode: 0, out: "1000\nhere\n", limit: null });
  });

  test("has a sandbox in which nothing can be hidden, so filling a closed folder is stopped as well", () => {
    const limit = { limit: "workspace_bytes", value: 4 * MiB, unit: "bytes" };
    const fill = "mkdir -p a/b; chmod 300 a/b a; head -c 3M /dev/zero >a/b/1; head -c 3M /dev/zero >a/b/2; sleep 20";
    expect(byUser(shell(fill), { workspaceBytes: 4 * MiB })).toMatchObject({ uid: 65533, exitCode: 137, limit });
    const close = "mkdir a; echo kept >a/1; chmod 0 a; sleep 1; cat a/1";
    expect(byUser(shell(close))).toMatchObject({ exitCode: 0, out: "kept\n", limit: null });
  });

  test("has a workspace of limited size as well", () => {
    const limit = { limit: "workspace_bytes", value: 4 * MiB, unit: "bytes" };
    const ran = byUser(shell("head -c 6M /dev/zero >x; wc -c <x; exit 3"), { workspaceBytes: 4 * MiB }, 4 * MiB);
    expect(ran).toMatchObject({ uid: 65533, isMounted: true, exitCode: 3, out: `${4 * MiB}\n`, limit });
    expect(ran.err).toContain("No space left on device");
  });
});
