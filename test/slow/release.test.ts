import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../../package.json" with { type: "json" };
import { sha256 } from "../../release/archives.ts";
import { ownPlatform } from "../../release/platforms.ts";
import { startRegistry } from "../support/registry.ts";

// RELEASE=all makes the release for every platform, which takes minutes more.
const root = join(import.meta.dir, "..", "..");
const folder = mkdtempSync(join(tmpdir(), "evald-release-test-"));
const platform = ownPlatform().name;
const names = process.env.RELEASE === "all" ? [] : [platform];
const archive = `evald-${version}-${platform}.tar.gz`;
const first = join(folder, "first", "dist", "release");

type Options = { cwd?: string; env?: Record<string, string> };

async function run(command: string[], { cwd = folder, env = {} }: Options = {}) {
  const child = Bun.spawn(command, {
    cwd,
    env: { PATH: process.env.PATH ?? "", HOME: join(folder, "home"), ...env },
    stdin: "ignore",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, stdout, stderr };
}

async function mustRun(command: string[], options?: Options): Promise<string> {
  const { code, stdout, stderr } = await run(command, options);
  if (code !== 0) throw new Error(`${command.join(" ")} failed:\n${stdout}${stderr}`);
  return stdout;
}

/** A clone with installed packages, as someone who makes a release has it. Downloaded runtimes are shared. */
async function checkOut(source: string, name: string): Promise<string> {
  const clone = join(folder, name);
  await mustRun(["git", "clone", "-q", source, clone]);
  await mustRun([process.execPath, "install", "--frozen-lockfile"], {
    cwd: clone,
    env: { HOME: process.env.HOME ?? "/" },
  });
  const cache = join(root, "node_modules", ".cache", "evald-release");
  mkdirSync(cache, { recursive: true });
  cpSync(cache, join(clone, "node_modules", ".cache", "evald-release"), { recursive: true });
  return clone;
}

const release = (cwd: string, env: Record<string, string>) =>
  mustRun([process.execPath, "release/release.ts", ...names], { cwd, env });

const digestsIn = (path: string) =>
  Object.fromEntries(readdirSync(path).map((name) => [name, sha256(readFileSync(join(path, name)))]));

/** A copy of a file with one other byte in the middle. */
function damage(file: string): void {
  const bytes = readFileSync(file);
  const middle = bytes.length >> 1;
  bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  chmodSync(file, 0o755);
  writeFileSync(file, bytes);
}

let registry: ReturnType<typeof startRegistry>;

beforeAll(async () => {
  mkdirSync(join(folder, "home"));
  // The files as they are now, committed.
  const source = join(folder, "source");
  for (const file of (await mustRun(["git", "ls-files", "-co", "--exclude-standard"], { cwd: root }))
    .trim()
    .split("\n"))
    cpSync(join(root, file), join(source, file));
  const who = ["-c", "user.name=evald", "-c", "user.email=evald@example.com"];
  for (const args of [
    ["init", "-q"],
    ["add", "-A"],
    [...who, "commit", "-q", "-m", "Release"],
  ])
    await mustRun(["git", ...args], { cwd: source });
  await mustRun(["minisign", "-G", "-W", "-p", "evald.pub", "-s", "evald.key"]);
  await release(await checkOut(source, "first"), { MINISIGN_SECRET_KEY: join(folder, "evald.key"), TZ: "UTC" });
  registry = startRegistry();
  for (const name of readdirSync(first).filter((each) => each.endsWith(".tgz"))) await registry.add(join(first, name));
}, 1_200_000);

afterAll(() => {
  registry?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("the same commit gives the same bytes in another folder, home, time zone and locale", async () => {
  const second = await checkOut(join(folder, "source"), "a second folder");
  mkdirSync(join(folder, "other home"));
  const env = { HOME: join(folder, "other home"), TZ: "Asia/Tokyo", LANG: "de_DE.UTF-8" };
  await release(second, { ...env, MINISIGN_SECRET_KEY: join(folder, "evald.key") });
  expect(digestsIn(join(second, "dist", "release"))).toEqual(digestsIn(first));
}, 1_200_000);

test("a release is made only from a commit", async () => {
  const changed = join(folder, "changed");
  await mustRun(["git", "clone", "-q", join(folder, "source"), changed]);
  await mustRun(["ln", "-s", join(folder, "first", "node_modules"), "node_modules"], { cwd: changed });
  writeFileSync(join(changed, "README.md"), "changed");
  expect(await run([process.execPath, "release/release.ts", platform], { cwd: changed })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("commit"),
  });
});

test("the install script installs the executable, which says what it is, and refuses a changed byte", async () => {
  const prefix = join(folder, "installed");
  const install = (from: string, to: string) =>
    run(["sh", join(first, "install.sh")], { env: { DOWNLOAD_URL: `file://${from}`, PREFIX: to } });
  expect(await install(first, prefix)).toMatchObject({ code: 0 });
  const evald = join(prefix, "bin", "evald");
  expect(JSON.parse(await mustRun([evald, "--version", "--json"]))).toEqual({
    version,
    commit: (await mustRun(["git", "rev-parse", "HEAD"], { cwd: join(folder, "source") })).trim(),
    runtime: `bun ${Bun.version}`,
    platform: platform.replace("-musl", ""),
    libc: platform.endsWith("-musl") ? "musl" : "glibc",
    installedWith: "script",
  });
  expect(await mustRun([evald, "upgrade"])).toBe(`curl -fsSL file://${first}/install.sh | sh\n`);

  const damaged = join(folder, "damaged");
  mkdirSync(damaged);
  cpSync(join(first, archive), join(damaged, archive));
  damage(join(damaged, archive));
  const refused = await install(damaged, join(folder, "not-installed"));
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("SHA-256") });
  expect(readdirSync(join(folder, "not-installed", "bin"))).toEqual([]);
  expect(readdirSync(join(folder, "not-installed", "share", "evald"))).toEqual([]);
}, 120_000);

test("minisign accepts the list of digests, and refuses it with a changed byte", async () => {
  const verify = async (file: string) =>
    (await run(["minisign", "-V", "-p", "evald.pub", "-x", join(first, "SHA256SUMS.minisig"), "-m", file])).code;
  expect(await verify(join(first, "SHA256SUMS"))).toBe(0);
  expect(await mustRun(["sha256sum", "--check", "SHA256SUMS"], { cwd: first })).toContain(`${archive}: OK`);
  cpSync(join(first, "SHA256SUMS"), join(folder, "SHA256SUMS"));
  damage(join(folder, "SHA256SUMS"));
  expect(await verify(join(folder, "SHA256SUMS"))).not.toBe(0);
});

test("npx runs evald in an empty home, without install scripts, and the launcher passes on arguments and exit codes", async () => {
  const home = mkdtempSync(join(folder, "npx-"));
  const env = { HOME: home, npm_config_registry: registry.url };
  const npx = (...args: string[]) => run(["npx", "-y", "--ignore-scripts", "evald", ...args], { cwd: home, env });
  expect(await npx("--version")).toMatchObject({ code: 0, stdout: `${version}\n` });
  expect(await npx("eval", "file:///etc/passwd", "--goal", "x")).toMatchObject({ code: 2 });
  expect(await npx("upgrade")).toMatchObject({ stdout: "npx evald@latest\n" });
}, 120_000);

test("the launcher refuses an executable with a changed byte, and says which package is missing", async () => {
  const home = mkdtempSync(join(folder, "npm-"));
  const env = { HOME: home, npm_config_registry: registry.url };
  await mustRun(["npm", "install", "evald"], { cwd: home, env });
  const evald = join(home, "node_modules", ".bin", "evald");
  expect((await run([evald, "--version"])).stdout).toBe(`${version}\n`);
  expect((await run([evald, "upgrade"])).stdout).toBe("npm install evald@latest\n");
  const executable = join(home, "node_modules", "@evald", platform, "bin", "evald");
  damage(executable);
  expect(await run([evald, "--version"])).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringContaining("damaged"),
  });
  await mustRun(["npm", "install", "--omit=optional", "evald"], { cwd: home, env });
  rmSync(join(home, "node_modules", "@evald"), { recursive: true, force: true });
  const missing = expect.stringContaining(`@evald/${platform}`);
  expect(await run([evald, "--version"])).toMatchObject({ code: 1, stdout: "", stderr: missing });
}, 120_000);

test("a stack trace of the executable is resolved to source lines by the maps of the release", async () => {
  const maps = `evald-${version}-${platform}-maps`;
  await mustRun(["tar", "-xzf", join(first, `${maps}.tar.gz`), "-C", folder]);
  const evald = join(folder, "installed", "bin", "evald");
  const chunk = readdirSync(join(folder, maps)).find((name) => name.startsWith("program-"));
  const trace = `    at f (/$bunfs/root/${chunk?.replace(".js.map", ".js")}:3:2000)\n`;
  const stack = (folderOfMaps: string) =>
    Bun.spawnSync([evald, "stack", "--maps", folderOfMaps], { stdin: Buffer.from(trace), stderr: "pipe" });
  expect(stack(join(folder, maps)).stdout.toString()).toMatch(/ {4}at f \([\w./@-]+\.[jt]sx?:\d+:\d+\)\n/);
  expect(stack(first)).toMatchObject({ exitCode: 2 });
}, 120_000);
