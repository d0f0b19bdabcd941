import { closeSync, existsSync, openSync, readlinkSync, readSync } from "node:fs";
import { join } from "node:path";
import { isCompiled } from "../build.ts";
import { settlesWithin } from "../deadline.ts";
import { yieldToEventLoop } from "../event-loop.ts";
import { tailOf } from "./lines.ts";
import { lowerPriority } from "./priority.ts";
import type { AgentCommand } from "./sandbox/agent-command.ts";
import { namesIn, readText } from "./sandbox/kernel-files.ts";
import { childrenOf } from "./sandbox/process-tree.ts";
import { closeStatusFile } from "./sandbox/status-file.ts";

const stderrChars = 4096;
/** Time that a process has to exit before SIGKILL, after SIGTERM or after its last line. */
const graceMs = 3_000;
/** Environment variable inherited by all child processes, by which they are found. */
const markVariable = "AGENT_PROCESS";

/** A running process of an agent. */
export type AgentProcess = {
  stdout: ReadableStream<Uint8Array>;
  /** Does not throw. */
  write(text: string): Promise<void>;
  /** The last part of its stderr. */
  stderrTail(): string;
  /** Whether its program ran. False only if it has ended and its sandbox is known not to have started. */
  hasRun(): boolean;
  /** Resident memory in bytes; null if unknown. */
  memory(): number | null;
  /** CPU time of the process itself, in ms; null if unknown. */
  cpuMs(): number | null;
  isRunning(): boolean;
  /** Lowers its priority below the priority of the service and of sessions that start. */
  lowerPriority(): void;
  /** Kills the process and its group. */
  kill(): void;
  /**
   * Waits for the process to exit, with `ask` after a SIGTERM. After a grace period, kills it and everything that it started. Resolves to how it
   * exited; null if it was killed.
   */
  end(method: "wait" | "ask"): Promise<string | null>;
};

/** The command that runs an internal command of this executable, even after its file was replaced by a newer version. */
export function ownCommand(name: "__agent" | "__backup"): string[] {
  const program = existsSync("/proc/self/exe") ? "/proc/self/exe" : process.execPath;
  return [program, ...(isCompiled ? [] : [join(import.meta.dir, "..", "main.ts")]), name];
}

/** Starts a process in its own group that dies with this one. Throws if it cannot start. */
export function startProcess(
  command: string[],
  env: Record<string, string>,
  { group, status }: Omit<AgentCommand, "argv"> = { group: null, status: null },
): AgentProcess {
  const id = crypto.randomUUID();
  const child = Bun.spawn(command, {
    cwd: "/",
    // Makes Bun exit with its parent; on Linux the kernel enforces it, even for a busy process.
    env: { ...env, BUN_FEATURE_FLAG_NO_ORPHANS: "1", [markVariable]: id },
    detached: true,
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const startedAt = startOf(child.pid) ?? 0;
  const stderr = tailOf(child.stderr, stderrChars);
  const signalGroup = (signal: "SIGTERM" | "SIGKILL") => {
    try {
      // Windows has no groups of processes.
      process.kill(process.platform === "win32" ? child.pid : -child.pid, signal);
    } catch {
      // Already exited.
    }
  };
  let hasRun = true;
  async function endOnce(method: "wait" | "ask"): Promise<string | null> {
    if (method === "ask") signalGroup("SIGTERM");
    const isInTime = await settlesWithin(child.exited, graceMs);
    signalGroup("SIGKILL");
    // Nothing that the process started can leave its control group. Without a group, all processes of the machine are searched.
    if (group) await group.remove();
    else await killMarked(`${markVariable}=${id}`, startedAt);
    await child.exited;
    await settlesWithin(stderr.ended, graceMs);
    if (status !== null) hasRun = closeStatusFile(status);
    if (!isInTime) return null;
    return child.signalCode ? `was killed by ${child.signalCode}` : `exited with code ${child.exitCode}`;
  }
  let innermostPid: number | null = null;
  /** The process ID of the program inside its sandbox. It is remembered once the program has started. */
  function programPid(): number {
    if (innermostPid !== null) return innermostPid;
    const pid = listSandboxChain(child.pid).at(-1) ?? child.pid;
    if (!isSandbox(pid)) innermostPid = pid;
    return pid;
  }
  let ending: Promise<string | null> | undefined;
  const end = (method: "wait" | "ask") => (ending ??= endOnce(method));
  // A surviving child may keep stdout open forever.
  child.exited.then(() => end("wait"));

  return {
    stdout: child.stdout,
    async write(text) {
      try {
        await child.stdin.write(text);
        await child.stdin.flush();
      } catch {
        // If the process exits before reading, its exit code says why.
      }
    },
    stderrTail: stderr.text,
    hasRun: () => hasRun,
    memory: () => memoryOf(programPid()),
    cpuMs: () => cpuMsOf(programPid()),
    isRunning: () => child.exitCode === null && child.signalCode === null,
    lowerPriority() {
      if (!group?.lowerPriority()) listSandboxChain(child.pid).forEach(lowerPriority);
    },
    kill: () => signalGroup("SIGKILL"),
    end,
  };
}

/** Whether a process is part of a sandbox, or has not started its program yet. */
const isSandbox = (pid: number): boolean => /^\d+ \((sh|bwrap|setpriv)\) /.test(readText(`/proc/${pid}/stat`));

/** A process and the processes below it that its sandbox consists of, down to the program of the sandbox. */
function listSandboxChain(pid: number): number[] {
  const [child] = isSandbox(pid) ? childrenOf(pid) : [];
  return child === undefined ? [pid] : [pid, ...listSandboxChain(child)];
}

function memoryOf(pid: number): number | null {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readText(`/proc/${pid}/status`))?.[1];
  return kib === undefined ? null : Number(kib) * 1024;
}

/** Positions of times among the fields below. */
const fieldPositions = { userTime: 11, systemTime: 12, startTime: 19 };
/** The unit of these times. */
const msPerTick = 10;

/** The fields of `/proc/PID/stat` after the name of the program, which may contain anything; null if the process has exited. */
function statusFieldsOf(pid: number): number[] | null {
  const fields = readText(`/proc/${pid}/stat`).replace(/^.*\) /s, "");
  return fields === "" ? null : fields.split(" ").map(Number);
}

function cpuMsOf(pid: number): number | null {
  const fields = statusFieldsOf(pid);
  return fields && (fields[fieldPositions.userTime]! + fields[fieldPositions.systemTime]!) * msPerTick;
}

const maxScans = 10;
const processesAtOnce = 25;
/** The marks of processes to kill. For each mark, the time when its first process started. */
const marksToKill = new Map<string, number>();
/** The next scan, until it starts. It serves all waiting callers, since many runs may end at once. */
let nextScan: Promise<Set<string>> | null = null;
let lastScan: Promise<unknown> = Promise.resolve();
/** Processes without an environment at the last scan. */
let pidsWithoutEnvironment = new Set<number>();
/** How long a process takes to start executing another program. */
const execMs = 2;

/** Kills every process with the mark in its environment, including processes that left the group. Scans again until none is left. */
async function killMarked(mark: string, startedAt: number): Promise<void> {
  marksToKill.set(mark, startedAt);
  try {
    for (let scans = 0; scans < maxScans; scans++) {
      nextScan ??= lastScan.then(yieldToEventLoop, yieldToEventLoop).then(scanAndKill);
      lastScan = nextScan;
      if (!(await nextScan).has(mark)) return;
    }
  } finally {
    marksToKill.delete(mark);
  }
}

/** Scans all processes once; returns the marks found. */
async function scanAndKill(): Promise<Set<string>> {
  nextScan = null;
  const foundMarks = new Set<string>();
  const currentPidsWithoutEnvironment = new Set<number>();
  const firstStart = Math.min(...marksToKill.values());
  for (const [index, pid] of listProcesses().entries()) {
    // A scan takes microseconds per process. That is too little to yield each time, but a machine may have thousands of processes.
    if ((index + 1) % processesAtOnce === 0) await yieldToEventLoop();
    // Older processes belong to no agent, but may be a service with its keys.
    if ((startOf(pid) ?? 0) < firstStart) continue;
    const { isEmpty, mark } = searchEnvironment(pid);
    if (isEmpty && isProgram(pid)) currentPidsWithoutEnvironment.add(pid);
    if (mark === null) continue;
    foundMarks.add(mark);
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // Already exited.
    }
  }
  // A process that is executing another program has no environment for a moment. It may be one of the processes to kill.
  if ([...currentPidsWithoutEnvironment].some((pid) => !pidsWithoutEnvironment.has(pid))) {
    for (const mark of marksToKill.keys()) foundMarks.add(mark);
    await Bun.sleep(execMs);
  }
  pidsWithoutEnvironment = currentPidsWithoutEnvironment;
  return foundMarks;
}

/** Neither a kernel thread nor a process that has exited. */
function isProgram(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`) !== "";
  } catch {
    return false;
  }
}

const listProcesses = (): number[] =>
  namesIn("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/** When a process started, in ticks since the machine did; null if it has exited. */
const startOf = (pid: number): number | null => statusFieldsOf(pid)?.[fieldPositions.startTime] ?? null;

/**
 * A buffer for the environment of one process at a time. It is cleared at once, because the environment of another process of this user may contain
 * secrets.
 */
let environment = Buffer.alloc(64 * 1024);
const maxEnvironmentBytes = 8 * 1024 * 1024;

/**
 * Searches the environment of a process for a mark. `isEmpty`: the process has no environment. False if the process has exited, or belongs to another
 * user.
 */
function searchEnvironment(pid: number): { isEmpty: boolean; mark: string | null } {
  let descriptor: number | null = null;
  let length = 0;
  try {
    descriptor = openSync(`/proc/${pid}/environ`, "r");
    while (length < maxEnvironmentBytes) {
      if (length === environment.length) {
        const larger = Buffer.alloc(2 * length);
        environment.copy(larger);
        environment.fill(0);
        environment = larger;
      }
      const bytes = readSync(descriptor, environment, length, environment.length - length, null);
      if (bytes === 0) break;
      length += bytes;
    }
    const content = environment.subarray(0, length);
    return { isEmpty: length === 0, mark: [...marksToKill.keys()].find((mark) => content.includes(mark)) ?? null };
  } catch {
    return { isEmpty: false, mark: null };
  } finally {
    environment.fill(0, 0, length);
    if (descriptor !== null) closeSync(descriptor);
  }
}
