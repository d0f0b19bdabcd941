import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeSandboxProblem, findSandboxProblem } from "../../src/agents/sandbox/problems.ts";
import { buildExecutable, executable, serve } from "../support/executable.ts";

beforeAll(buildExecutable, 300_000);

const folder = mkdtempSync(join(tmpdir(), "evald-problems-"));
chmodSync(folder, 0o777);
afterAll(() => rmSync(folder, { recursive: true }));

const user = "setpriv --reuid 65534 --regid 65534 --clear-groups";

/** A filter of system calls that refuses `sethostname`, as containers have one. */
function writeFilter(): string {
  const [sethostname, refused, allowed] = [process.arch === "x64" ? 170 : 161, 0x00050001, 0x7fff0000];
  const instructions = [
    [0x20, 0, 0, 0],
    [0x15, 0, 1, sethostname],
    [0x06, 0, 0, refused],
    [0x06, 0, 0, allowed],
  ];
  const program = Buffer.alloc(8 * instructions.length);
  for (const [i, [code = 0, ifTrue = 0, ifFalse = 0, value = 0]] of instructions.entries()) {
    program.writeUInt16LE(code, 8 * i);
    program.writeUInt8(ifTrue, 8 * i + 2);
    program.writeUInt8(ifFalse, 8 * i + 3);
    program.writeUInt32LE(value, 8 * i + 4);
  }
  const file = join(folder, "filter");
  writeFileSync(file, program);
  return file;
}

/** A root directory for chroot that isn't a mount point. */
function toChroot(command: string): string {
  const root = join(folder, "root");
  const names = ["usr", "bin", "lib", "lib64", "etc", "dev", "proc", "tmp"];
  for (const name of [...names, "evald"]) mkdirSync(join(root, name), { recursive: true });
  const mounts = names.map((name) => `mount --rbind /${name} ${root}/${name}`);
  return [...mounts, `mount --bind ${join(executable, "..")} ${root}/evald`, `exec chroot ${root} ${command}`].join(
    " && ",
  );
}

/** The line of `evald doctor` about the sandbox, from a command that leads to it. */
function diagnose(...command: string[]): { state: string; detail: string } {
  const { stdout, stderr } = Bun.spawnSync(command, { cwd: folder });
  try {
    return JSON.parse(stdout.toString()).find(({ check }: { check: string }) => check === "sandbox");
  } catch {
    throw new Error(`${command.join(" ")} failed:\n${stdout}${stderr}`);
  }
}

const doctor = `${executable} --data ${folder}/data doctor --json`;

test.each([
  ["a limit for open files", "LimitNOFILE=", () => ["prlimit", "--nofile=1024:1024", ...doctor.split(" ")]],
  [
    "no further namespaces",
    "max_user_namespaces",
    () => `bwrap --unshare-user --uid 1000 --disable-userns --dev-bind / / ${doctor}`.split(" "),
  ],
  [
    "root without other users",
    "an ordinary user",
    () => `bwrap --unshare-user --uid 0 --dev-bind / / ${doctor}`.split(" "),
  ],
  [
    "a hidden part of /proc",
    "systempaths=unconfined",
    () => ["unshare", "--mount", "sh", "-c", `mount --bind /dev/null /proc/version && exec ${user} ${doctor}`],
  ],
  [
    "a seccomp filter",
    "seccomp=seccomp.json",
    () => ["sh", "-c", `exec bwrap --dev-bind / / --seccomp 9 ${user} ${doctor} 9<${writeFilter()}`],
  ],
  [
    "a chroot, as an ordinary user",
    "chroot",
    () => ["unshare", "--mount", "sh", "-c", toChroot(`${user} /evald/evald --data /tmp/none doctor --json`)],
  ],
  [
    "a chroot, as root",
    "chroot",
    () => ["unshare", "--mount", "sh", "-c", toChroot("/evald/evald --data /tmp/none doctor --json")],
  ],
])("the doctor names the option for %s", (_, option, command) => {
  const { state, detail } = diagnose(...command());
  expect({ state, detail }).toEqual({ state: "warning", detail: expect.stringContaining(option) });
});

test("a service without a sandbox says so once in its log, with the cause", async () => {
  const service = await serve({ cwd: folder, env: { PATH: "/nonexistent" } });
  const [line] = await service.said(/^.*no sandbox.*$/m);
  expect(JSON.parse(line)).toMatchObject({ level: 40, problem: "not_installed" });
  await service.stop();
});

const container = {
  platform: "linux",
  isFiltered: true,
  profile: "",
  isChroot: false,
  isUsernsDisabled: false,
} as const;
test.each([
  // What bubblewrap 0.8 prints in Docker with AppArmor, and on Ubuntu 24.04.
  ["bwrap: Failed to make / slave: Permission denied", { profile: "docker-default (enforce)" }, "apparmor_container"],
  ["bwrap: setting up uid map: Permission denied", { isFiltered: false, needsProfile: true }, "apparmor_userns"],
  ["bwrap: No permissions to create new namespace", {}, "seccomp"],
  ["bwrap: Can't mount proc on /newroot/proc: Operation not permitted", {}, "masked_proc"],
  ["bwrap: Unknown option --disable-userns", {}, "too_old"],
  ["bwrap: Can't find source path /usr", {}, "unknown"],
] as const)("%s", (output, machine, code) => {
  const problem = findSandboxProblem(output, { ...container, needsProfile: false, ...machine });
  expect(problem).toEqual({ code, line: output });
  expect(describeSandboxProblem(problem)).toContain(output);
});
