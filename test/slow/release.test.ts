import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../../package.json" with { type: "json" };
import { sha256 } from "../../release/archives.ts";
import { architectureOf, packageFileOf } from "../../release/debian.ts";
import { ownPlatform } from "../../release/platforms.ts";
import { serve } from "../support/executable.ts";
import { startRegistry } from "../support/registry.ts";

// RELEASE=all makes the release for every platform, and installs it with more package managers and versions of Node.js.
const root = join(import.meta.dir, "..", "..");
const folder = mkdtempSync(join(tmpdir(), "evald-release-test-"));
const platform = ownPlatform().name;
const isLong = process.env.RELEASE === "all";
const names = isLong ? [] : [platform];
const archive = `evald-${version}-${platform}.tar.gz`;
const first = join(folder, "first", "dist", "release");

type Options = { cwd?: string; env?: Record<string, string | undefined> };

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
  mkdirSync(join(folder, "other home"));
  const signed = { MINISIGN_SECRET_KEY: join(folder, "evald.key") };
  const other = { HOME: join(folder, "other home"), TZ: "Asia/Tokyo", LANG: "de_DE.UTF-8" };
  await Promise.all([
    checkOut(source, "first").then((clone) => release(clone, { ...signed, TZ: "UTC" })),
    checkOut(source, "a second folder").then((clone) => release(clone, { ...signed, ...other })),
  ]);
  registry = startRegistry();
  for (const name of readdirSync(first).filter((each) => each.endsWith(".tgz"))) await registry.add(join(first, name));
}, 1_200_000);

afterAll(() => {
  registry?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("the same commit gives the same bytes in another folder, home, time zone and locale", () => {
  expect(digestsIn(join(folder, "a second folder", "dist", "release"))).toEqual(digestsIn(first));
  const architecture = architectureOf(ownPlatform());
  if (architecture !== null) expect(Object.keys(digestsIn(first))).toContain(packageFileOf(architecture));
});

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

test("minisign accepts the list of digests, and refuses it or its signature with a changed byte", async () => {
  const signature = "SHA256SUMS.minisig";
  const verify = async (list: string, by: string) =>
    (await run(["minisign", "-V", "-p", "evald.pub", "-x", by, "-m", list])).code;
  const files = ["SHA256SUMS", signature].map((name) => {
    cpSync(join(first, name), join(folder, name));
    damage(join(folder, name));
    return { good: join(first, name), damaged: join(folder, name) };
  });
  const [list, by] = files as [(typeof files)[0], (typeof files)[0]];
  expect(await verify(list.good, by.good)).toBe(0);
  expect(await verify(list.damaged, by.good)).not.toBe(0);
  expect(await verify(list.good, by.damaged)).not.toBe(0);
});

test("the list has the digest of every file, and each is refused with a changed byte", async () => {
  const copy = join(folder, "every file damaged");
  cpSync(first, copy, { recursive: true });
  const files = readdirSync(first).filter((name) => !name.startsWith("SHA256SUMS"));
  const check = async () => (await run(["sha256sum", "--check", "SHA256SUMS"], { cwd: copy })).stdout;
  expect((await check()).trim().split("\n").sort()).toEqual(files.map((name) => `${name}: OK`).sort());
  for (const name of files) damage(join(copy, name));
  expect((await check()).trim().split("\n").sort()).toEqual(files.map((name) => `${name}: FAILED`).sort());
  rmSync(copy, { recursive: true });
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

test("the stack trace of an error is resolved to source lines by the maps of the release", async () => {
  const maps = `evald-${version}-${platform}-maps`;
  await mustRun(["tar", "-xzf", join(first, `${maps}.tar.gz`), "-C", folder]);
  const evald = join(folder, "installed", "bin", "evald");
  const cwd = mkdtempSync(join(folder, "failing-"));
  const service = await serve({ cwd, file: evald });
  const database = new Database(join(cwd, "data", "evald.db"));
  // The service may be writing.
  database.run("pragma busy_timeout = 5000");
  database.run("pragma foreign_keys = off");
  database.run("drop table jobs");
  database.close();
  const [log] = await service.said(/.*could not claim jobs.*/);
  await service.stop("SIGKILL");
  const resolve = (folderOfMaps: string) =>
    Bun.spawnSync([evald, "stack", "--maps", folderOfMaps], { stdin: Buffer.from(log), stderr: "pipe" });
  const lines = resolve(join(folder, maps)).stdout.toString();
  expect(lines).not.toContain("$bunfs");
  const [, file = "", line] = /(src\/jobs\/runner\.ts):(\d+):\d+/.exec(lines) ?? [];
  expect(readFileSync(join(root, file), "utf8").split("\n")[Number(line) - 1]).toMatch(
    /claimJobs\(|listOrphanedJobs\(/,
  );
  expect(resolve(first)).toMatchObject({ exitCode: 2 });
}, 120_000);

test("a platform whose runtime has a changed byte fails the release, which names it", async () => {
  const clone = join(folder, "a second folder");
  const cache = join(clone, "node_modules", ".cache", "evald-release");
  for (const name of readdirSync(cache)) damage(join(cache, name));
  expect(await run([process.execPath, "release/release.ts", platform], { cwd: clone })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`${platform} failed`),
  });
  expect(readdirSync(join(clone, "dist", "release"))).toEqual([]);
}, 120_000);

describe.if(isLong)("long", () => {
  /** A home that uses the registry, with packages of npm's own registry for its PATH. Yarn and pnpm distrust packages that are new. */
  async function createHome(...tools: string[]) {
    const home = mkdtempSync(join(folder, "home-"));
    // The environment may name a proxy or a certificate authority for npm's own registry.
    await mustRun(["npm", "install", "--prefix", join(home, "tools"), ...tools], { env: process.env });
    writeFileSync(join(home, ".npmrc"), `registry=${registry.url}\n`);
    const settings = { npmRegistryServer: registry.url, unsafeHttpWhitelist: ["127.0.0.1"], npmMinimalAgeGate: 0 };
    writeFileSync(join(home, ".yarnrc.yml"), JSON.stringify(settings));
    writeFileSync(join(home, "package.json"), "{}");
    writeFileSync(join(home, "yarn.lock"), "");
    const env = {
      ...{ HOME: home, BUN_CONFIG_REGISTRY: registry.url, TMPDIR: home, YARN_ENABLE_TELEMETRY: "0" },
      // As root, Yarn 1 has a cache outside of the home, with packages of earlier releases.
      YARN_CACHE_FOLDER: join(home, "yarn-cache"),
      PATH: `${join(home, "tools", "node_modules", ".bin")}:${process.env.PATH}`,
    };
    return { cwd: home, env };
  }

  test.each([
    ["pnpm@12.21.0", ["pnpm", "dlx"], "pnpm dlx evald@latest"],
    ["bun@1.4.5", ["bun", "x"], "bunx evald@latest"],
    ["@yarnpkg/cli-dist@4.18.1", ["yarn", "dlx", "-q"], "yarn dlx evald@latest"],
  ])(
    "%s runs evald in an empty home",
    async (manager, command, upgrade) => {
      const home = await createHome(manager);
      expect(await mustRun([...command, "evald", "--version"], home)).toEndWith(`${version}\n`);
      expect(await mustRun([...command, "evald", "upgrade"], home)).toEndWith(`${upgrade}\n`);
    },
    300_000,
  );

  test.each(["yarn@1.22.22", "@yarnpkg/cli-dist@4.18.1"])(
    "%s installs evald",
    async (manager) => {
      const home = await createHome(manager);
      await mustRun(["yarn", "add", "evald"], home);
      expect(await mustRun(["yarn", "evald", "--version"], home)).toContain(`${version}\n`);
      expect(await mustRun(["yarn", "evald", "upgrade"], home)).toContain("yarn add evald@latest\n");
    },
    300_000,
  );

  test.each(["14.9.0", "16.9.1"])(
    "the launcher says that Node.js %s is too old",
    async (old) => {
      const { cwd } = await createHome(`node@${old}`);
      // Without the old Node.js on its PATH, on which npm doesn't run.
      await mustRun(["npm", "install", "evald"], { cwd, env: { HOME: cwd } });
      const node = join(cwd, "tools", "node_modules", "node", "bin", "node");
      expect(await run([node, join(cwd, "node_modules", "evald", "evald.cjs"), "--version"])).toMatchObject({
        ...{ code: 1, stdout: "" },
        stderr: expect.stringMatching(new RegExp(`Node\\.js \\d+ .*${old}`)),
      });
    },
    300_000,
  );
});
