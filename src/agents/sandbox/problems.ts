import { existsSync } from "node:fs";
import { readText } from "./kernel-files.ts";

/** Why a machine has no sandbox. */
const sandboxProblemCodes = [
  "not_linux",
  "not_installed",
  "too_old",
  "open_files",
  "chroot",
  "apparmor_userns",
  "apparmor_container",
  "userns_disabled",
  "only_root",
  "seccomp",
  "masked_proc",
  "unknown",
] as const;
export type SandboxProblemCode = (typeof sandboxProblemCodes)[number];

/** `line`: the first line that bubblewrap, or a program that it starts, printed; empty: it printed nothing. */
export type SandboxProblem = { code: SandboxProblemCode; line: string };

/** The number of open files that each sandbox allows. The service needs this limit, too. */
export const openFilesInSandbox = 8192;

/** Facts about this process from its kernel and its container. */
type Machine = {
  platform: NodeJS.Platform;
  /** Whether system calls are filtered (seccomp). */
  isFiltered: boolean;
  /** The AppArmor profile; empty: none. */
  profile: string;
  /** Whether the root directory was set by `chroot`. */
  isChroot: boolean;
  /** Whether AppArmor allows user namespaces only to programs with a profile that allows them, as on Ubuntu. */
  needsProfile: boolean;
  /** Whether user namespaces are turned off for ordinary users. */
  isUsernsDisabled: boolean;
};

/** Reads these facts from /proc, which only Linux has. */
function readMachine(): Machine {
  const mountPoints = readText("/proc/self/mountinfo")
    .split("\n")
    .map((line) => line.split(" ")[4]);
  return {
    platform: process.platform,
    isFiltered: /^Seccomp:\s*2$/m.test(readText("/proc/self/status")),
    profile: readText("/proc/self/attr/current")
      .trim()
      .replace(/^unconfined$/, ""),
    isChroot: mountPoints.length > 1 && !mountPoints.includes("/"),
    needsProfile: readText("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").trim() === "1",
    isUsernsDisabled: ["kernel/unprivileged_userns_clone", "user/max_user_namespaces"].some(
      (name) => readText(`/proc/sys/${name}`).trim() === "0",
    ),
  };
}

/** Finds the cause of a sandbox that did not start, by what was printed and by the machine. */
export function findSandboxProblem(output: string, machine = readMachine()): SandboxProblem {
  const [line = ""] = output.trim().split("\n");
  return { code: codeOf(output, machine), line };
}

function codeOf(output: string, machine: Machine): SandboxProblemCode {
  if (/unknown option/i.test(output)) return "too_old";
  if (/NOFILE/.test(output)) return "open_files";
  if (/^setpriv:/m.test(output)) return "only_root";
  if (/max_\S*_namespaces/.test(output)) return "userns_disabled";
  if (/mount proc/i.test(output)) return "masked_proc";
  if (/set hostname/i.test(output)) return "seccomp";
  if (!/namespace|uid map|gid map|mount|slave|pivot|not permitted|denied/i.test(output)) return "unknown";
  if (machine.isChroot) return "chroot";
  if (machine.isUsernsDisabled) return "userns_disabled";
  // A system call filter causes "not permitted", and AppArmor causes "denied".
  if (machine.profile !== "" && /denied/i.test(output)) return "apparmor_container";
  if (machine.isFiltered) return "seccomp";
  if (machine.needsProfile) return "apparmor_userns";
  return "unknown";
}

const packageCommands = {
  "/usr/bin/apt-get": "apt-get install",
  "/sbin/apk": "apk add",
  "/usr/bin/dnf": "dnf install",
  "/usr/bin/pacman": "pacman -S",
  "/usr/bin/zypper": "zypper install",
};

/** What to do about a missing program. If this machine has one of the package managers above, it includes the command. */
export function toInstall(name: string): string {
  const [, command] = Object.entries(packageCommands).find(([path]) => existsSync(path)) ?? [];
  return command === undefined ? `install ${name}` : `install ${name} (${command} ${name})`;
}

/** What is wrong, and what to do about it. */
export function describeSandboxProblem({ code, line }: SandboxProblem): string {
  const said = line === "" ? "" : ` (${line})`;
  switch (code) {
    case "not_linux":
      return "sandboxes need Linux; here, only agents without commands run. Run a worker on Linux for the others";
    case "not_installed":
      return `bubblewrap is not installed; ${toInstall("bubblewrap")}`;
    case "too_old":
      return `bubblewrap is too old; version 0.8.0 or newer is required${said}`;
    case "open_files":
      return `the limit for open files is below ${openFilesInSandbox}${said}; raise it with --ulimit nofile=65536 for a container, LimitNOFILE=65536 in a systemd unit, or ulimit -n 65536 in a shell`;
    case "chroot":
      return `the kernel allows no namespaces within a chroot${said}; start evald in a container, or outside of the chroot`;
    case "userns_disabled":
      return `this machine allows no user namespaces${said}; allow them with: sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000`;
    case "only_root":
      return `this root user has no others to run sandboxes as${said}; run evald as an ordinary user`;
    case "apparmor_userns":
      return `AppArmor allows user namespaces only to programs with a profile${said}; add a profile for bwrap with "userns,", or set: sysctl kernel.apparmor_restrict_unprivileged_userns=0`;
    case "apparmor_container":
      return `the AppArmor profile of this container or service forbids mounts${said}; start a container with --security-opt apparmor=unconfined`;
    case "seccomp":
      return `a seccomp filter forbids namespaces${said}; start a container with --security-opt seccomp=seccomp.json, the file of evald, or remove RestrictNamespaces=, ProtectHostname= and SystemCallFilter= without @mount from the systemd unit`;
    case "masked_proc":
      return `parts of /proc are hidden, so that no other can be mounted${said}; start a container with --security-opt systempaths=unconfined (Docker) or --security-opt unmask=ALL (Podman), or remove ProtectKernelTunables=, ProtectKernelLogs=, ProtectProc= and ProcSubset= from the systemd unit`;
    case "unknown":
      return line === "" ? "bubblewrap does not work here" : `bubblewrap does not work here: ${line}`;
  }
}
