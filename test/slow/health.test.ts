import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { startWatchdog } from "../../src/cli/supervisor.ts";
import { buildExecutables, call, client, emptyFolder, furnish, instant, serve } from "../support/executable.ts";

beforeAll(buildExecutables, 300_000);

const folders: string[] = [];
const newFolder = () => {
  const folder = emptyFolder();
  folders.push(folder);
  return folder;
};
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

const health = async (cwd: string, env: Record<string, string> = {}) => {
  const { code, stdout, stderr } = await call(["health"], { cwd, env });
  return { code, stderr, lines: stdout.trimEnd().split("\n") };
};
const notRunning = { code: 1, stderr: "", lines: [expect.stringMatching(/^not running: /)] };

test("health asks the service on its own address and path, and says why it isn't ready", async () => {
  const cwd = newFolder();
  const env = { EVALD_BASE_URL: "https://evals.acme.dev/ax", EVALD_PORT: "1" };
  expect(await health(cwd, env)).toEqual(notRunning);
  const service = await serve({ cwd, env: { ...env, EVALD_PORT: "0" } });
  expect(await health(cwd, env)).toEqual({ code: 0, stderr: "", lines: ["ready"] });
  // A service that is suspended answers nothing.
  service.signal("SIGSTOP");
  expect(await health(cwd, env)).toEqual(notRunning);
  service.signal("SIGCONT");
  await service.stop("SIGKILL");
  expect(await health(cwd, env)).toEqual(notRunning);
});

test("a service that isn't ready says why", async () => {
  const answer = () => Response.json({ status: "not ready", detail: "the disk is full" }, { status: 503 });
  const service = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  const lines = ["not ready: the disk is full"];
  expect(await health(newFolder(), { EVALD_PORT: String(service.port) })).toEqual({ code: 1, stderr: "", lines });
  await service.stop(true);
});

test("another program on the port isn't taken for the service", async () => {
  const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json({ status: "fine" }) });
  expect(await health(newFolder(), { EVALD_PORT: String(other.port) })).toEqual(notRunning);
  await other.stop(true);
});

/** Prints each datagram that arrives at a unix socket, with its time in seconds if asked for: Bun has none. */
const receiver = `import socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1].replace("@", "\\0"))
print("bound", flush=True)
while True: print(s.recv(99).decode() + (" %.3f" % time.monotonic() if "timed" in sys.argv else ""), flush=True)`;

/** A socket like that of systemd, and what arrives at it. */
async function supervise(address: string, ...options: string[]) {
  const supervisor = Bun.spawn(["python3", "-c", receiver, address, ...options], { stdout: "pipe" });
  const lines = linesOf(supervisor.stdout);
  expect((await lines.next()).value).toBe("bound");
  return { next: async () => (await lines.next()).value ?? "", stop: () => supervisor.kill() };
}

test.each(["a path", "an abstract name"])(
  "the service tells systemd when it is ready and when it stops, at %s",
  async (kind) => {
    const cwd = newFolder();
    const address = kind === "a path" ? join(cwd, "notify") : `@evald-${crypto.randomUUID()}`;
    const supervisor = await supervise(address);
    const service = await serve({ cwd, env: { NOTIFY_SOCKET: address } });
    expect(await supervisor.next()).toBe("READY=1");
    expect(await health(cwd)).toMatchObject({ code: 0 });
    const stopped = service.stop();
    expect(await supervisor.next()).toBe("STOPPING=1");
    expect(await stopped).toBe(0);
    supervisor.stop();
  },
);

test("the watchdog of systemd is pinged, except while the event loop is blocked", async () => {
  const cwd = newFolder();
  const address = join(cwd, "notify");
  const supervisor = await supervise(address, "timed");
  const { key } = await furnish(cwd);
  const service = await serve({ cwd, file: instant, env: { NOTIFY_SOCKET: address, WATCHDOG_USEC: "600000" } });
  expect(await supervisor.next()).toStartWith("READY=1 ");
  const nextPing = async () => {
    const [, seconds] = /^WATCHDOG=1 (\S+)$/.exec(await supervisor.next()) ?? [];
    return Number(seconds) * 1000;
  };
  const first = await nextPing();
  let last = await nextPing();
  expect(last - first).toBeGreaterThan(100);

  const blockMs = 5000;
  const ask = client(service.url, key);
  const prompt = await ask("POST", "/api/v1/prompts", { text: `See https://docs.test/ and block ${blockMs} ms` });
  await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap: {} });
  let longestMs = 0;
  // The service may be blocked before the run is accepted.
  while (longestMs < blockMs - 500) {
    const ping = await nextPing();
    expect(ping).toBeGreaterThan(last);
    longestMs = Math.max(longestMs, ping - last);
    last = ping;
  }
  const stopped = service.stop();
  let line = "";
  do line = await supervisor.next();
  while (line.startsWith("WATCHDOG=1 "));
  expect(line).toStartWith("STOPPING=1 ");
  expect(await stopped).toBe(0);
  supervisor.stop();
}, 60_000);

test("the watchdog is not pinged while the database doesn't answer, nor for another process", async () => {
  const address = join(newFolder(), "notify");
  const supervisor = await supervise(address);
  const { NOTIFY_SOCKET } = process.env;
  process.env.NOTIFY_SOCKET = address;
  let checks = 0;
  const check = () => {
    if (++checks < 4) throw new Error("the disk is gone");
  };
  const stopOther = startWatchdog(
    () => {
      throw new Error("this is another process");
    },
    { WATCHDOG_USEC: "1000", WATCHDOG_PID: "1" },
  );
  const stop = startWatchdog(check, { WATCHDOG_USEC: "30000", WATCHDOG_PID: String(process.pid) });
  expect(await supervisor.next()).toBe("WATCHDOG=1");
  expect(checks).toBe(4);
  stop();
  stopOther();
  if (NOTIFY_SOCKET === undefined) delete process.env.NOTIFY_SOCKET;
  else process.env.NOTIFY_SOCKET = NOTIFY_SOCKET;
  supervisor.stop();
});

async function* linesOf(stream: ReadableStream<Uint8Array>) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
