import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { AgentEvent } from "../../src/agents/agent.ts";
import { type Egress, startEgress } from "../../src/agents/egress/egress.ts";
import { createReader } from "../../src/agents/reader.ts";
import { openRelay } from "../../src/agents/relay/relay.ts";
import { compiledProgram } from "../../src/agents/sandbox/sandbox.ts";
import type { Task } from "../../src/agents/task.ts";
import { buildExecutable, executable } from "../support/executable.ts";
import { wideLimits } from "../support/limits.ts";
import { inSandbox } from "../support/sandboxed.ts";
import { type Site, serveFolder, serveSite } from "../support/site.ts";

const page = "<!doctype html><title>Upload</title><h1>Upload</h1><p>Send the file with <code>PUT /files</code>.</p>";
const bigBytes = 100 * 1024 ** 2;
const stops: (() => unknown)[] = [];
let folder = "";
let egress: Egress;
let site: Site;

beforeAll(async () => {
  await buildExecutable();
  folder = mkdtempSync(join(tmpdir(), "evald-relay-"));
  egress = await startEgress({ socketPath: join(folder, "egress.sock"), operatorHosts: [], now: Date.now });
  site = serveSite({
    "/a": { body: page },
    "/llms.txt": { body: "# Acme\n- [Upload](https://docs.acme.test/a)\n", type: "text/plain" },
    "/zipped": () =>
      new Response(Bun.gzipSync(page), { headers: { "content-type": "text/html", "content-encoding": "gzip" } }),
    "/api/page": { body: page },
    "/big": () => new Response(new Blob([new Uint8Array(bigBytes)])),
    "/upload": async (request) => new Response(String((await request.arrayBuffer()).byteLength)),
    "/text": { body: "hello\n", type: "text/plain" },
  });
}, 300_000);
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
afterAll(async () => {
  await egress.close();
  site.stop();
  rmSync(folder, { recursive: true });
});

type Run = { startUrls?: string[]; productUrl?: string | null; urlMap?: Record<string, string> };

/** A run with a relay. `shell` runs a script in its sandbox, as the tool call `t1`. */
async function open(run: Run = {}) {
  const task: Task = {
    text: "Upload a file",
    endGoal: null,
    limits: wideLimits,
    startUrls: ["https://docs.acme.test/a"],
    productUrl: null,
    urlMap: { "docs.acme.test": site.url },
    declaredChecks: [],
    ...run,
  };
  const events: AgentEvent[] = [];
  const session = egress.open({
    urls: task.productUrl ? [task.productUrl] : [],
    docsUrls: task.startUrls,
    urlMap: task.urlMap,
    allowPrivate: [{ host: "127.0.0.1", port: null }],
    onEvent: (event) => events.push(event),
  });
  const reader = createReader(task);
  const home = mkdtempSync(join(folder, "run-"));
  const relay = await openRelay({
    folder: home,
    egress: { path: egress.socketPath, token: session.token },
    task,
    reader,
    report: (event) => events.push(event),
    now: Date.now,
  });
  stops.push(session.close, () => relay[Symbol.asyncDispose]());
  const shell = (script: string) =>
    inSandbox({
      argv: ["sh", "-c", script],
      sockets: { egress: relay.toProxy("t1") },
      program: compiledProgram(executable),
    });
  const https = () => events.filter((event) => event.type === "http");
  const pages = () =>
    events.flatMap((event) => (event.type === "milestone" && event.name === "page_read" ? event.detail : []));
  return { shell, https, pages, home, relay };
}

describe("a program fetches an HTTPS page of a mapped host", () => {
  test.each([
    ["curl", "curl -sS https://docs.acme.test/text"],
    ["curl with a plain tunnel", "curl -sSp http://docs.acme.test/text"],
    ["wget", "wget -qO- https://docs.acme.test/text"],
    [
      "Python",
      `python3 -c "import urllib.request as u; print(u.urlopen('https://docs.acme.test/text').read().decode(), end='')"`,
    ],
    [
      "Node",
      `node -e "fetch('https://docs.acme.test/text').then((r) => r.text()).then((t) => process.stdout.write(t))"`,
    ],
    [
      "Node without a proxy",
      `env -u NODE_USE_ENV_PROXY node -e "require('https').get('https://docs.acme.test/text', (r) => r.pipe(process.stdout))"`,
    ],
    [
      "Node over HTTP",
      `node -e "fetch('http://docs.acme.test/text').then((r) => r.text()).then((t) => process.stdout.write(t))"`,
    ],
  ])("if it is %s", async (_, command) => {
    const { shell, https } = await open();
    expect(await shell(command)).toMatchObject({ exitCode: 0, out: "hello\n" });
    expect(https()).toMatchObject([
      { id: "t1", method: "GET", mappedUrl: `${site.url}/text`, status: 200, bytes: 6, error: null },
    ]);
  });
});

test("pages that a command fetches are read, and each request says how its URL was found", async () => {
  const { shell, https, pages } = await open({ startUrls: ["https://docs.acme.test/llms.txt"] });
  const at = "https://docs.acme.test";
  await shell(`curl -s ${at}/llms.txt; curl -s ${at}/a; curl -s ${at}/zipped; curl -s ${at}/missing; curl -sI ${at}/a`);
  expect(pages()).toEqual([
    { url: `${at}/llms.txt`, chars: expect.any(Number), form: "markdown", title: "Acme" },
    { url: `${at}/a`, chars: expect.any(Number), form: "html", title: "Upload" },
    { url: `${at}/zipped`, chars: expect.any(Number), form: "html", title: "Upload" },
  ]);
  expect(https()).toMatchObject([
    { url: `${at}/llms.txt`, status: 200, provenance: "given", foundOn: null },
    { url: `${at}/a`, status: 200, provenance: "llms.txt", foundOn: `${at}/llms.txt` },
    { url: `${at}/zipped`, status: 200, provenance: "guessed", foundOn: null },
    { url: `${at}/missing`, status: 404, provenance: "guessed", foundOn: null },
    { method: "HEAD", url: `${at}/a`, status: 200, provenance: "llms.txt" },
  ]);
});

test("responses of the product are not pages", async () => {
  const { shell, https, pages } = await open({ productUrl: "https://docs.acme.test/api/" });
  await shell("curl -s https://docs.acme.test/api/page");
  expect(https()).toMatchObject([{ id: "t1", status: 200, body: expect.stringContaining("PUT /files") }]);
  expect(pages()).toEqual([]);
});

test("a program reaches the run's own port on loopback, and its own servers as well", async () => {
  const { shell, https } = await open({ startUrls: [`${site.url}/a`], urlMap: {} });
  const own =
    "python3 -m http.server 8765 >/dev/null 2>&1 & echo mine >mine; until curl -s http://localhost:8765/mine; do sleep 0.1; done";
  expect(await shell(`curl -sS ${site.url}/text; ${own}`)).toMatchObject({ out: "hello\nmine\n", err: "" });
  expect(https()).toMatchObject([{ id: "t1", url: `${site.url}/text`, status: 200 }]);
});

test("a host outside the run is refused by name", async () => {
  const { shell, https } = await open();
  const { exitCode, err } = await shell("curl -sSv https://other.test/");
  expect(exitCode).not.toBe(0);
  expect(err).toContain("403");
  expect(https()).toMatchObject([{ method: "CONNECT", url: "https://other.test/", error: { kind: "refused" } }]);
});

test("100 MiB pass in both directions", async () => {
  const { shell, https } = await open();
  const at = "https://docs.acme.test";
  const { out } = await shell(`curl -s ${at}/big | wc -c; head -c 20M /dev/zero | curl -s -T - -X POST ${at}/upload`);
  expect(out).toBe(`${bigBytes}\n${20 * 1024 ** 2}`);
  expect(https()).toMatchObject([
    { method: "GET", status: 200, bytes: bigBytes },
    { method: "POST", status: 200, bytesOut: 20 * 1024 ** 2 },
  ]);
});

test.if(Bun.which("javac") !== null)(
  "Java trusts the authority",
  async () => {
    const source = join(folder, "Fetch.java");
    const main = `new java.net.URL("https://docs.acme.test/text").openStream().transferTo(System.out);`;
    writeFileSync(source, `class Fetch { public static void main(String[] args) throws Exception { ${main} } }`);
    Bun.spawnSync(["javac", "-Xlint:-deprecation", "--release", "11", source]);
    const program = readFileSync(join(folder, "Fetch.class")).toString("base64");
    const { shell } = await open();
    const proxy = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128";
    const ran = await shell(`echo ${program} | base64 -d >Fetch.class; java ${proxy} Fetch`);
    expect(ran).toMatchObject({ exitCode: 0, out: "hello\n" });
  },
  300_000,
);

test("one connection carries many requests, only over HTTP/1.1", async () => {
  const { shell, https } = await open();
  const text = "https://docs.acme.test/text";
  const { out } = await shell(`curl -s --http2 -w '%{num_connects} %{http_version} ' ${text} ${text} ${text}`);
  expect(out).toBe("hello\n1 1.1 hello\n0 1.1 hello\n0 1.1 ");
  expect(https()).toHaveLength(3);
});

test("git clones a repository over HTTPS", async () => {
  const repositories = mkdtempSync(join(folder, "git-"));
  const git = (...args: string[]) => Bun.spawnSync(["git", "-C", repositories, ...args], { stderr: "pipe" });
  git("init", "-q", "--bare", "acme.git");
  git("clone", "-q", "acme.git", "work");
  writeFileSync(join(repositories, "work", "README.md"), "# Acme\n");
  git("-C", "work", "add", ".");
  git("-C", "work", "-c", "user.name=a", "-c", "user.email=a@acme.test", "commit", "-qm", "First");
  git("-C", "work", "push", "-q", "origin", "HEAD:refs/heads/main");
  git("-C", "acme.git", "symbolic-ref", "HEAD", "refs/heads/main");
  git("-C", "acme.git", "update-server-info");
  const server = serveFolder(repositories);
  stops.push(server.stop);
  const { shell, https } = await open({ urlMap: { "docs.acme.test": server.url } });
  const { exitCode, out } = await shell("git clone -q https://docs.acme.test/acme.git && cat acme/README.md");
  expect({ exitCode, out }).toEqual({ exitCode: 0, out: "# Acme\n" });
  expect(https()[0]).toMatchObject({ url: "https://docs.acme.test/acme.git/info/refs?service=git-upload-pack" });
});

test("a WebSocket works, and if the server refuses one, its response is passed on", async () => {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request, server) =>
      server.upgrade(request) ? undefined : new Response("no sockets here", { status: 426 }),
    websocket: { message: (socket, text) => void socket.send(`echo ${text}`) },
  });
  stops.push(() => server.stop(true));
  const { shell, https } = await open({ urlMap: { "docs.acme.test": `http://127.0.0.1:${server.port}` } });
  const client = [
    "import base64, os, socket, ssl",
    "s = socket.create_connection(('127.0.0.1', 3128))",
    "s.sendall(b'CONNECT docs.acme.test:443 HTTP/1.1\\r\\n\\r\\n')",
    "assert b' 200 ' in s.recv(1000)",
    "s = ssl.create_default_context().wrap_socket(s, server_hostname='docs.acme.test')",
    "key = base64.b64encode(os.urandom(16)).decode()",
    "s.sendall(f'GET /ws HTTP/1.1\\r\\nHost: docs.acme.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Key: {key}\\r\\nSec-WebSocket-Version: 13\\r\\n\\r\\n'.encode())",
    "print(s.recv(1000).split(b' ')[1].decode())",
    "s.sendall(b'\\x81\\x82\\0\\0\\0\\0hi')",
    "print(s.recv(1000)[2:].decode())",
  ].join("\n");
  expect(await shell(`python3 -c "${client}"`)).toMatchObject({ exitCode: 0, out: "101\necho hi\n" });
  const refused = await shell(
    "curl -s -w ' %{http_code}' -H 'Connection: Upgrade' -H 'Upgrade: other' https://docs.acme.test/ws",
  );
  expect(refused.out).toBe("no sockets here 426");
  expect(https()).toMatchObject([
    { url: "https://docs.acme.test/ws", status: 101 },
    { url: "https://docs.acme.test/ws", status: 426 },
  ]);
});

test("a program that doesn't trust the authority or speak TLS gets no response, and others still do", async () => {
  const { shell, https } = await open();
  const distrusting = await shell("curl -sS --cacert /dev/null --capath /nonexistent https://docs.acme.test/text");
  expect(distrusting).toMatchObject({ exitCode: 77, out: "" });
  const garbage = [
    "import socket",
    "s = socket.create_connection(('127.0.0.1', 3128))",
    "s.sendall(b'CONNECT docs.acme.test:443 HTTP/1.1\\r\\n\\r\\n')",
    "s.recv(1000)",
    "s.sendall(b'\\x16\\x03\\x01\\x00\\x05nonsense' * 100)",
    "print(s.recv(1000)[:1])",
  ].join("\n");
  await shell(`python3 -c "${garbage}"`);
  expect(https()).toEqual([]);
  expect((await shell("curl -sS https://docs.acme.test/text")).out).toBe("hello\n");
});

test("a server that is down is reported by name", async () => {
  const gone = serveSite({});
  gone.stop();
  const { shell, https } = await open({ urlMap: { "docs.acme.test": gone.url } });
  const { out } = await shell("curl -s -w ' %{http_code}' https://docs.acme.test/a");
  expect(out).toBe("evald: docs.acme.test refused the connection\n 502");
  expect(https()).toMatchObject([{ url: "https://docs.acme.test/a", status: null, error: { kind: "unreachable" } }]);
});

test("the authority is trusted in no other sandbox, and its key is in no file", async () => {
  const { home, relay, shell } = await open();
  const other = await open();
  const { certificates } = relay.toProxy();
  const files = readdirSync(home, { recursive: true }).map((name) => basename(String(name)));
  expect(files.sort()).toEqual(["ca-certificates.crt", "cacerts", expect.stringMatching(/^relay-/), "socket"]);
  expect(readFileSync(certificates?.pem ?? "", "utf8")).not.toContain("PRIVATE KEY");
  const borrowed = await inSandbox({
    argv: ["curl", "-sS", "https://docs.acme.test/text"],
    sockets: { egress: { ...relay.toProxy("t1"), certificates: other.relay.toProxy().certificates } },
    program: compiledProgram(executable),
  });
  expect(borrowed).toMatchObject({ exitCode: 60, out: "" });
  const bundle = "/etc/ssl/certs/ca-certificates.crt";
  const { out } = await shell(`grep -c BEGIN ${bundle}; touch ${bundle} 2>/dev/null || echo read-only`);
  const system = readFileSync(bundle, "utf8").split("BEGIN").length - 1;
  expect(out).toBe(`${system + 1}\nread-only\n`);
});
