import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { buildExecutable, call, emptyFolder, serve } from "../support/executable.ts";

beforeAll(buildExecutable, 300_000);

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

/** Prints each datagram that arrives at a unix socket: Bun has none. */
const receiver = `import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1].replace("@", "\\0"))
print("bound", flush=True)
while True: print(s.recv(99).decode(), flush=True)`;

test.each(["a path", "an abstract name"])(
  "the service tells systemd when it is ready and when it stops, at %s",
  async (kind) => {
    const cwd = newFolder();
    const address = kind === "a path" ? join(cwd, "notify") : `@evald-${crypto.randomUUID()}`;
    const supervisor = Bun.spawn(["python3", "-c", receiver, address], { stdout: "pipe" });
    const lines = linesOf(supervisor.stdout);
    expect((await lines.next()).value).toBe("bound");
    const service = await serve({ cwd, env: { NOTIFY_SOCKET: address } });
    expect((await lines.next()).value).toBe("READY=1");
    expect(await health(cwd)).toMatchObject({ code: 0 });
    const stopped = service.stop();
    expect((await lines.next()).value).toBe("STOPPING=1");
    expect(await stopped).toBe(0);
    supervisor.kill();
  },
);

async function* linesOf(stream: ReadableStream<Uint8Array>) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
