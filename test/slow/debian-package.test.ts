import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageFileOf, toDebianPackage } from "../../release/debian.ts";
import { platformNamed } from "../../release/platforms.ts";
import { buildExecutable, executable } from "../support/executable.ts";

// `bun run try:packages`: installs a Debian system with mmdebstrap, which takes minutes. It needs root, mmdebstrap and lintian.
const isTried = process.env.PACKAGES === "all";
const root = join(import.meta.dir, "..", "..");
const folder = mkdtempSync(join(tmpdir(), "evald-debian-test-"));
const system = join(folder, "system");
const seconds = 1_790_000_000;
const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" };

function run(...command: string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { env: { ...env, PATH: process.env.PATH }, cwd: folder });
  return { code: exitCode, stdout: stdout.toString(), output: `${stdout}${stderr}` };
}

function mustRun(...command: string[]): string {
  const { code, stdout, output } = run(...command);
  if (code !== 0) throw new Error(`${command.join(" ")} failed:\n${output}`);
  return stdout;
}

/** A command in the system, with the devices and processes of this machine, which programs need. */
const enter = (...command: string[]) => {
  const mounts = ["dev", "proc"].map((name) => `mount --rbind /${name} ${system}/${name}`).join(" && ");
  return ["unshare", "--mount", "sh", "-c", `${mounts} && exec chroot ${system} "$@"`, "sh", ...command];
};
const inSystem = (...command: string[]) => run(...enter(...command));
const asUser = (...command: string[]) =>
  enter(
    ...["setpriv", "--reuid", "evald", "--regid", "evald", "--clear-groups"],
    ...["env", "-i", "PATH=/usr/bin:/bin", "HOME=/var/lib/evald", "EVALD_DATA_DIR=/var/lib/evald", ...command],
  );
const installed = () => inSystem("dpkg-query", "-W", "-f", "${Status} ${Version}", "evald").stdout;
const pathOf = (path: string) => join(system, path);
const backups = () => (existsSync(pathOf("var/backups/evald")) ? readdirSync(pathOf("var/backups/evald")) : []);

/** The package with this executable, and with the version of a later one. */
function makePackages(): void {
  const notices = ["LICENSE", "dist/THIRD-PARTY-LICENSES.txt"].map((file) => ({
    path: file.replace("dist/", ""),
    content: readFileSync(join(root, file)),
  }));
  const built = { platform: platformNamed("linux-x64"), executable: readFileSync(executable) };
  writeFileSync(join(folder, packageFileOf("amd64")), toDebianPackage(built, notices, seconds));
  mustRun("dpkg-deb", "-R", packageFileOf("amd64"), "later");
  const control = join(folder, "later", "DEBIAN", "control");
  writeFileSync(control, readFileSync(control, "utf8").replace(/^Version: .*$/m, "Version: 99.0.0-1"));
  mustRun("dpkg-deb", "-Zgzip", "-z1", "-b", "later", "later.deb");
}

beforeAll(async () => {
  if (!isTried) return;
  await buildExecutable();
  makePackages();
  mustRun("mmdebstrap", "--mode=root", "--variant=essential", "--include=adduser", "bookworm", system);
  for (const name of [packageFileOf("amd64"), "later.deb"]) mustRun("cp", name, join(system, name));
}, 1_200_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.skipIf(!isTried)("lintian finds no error, and systemd-analyze a low exposure", () => {
  const findings = run("lintian", "--allow-root", "--fail-on", "error,warning", packageFileOf("amd64"));
  expect(findings).toMatchObject({ code: 0 });
  for (const unit of ["evald.service", "evald-worker.service"])
    expect(
      run("systemd-analyze", "security", "--offline=true", "--threshold=35", join(root, "release/debian", unit)).code,
    ).toBe(0);
});

test.skipIf(!isTried)(
  "the package is installed, upgraded while the service runs, removed and purged",
  async () => {
    expect(inSystem("dpkg", "--force-unsafe-io", "-i", packageFileOf("amd64"))).toMatchObject({ code: 0 });
    expect(installed()).toStartWith("install ok installed 1.");
    expect(statSync(pathOf("var/lib/evald")).mode & 0o777).toBe(0o700);
    expect(statSync(pathOf("etc/evald/evald.env")).mode & 0o777).toBe(0o600);
    expect(inSystem("dpkg", "--verify", "evald")).toMatchObject({ code: 0, output: "" });
    appendFileSync(pathOf("etc/evald/evald.env"), "# mine\n");

    const service = Bun.spawn(asUser("EVALD_PORT=0", "EVALD_WELCOME=0", "evald", "serve"), { stderr: "pipe" });
    for await (const bytes of service.stderr) if (Buffer.from(bytes).includes("listening on")) break;
    expect(run(...asUser("evald", "org", "create", "Acme"))).toMatchObject({ code: 0 });
    expect(run(...asUser("evald", "health"))).toMatchObject({ code: 0, stdout: "ready\n" });

    // The backup fails, so the old version stays.
    writeFileSync(pathOf("var/backups/evald"), "");
    expect(inSystem("dpkg", "-i", "later.deb").code).not.toBe(0);
    expect(installed()).toStartWith("install ok installed 1.");
    rmSync(pathOf("var/backups/evald"));

    expect(inSystem("dpkg", "--force-unsafe-io", "-i", "later.deb")).toMatchObject({ code: 0 });
    expect(installed()).toBe("install ok installed 99.0.0-1");
    expect(backups()).toEqual([expect.stringMatching(/^evald-1\.\S+\.backup$/)]);
    expect(readFileSync(pathOf("etc/evald/evald.env"), "utf8")).toEndWith("# mine\n");
    // The old process goes on; without systemd, nothing restarts it.
    expect(run(...asUser("evald", "health"))).toMatchObject({ code: 0 });
    service.kill();
    expect(await service.exited).toBe(0);
    const orgs = run(...asUser("evald", "org", "list", "--json")).stdout;
    expect(orgs).toContain("Acme");

    expect(inSystem("dpkg", "-r", "evald")).toMatchObject({ code: 0 });
    expect(existsSync(pathOf("usr/bin/evald"))).toBe(false);
    for (const path of ["var/lib/evald/evald.db", "etc/evald/evald.env"]) expect(existsSync(pathOf(path))).toBe(true);
    expect(inSystem("dpkg", "-P", "evald")).toMatchObject({ code: 0 });
    for (const path of ["var/lib/evald", "etc/evald"]) expect(existsSync(pathOf(path))).toBe(false);
    expect(backups()).toHaveLength(1);
  },
  300_000,
);
