import { chownSync, closeSync, realpathSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { isCompiled } from "../../build.ts";
import type { Workspace } from "../agent.ts";
import { type LimitHit, type SandboxLimits, watch, workspaceLimitOf } from "./bounds.ts";
import { type BridgePort, type BridgeRoute, bridgePorts, bridgeVariable } from "./bridge.ts";
import { asNobody, type Bind, bindsForNobody, fileSystem, nobody } from "./bubblewrap.ts";
import { createCgroup } from "./control-group.ts";
import { ownExecutable } from "./own-executable.ts";
import {
  describeSandboxProblem,
  findSandboxProblem,
  openFilesInSandbox,
  type SandboxProblem,
  type SandboxProblemCode,
} from "./problems.ts";
import { killTree, signalBelow } from "./process-tree.ts";
import { seccompFilter } from "./seccomp.ts";
import { closeStatusFile, openStatusFile } from "./status-file.ts";
import { commonVariables, generatedFiles, trustBinds } from "./surroundings.ts";
import { enterCommand, pathOf } from "./workspace.ts";

/** The available isolation. `none`: no shell, browser or files; `detail` says why and how to fix it. */
export type Sandbox =
  | { level: "bubblewrap"; detail: string }
  | { level: "none"; problem: SandboxProblemCode; detail: string };

/** How to run this executable inside a sandbox: the files to mount and the command. */
type Program = { binds: Bind[]; argv: string[] };

/** The network access of a sandbox: a proxy, and what programs need in order to use it. */
export type SandboxProxy = {
  path: string;
  token: string;
  /** ID of the tool call that the sandbox runs for. */
  user?: string | undefined;
  /** Files with the certificate authorities that programs trust, in place of the machine's: in PEM, and as a key store of Java. */
  certificates?: { pem: string; java: string };
  /** Host names that programs can look up; they are reached through the proxy only. */
  hosts?: string[];
  /** Ports on the sandbox's loopback that lead to a port of a host through the proxy. */
  routes?: BridgeRoute[];
};

/** What to run in a sandbox, and what it sees of the machine. */
export type SandboxRun = {
  argv: string[];
  /** The only writable folder, which is /workspace inside. Default: a folder in memory. */
  workspace?: Workspace;
  /**
   * Added to a few that programs need. HOME is /home/agent, in memory, unless set. Nothing is inherited from the
   * service.
   */
  env?: Record<string, string>;
  /** Further files and folders to show, read-only unless `writable`. */
  binds?: Bind[];
  /** Unix sockets of the service, reachable as 127.0.0.1:8801 and, for the proxy, 127.0.0.1:3128. */
  sockets?: { gateway?: string; egress?: SandboxProxy };
  limits?: Partial<SandboxLimits>;
  /** Called once when the workspace is nearly full. */
  onNear?: (limit: LimitHit) => void;
  /** Aborting it kills everything inside. */
  signal?: AbortSignal;
  /** Default: this executable. */
  program?: Program;
};

/**
 * How a sandbox ended. `hasRun`: whether the command ran to its end. If it did, the exit code is the command's own and not bubblewrap's.
 * `wasDiskFull`: whether the machine's disk had no room for the workspace.
 */
type SandboxEnd = { exitCode: number; limit: LimitHit | null; hasRun: boolean; wasDiskFull: boolean };

/** A process in a sandbox. */
export type SandboxProcess = {
  stdin: Subprocess<"pipe", "pipe", "pipe">["stdin"];
  stdout: ReadableStream<Uint8Array>;
  stderr: ReadableStream<Uint8Array>;
  pid: number;
  /** Sends a signal to the command. */
  signal(name: NodeJS.Signals): void;
  /** Kills everything inside immediately. */
  kill(): void;
  /** Resolves when the command has exited. Processes that it started may be gone only some milliseconds later. */
  exited: Promise<SandboxEnd>;
  /** Resolves when no process of it is left. */
  ended: Promise<SandboxEnd>;
  /** Mechanism that limits memory and processes. */
  boundBy: "a control group" | "rlimits";
};

const defaultLimits: SandboxLimits = {
  memoryBytes: 2 * 1024 ** 3,
  processes: 512,
  workspaceBytes: 1024 ** 3,
};

/** Detects the sandbox by running bubblewrap. */
export async function detectSandbox(): Promise<Sandbox> {
  if (process.platform !== "linux") return without({ code: "not_linux", line: "" });
  const bwrap = Bun.which("bwrap");
  if (!bwrap) return without(notInstalled);
  const probe = runSandboxed({ argv: ["true"] });
  const [{ exitCode }, output] = await Promise.all([probe.ended, new Response(probe.stderr).text()]);
  if (exitCode !== 0) return without(findSandboxProblem(output || `it exited with code ${exitCode}`));
  return { level: "bubblewrap", detail: `${bwrap}; memory and processes limited by ${probe.boundBy}` };
}

const notInstalled: SandboxProblem = { code: "not_installed", line: "" };
const without = (problem: SandboxProblem): Sandbox => ({
  level: "none",
  problem: problem.code,
  detail: describeSandboxProblem(problem),
});

/**
 * Starts a command in its own namespaces, as uid 1000 without capabilities. It sees /usr, a few files of /etc and one writable folder. The two
 * sockets are its only network access. Use such commands to read and write files in the workspace too, because its contents are untrusted. Chromium
 * needs --no-sandbox, because there are no user namespaces inside.
 */
export function runSandboxed(run: SandboxRun): SandboxProcess {
  const bwrap = Bun.which("bwrap");
  if (!bwrap) throw new Error(describeSandboxProblem(notInstalled));
  const asRoot = process.getuid?.() === 0;
  const limits = { ...defaultLimits, ...run.limits };
  const ports = portsOf(run.sockets);
  const program = ports.length > 0 ? (run.program ?? ownProgram()) : null;
  const binds = bindsOf(run, program);
  const { workspace } = run;
  const isMounted = workspace !== undefined && workspace.holder !== null;
  // Sockets are read-only inside: a program that could change their mode could lock out other runs.
  const usedPaths = [...socketsOf(run.sockets).map(({ source }) => source), ...(workspace ? [pathOf(workspace)] : [])];
  if (asRoot) for (const path of usedPaths) chownSync(path, nobody, nobody);
  // The kernel counts files in memory as memory of the processes that wrote them.
  const cgroup = createCgroup(limits, isMounted ? limits.workspaceBytes : 0);
  const status = openStatusFile();
  const { inherited, options } = toOptions(run, { asRoot, binds, ports, program, status, limits });
  const optionsDescriptor = inherit(inherited, options.map((option) => `${option}\0`).join(""));
  const bridge = program ? [...program.argv, "__bridge", "--"] : [];
  const child = spawnWith(inherited, [
    // The shell joins the control groups and makes itself the first process to be killed when memory is short.
    ...["/bin/sh", "-c", joinGroups, "sh", ...(cgroup?.procsFiles ?? []), "--"],
    ...(workspace ? enterCommand(workspace) : []),
    ...(asRoot ? asNobody(bwrap, binds) : []),
    ...[bwrap, "--args", optionsDescriptor, "--", ...rlimits(limits, isMounted), ...bridge, ...run.argv],
  ]);

  let hit: LimitHit | null = null;
  const kill = () => {
    if (child.exitCode === null && child.signalCode === null) killTree(child.pid);
    cgroup?.kill();
  };
  const onHit = (reached: LimitHit) => {
    hit = reached;
    kill();
  };
  const groupMemory = cgroup?.memory ?? null;
  const stopWatching = watch(child.pid, { workspace, limits, groupMemory }, { onHit, onNear: run.onNear });
  run.signal?.addEventListener("abort", kill);
  if (run.signal?.aborted) kill();
  const exited = child.exited.then(async (exitCode) => {
    run.signal?.removeEventListener("abort", kill);
    const { isFull, wasDiskFull } = await stopWatching();
    const limit = hit ?? cgroup?.hit() ?? (isFull ? workspaceLimitOf(limits) : null);
    return { exitCode, limit, hasRun: closeStatusFile(status), wasDiskFull };
  });
  const ended = exited.then(async (end) => {
    await cgroup?.remove();
    return end;
  });
  return {
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    pid: child.pid,
    // This many processes of bubblewrap are above the command.
    signal: (name) => signalBelow(child.pid, asRoot ? 4 : 2, name),
    kill,
    exited,
    ended,
    boundBy: cgroup ? "a control group" : "rlimits",
  };
}

type OptionContext = {
  asRoot: boolean;
  binds: Bind[];
  ports: BridgePort[];
  program: Program | null;
  status: number;
  limits: SandboxLimits;
};

/**
 * The options of bubblewrap, and the files that it gets open for them. The options are passed through pipes, because every user on the machine can
 * read command lines.
 */
function toOptions(
  { env, sockets }: SandboxRun,
  { asRoot, binds, ports, program, status, limits }: OptionContext,
): { inherited: Inherited[]; options: string[] } {
  const inherited: Inherited[] = [];
  const { hosts, certificates } = sockets?.egress ?? {};
  const filter = seccompFilter();
  const variables = {
    ...commonVariables(certificates !== undefined),
    ...env,
    ...(program && { [bridgeVariable]: inherit(inherited, JSON.stringify(ports)) }),
  };
  const options = [
    ...fileSystem(asRoot ? bindsForNobody(binds) : binds, limits.memoryBytes),
    ...(filter ? ["--seccomp", inherit(inherited, filter)] : []),
    ...["--json-status-fd", inherit(inherited, status)],
    ...Object.entries(generatedFiles(hosts)).flatMap(([path, text]) => [
      "--ro-bind-data",
      inherit(inherited, text),
      path,
    ]),
    ...Object.entries(variables).flatMap(([name, value]) => ["--setenv", name, value]),
    ...["--remount-ro", "/", "--chdir", program ? "/run/evald" : "/workspace"],
  ];
  return { inherited, options };
}

/** Adds a file to those that a process gets open. Returns the number of its descriptor in that process. */
const inherit = (inherited: Inherited[], source: Inherited): string =>
  String(inherited.push(source) - 1 + firstDescriptor);

/** What a sandbox shows of the machine besides the system. */
function bindsOf({ binds = [], sockets, workspace }: SandboxRun, program: Program | null): Bind[] {
  const workspacePath = workspace && (workspace.holder === null ? realpathSync(workspace.path) : workspace.path);
  return [
    ...(program?.binds ?? []),
    ...binds,
    ...socketsOf(sockets).map(({ source, to }) => ({ from: source, to })),
    ...trustBinds(sockets?.egress?.certificates),
    ...(workspacePath === undefined ? [] : [{ from: workspacePath, to: "/workspace", writable: true }]),
  ];
}

/** Joins the control groups of its first arguments, and becomes the command after `--`. */
const joinGroups =
  'while [ "$1" != -- ]; do echo $$ >"$1" || exit 126; shift; done; shift; echo 1000 >/proc/self/oom_score_adj; exec "$@"';

/** A file that a process gets open: a pipe with this content, or this file descriptor of the current process. */
type Inherited = string | Uint8Array | number;
/** After stdin, stdout and stderr. */
const firstDescriptor = 3;

/** Starts a command with open files, whose descriptors start at `firstDescriptor`. If that fails, closes the descriptors of this process. */
function spawnWith(inherited: Inherited[], command: string[]) {
  const child = Bun.spawn(command, {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
    cwd: "/",
    stdio: [
      ...(["pipe", "pipe", "pipe"] as const),
      ...inherited.map((source) => (typeof source === "number" ? source : ("pipe" as const))),
    ],
  });
  const pipes = inherited.flatMap((content, i) =>
    typeof content === "number" ? [] : [{ descriptor: child.stdio[firstDescriptor + i] as number, content }],
  );
  try {
    for (const { descriptor, content } of pipes) writeAll(descriptor, content);
  } catch (error) {
    child.kill("SIGKILL");
    for (const source of inherited) if (typeof source === "number") closeSync(source);
    throw error;
  } finally {
    // The options are applied only now.
    for (const { descriptor } of pipes) closeSync(descriptor);
  }
  return child;
}

/** The limits of a process. A mounted workspace needs no limit for single files. */
const rlimits = ({ processes, workspaceBytes }: SandboxLimits, isMounted: boolean) => [
  ...["prlimit", `--nproc=${processes}`, `--fsize=${isMounted ? "unlimited" : workspaceBytes}`],
  ...[`--nofile=${openFilesInSandbox}`, "--core=0", "--"],
];

const socketPaths = { gateway: "/run/evald/gateway.sock", egress: "/run/evald/egress.sock" };

function socketsOf({ gateway, egress }: NonNullable<SandboxRun["sockets"]> = {}) {
  return [
    ...(gateway === undefined ? [] : [{ source: gateway, to: socketPaths.gateway }]),
    ...(egress === undefined ? [] : [{ source: egress.path, to: socketPaths.egress }]),
  ];
}

function portsOf({ gateway, egress }: NonNullable<SandboxRun["sockets"]> = {}): BridgePort[] {
  const ports = gateway === undefined ? [] : [{ port: bridgePorts.gateway, socket: socketPaths.gateway }];
  if (egress === undefined) return ports;
  const proxy = { socket: socketPaths.egress, proxyToken: egress.token, proxyUser: egress.user };
  const routes = (egress.routes ?? []).filter(isUsablePort);
  return [...ports, { port: bridgePorts.egress, ...proxy }, ...routes.map((route) => ({ ...route, ...proxy }))];
}

/** Whether programs inside can use a port. They can't listen on a port below 1024, and the bridge has ports of its own. */
const isUsablePort = ({ port }: { port: number }) => port >= 1024 && !Object.values(bridgePorts).includes(port);

/** This executable: one file if it is compiled; from source, Bun and the sources. */
export function ownProgram(): Program {
  if (isCompiled) return compiledProgram(ownExecutable());
  const root = join(import.meta.dir, "..", "..", "..");
  const sources = ["src", "node_modules", "package.json", "tsconfig.json", "drizzle"].map((name) => ({
    from: realpathSync(join(root, name)),
    to: `/run/evald/${name}`,
  }));
  return {
    binds: [{ from: ownExecutable(), to: "/run/evald/bun" }, ...sources],
    argv: ["/run/evald/bun", "/run/evald/src/main.ts"],
  };
}

/** The executable at a path, as it is called inside. */
export const compiledProgram = (path: string): Program => ({
  binds: [{ from: realpathSync(path), to: "/run/evald/evald" }],
  argv: ["/run/evald/evald"],
});

/**
 * Writes everything to a pipe. Throws if it doesn't fit. If the sandbox ended before it read the pipe, it doesn't throw, because the sandbox reports
 * the reason itself.
 */
function writeAll(pipe: number, content: string | Uint8Array): void {
  let left: Uint8Array = Buffer.from(content);
  try {
    while (left.length > 0) left = left.subarray(writeSync(pipe, left));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
  }
}
