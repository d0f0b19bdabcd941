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
import { until } from "../support/until.ts";

// `bun run try:packages`: installs a Debian system with mmdebstrap, which takes minutes, and starts systemd in it. It needs root, mmdebstrap
// and lintian.
const isTried = process.env.PACKAGES === "all";
const root = join(import.meta.dir, "..", "..");
const folder = mkdtempSync(join(tmpdir(), "evald-debian-test-"));
const system = join(folder, "system");
const seconds = 1_790_000_000;
const env = { PATH: process.env.PATH ?? "", DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" };

function run(...command: string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { env, cwd: folder });
  return { code: exitCode, stdout: stdout.toString(), output: `${stdout}${stderr}` };
}

function mustRun(...command: string[]): string {
  const { code, stdout, output } = run(...command);
  if (code !== 0) throw new Error(`${command.join(" ")} failed:\n${output}`);
  return stdout;
}

let booted: Bun.Subprocess | undefined;

/** The process of systemd in the system: the only child of `unshare`. */
const findInit = () => readFileSync(`/proc/${booted?.pid}/task/${booted?.pid}/children`, "utf8").trim();

/** Runs a command in the system, beside its systemd. */
function inSystem(...command: string[]) {
  const namespaces = ["--pid", "--mount", "--uts", "--ipc", "--cgroup"];
  const clean = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"];
  return run("nsenter", "--target", findInit(), ...namespaces, "--", ...clean, ...command);
}

const dpkg = (...args: string[]) => inSystem("dpkg", "--force-unsafe-io", ...args);
const evald = (...args: string[]) =>
  inSystem(
    ...["setpriv", "--reuid", "evald", "--regid", "evald", "--clear-groups"],
    ...["/usr/bin/evald", "--data", "/var/lib/evald", ...args],
  );
const installed = () => inSystem("dpkg-query", "--show", "--showformat", "$" + "{Version}", "evald").stdout;
const processOf = (unit: string) => inSystem("systemctl", "show", "--property=MainPID", unit).stdout;
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
  const packages = "adduser,bubblewrap,curl,git,systemd,systemd-sysv";
  mustRun("mmdebstrap", "--mode=root", "--variant=essential", `--include=${packages}`, "bookworm", system);
  for (const name of [packageFileOf("amd64"), "later.deb"]) mustRun("cp", name, join(system, name));
  booted = Bun.spawn([join(root, "test/support/boot-system.sh"), system], { stdio: ["ignore", "ignore", "ignore"] });
  await until("systemd is running", () => {
    const { stdout } = inSystem("systemctl", "is-system-running");
    return /^(running|degraded)/.test(stdout);
  });
}, 1_200_000);

afterAll(async () => {
  booted?.kill("SIGKILL");
  await booted?.exited;
  // What systemd leaves: a control group keeps its folders, and can be removed once its last process is gone.
  const groups = ["/sys/fs/cgroup", "/sys/fs/cgroup/systemd"].map((parent) => `${parent}/evald-test-${booted?.pid}`);
  for (const group of groups.filter((path) => existsSync(path)))
    await until("the control group is empty", () => run("find", group, "-depth", "-type", "d", "-delete").code === 0);
  rmSync(folder, { recursive: true, force: true });
});

test.skipIf(!isTried)(
  "lintian finds no error, and systemd-analyze a low exposure",
  () => {
    const findings = run("lintian", "--allow-root", "--fail-on", "error,warning", packageFileOf("amd64"));
    expect(findings).toMatchObject({ code: 0 });
    const rate = ["systemd-analyze", "security", "--offline=true", "--threshold=35"];
    for (const unit of ["evald.service", "evald-worker.service"])
      expect(run(...rate, join(root, "release/debian", unit)).code).toBe(0);
  },
  120_000,
);

test.skipIf(!isTried)(
  "the package starts the service, upgrades it after a backup, and is removed and purged",
  () => {
    expect(dpkg("-i", `/${packageFileOf("amd64")}`)).toMatchObject({ code: 0 });
    expect(installed()).toStartWith("1.");
    expect(statSync(pathOf("var/lib/evald")).mode & 0o777).toBe(0o700);
    expect(statSync(pathOf("etc/evald/evald.env")).mode & 0o777).toBe(0o600);
    expect(inSystem("dpkg", "--verify", "evald")).toMatchObject({ code: 0, output: "" });
    // systemd waited for it.
    expect(evald("health")).toMatchObject({ code: 0, stdout: "ready\n" });
    expect(inSystem("systemctl", "is-active", "evald-worker").stdout).toBe("inactive\n");
    expect(evald("org", "create", "Acme")).toMatchObject({ code: 0 });
    appendFileSync(pathOf("etc/evald/evald.env"), "# mine\n");
    const firstProcess = processOf("evald");

    // The backup fails, so the old version stays.
    writeFileSync(pathOf("var/backups/evald"), "");
    expect(dpkg("-i", "/later.deb").code).not.toBe(0);
    expect(installed()).toStartWith("1.");
    expect(processOf("evald")).toBe(firstProcess);
    rmSync(pathOf("var/backups/evald"));

    expect(dpkg("-i", "/later.deb")).toMatchObject({ code: 0 });
    expect(installed()).toBe("99.0.0-1");
    expect(backups()).toEqual([expect.stringMatching(/^evald-1\.\S+\.backup$/)]);
    expect(readFileSync(pathOf("etc/evald/evald.env"), "utf8")).toEndWith("# mine\n");
    expect(processOf("evald")).not.toBe(firstProcess);
    expect(evald("health")).toMatchObject({ code: 0, stdout: "ready\n" });
    expect(evald("org", "list", "--json").stdout).toContain("Acme");

    expect(dpkg("-r", "evald")).toMatchObject({ code: 0 });
    expect(inSystem("systemctl", "is-active", "evald").stdout).toBe("inactive\n");
    for (const path of ["var/lib/evald/evald.db", "etc/evald/evald.env"]) expect(existsSync(pathOf(path))).toBe(true);
    expect(dpkg("-P", "evald")).toMatchObject({ code: 0 });
    for (const path of ["var/lib/evald", "etc/evald"]) expect(existsSync(pathOf(path))).toBe(false);
    expect(backups()).toHaveLength(1);
  },
  300_000,
);

test.skipIf(!isTried)(
  "the options of both units leave agents their sandbox",
  () => {
    expect(dpkg("-i", `/${packageFileOf("amd64")}`)).toMatchObject({ code: 0 });
    for (const unit of ["evald", "evald-worker"]) {
      const text = readFileSync(join(root, "release/debian", `${unit}.service`), "utf8")
        .replace(/^(Type|Restart|Environment|EnvironmentFile|ConditionPathExists).*\n/gm, "")
        .replace(
          /^ExecStart=.*$/m,
          "Type=oneshot\nEnvironment=EVALD_PORT=3999\nExecStart=/usr/bin/evald --data /tmp/data doctor --json",
        );
      writeFileSync(pathOf(`etc/systemd/system/doctor-${unit}.service`), text);
      inSystem("systemctl", "daemon-reload");
      expect(inSystem("systemctl", "start", `doctor-${unit}`)).toMatchObject({ code: 0 });
      const log = inSystem("journalctl", "--unit", `doctor-${unit}`, "--output=cat", "--no-pager").stdout;
      const checks = JSON.parse(log.split("\n").find((line) => line.startsWith("[")) ?? "[]");
      for (const check of ["sandbox", "page_sandbox", "workspace"])
        expect(checks).toContainEqual(expect.objectContaining({ check, state: "ok" }));
    }
  },
  120_000,
);
