import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { giveWay } from "./priority.ts";

const keptOfStderr = 4096;
/** Between the word to stop, or its last line, and the end of a process by force. */
const graceMs = 3_000;
/** Inherited by whatever a process starts, so that all of it can be found. */
const markName = "AGENT_PROCESS";

export type AgentProcess = {
  stdout: ReadableStream<Uint8Array>;
  /** Does not throw. */
  write(text: string): Promise<void>;
  /** The end of what it wrote to stderr. */
  complaint(): string;
  /** Its resident memory in bytes; null where the system does not tell. */
  memory(): number | null;
  /** Ends it by force at once, with its group. */
  kill(): void;
  /**
   * Waits for its end, asking for it first with `ask`, and forces it when its time is over. Then nothing that it started is left.
   * Answers how it ended by itself; null if it had to be forced.
   */
  end(how: "wait" | "ask"): Promise<string | null>;
};

/** The command that runs an agent of this very program, also after the file of the program was replaced by a newer one. */
export function ownCommand(): string[] {
  const program = existsSync("/proc/self/exe") ? "/proc/self/exe" : process.execPath;
  const isCompiled = import.meta.dir.startsWith("/$bunfs/");
  return [program, ...(isCompiled ? [] : [join(import.meta.dir, "..", "main.ts")]), "__agent"];
}

/** Starts a process that leads a group of its own and dies with this one. Throws what keeps it from being started. */
export function startProcess(command: string[], env: Record<string, string>): AgentProcess {
  const id = crypto.randomUUID();
  const child = Bun.spawn(command, {
    cwd: "/",
    // Bun's own watch over its parent: by the kernel on Linux, so that even a busy process is gone.
    env: { ...env, BUN_FEATURE_FLAG_NO_ORPHANS: "1", [markName]: id },
    detached: true,
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  giveWay(child.pid);
  const stderr = tail(child.stderr);
  const signalGroup = (signal: "SIGTERM" | "SIGKILL") => {
    try {
      process.kill(-child.pid, signal);
    } catch {
      // Gone already.
    }
  };
  async function finish(how: "wait" | "ask"): Promise<string | null> {
    if (how === "ask") signalGroup("SIGTERM");
    const timely = await within(graceMs, child.exited);
    signalGroup("SIGKILL");
    await killMarked(`${markName}=${id}`);
    await child.exited;
    await within(graceMs, stderr.ended);
    if (!timely) return null;
    return child.signalCode ? `was ended by ${child.signalCode}` : `ended with status ${child.exitCode}`;
  }
  let ending: Promise<string | null> | undefined;
  const end = (how: "wait" | "ask") => (ending ??= finish(how));
  // What it leaves behind may hold its stdout open for ever.
  child.exited.then(() => end("wait"));

  return {
    stdout: child.stdout,
    async write(text) {
      try {
        await child.stdin.write(text);
        await child.stdin.flush();
      } catch {
        // A process that ends before it has read tells by its status why.
      }
    },
    complaint: stderr.text,
    memory: () => memoryOf(child.pid),
    kill: () => signalGroup("SIGKILL"),
    end,
  };
}

/** Whether a promise is kept in time. */
async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(resolve, ms, false)));
  const timely = await Promise.race([promise.then(() => true), late]);
  clearTimeout(timer);
  return timely;
}

/** Reads a stream to its end and keeps what came last. */
function tail(stream: ReadableStream<Uint8Array>): { text: () => string; ended: Promise<void> } {
  let kept = Buffer.alloc(0);
  const read = async () => {
    for await (const bytes of stream) kept = Buffer.concat([kept, bytes]).subarray(-keptOfStderr);
  };
  return { text: () => kept.toString().trim(), ended: read().catch(() => {}) };
}

function memoryOf(pid: number): number | null {
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1];
    return kib === undefined ? null : Number(kib) * 1024;
  } catch {
    return null;
  }
}

const maxLooks = 10;
const turn = () => new Promise((resolve) => setImmediate(resolve));
/** The marks of all whose processes are to end. */
const sought = new Set<string>();
/** A look that has not begun yet serves all who wait for one: many runs may end at once. */
let nextLook: Promise<Set<string>> | null = null;
let lastLook: Promise<unknown> = Promise.resolve();

/** Ends every process with a mark in its environment: what left its group is known by it. New ones may appear meanwhile, so it looks again. */
async function killMarked(mark: string): Promise<void> {
  sought.add(mark);
  try {
    for (let looks = 0; looks < maxLooks; looks++) {
      nextLook ??= lastLook.then(turn, turn).then(killSought);
      lastLook = nextLook;
      if (!(await nextLook).has(mark)) return;
    }
  } finally {
    sought.delete(mark);
  }
}

/** One look at all processes; answers with the marks that it met. */
async function killSought(): Promise<Set<string>> {
  nextLook = null;
  const found = new Set<string>();
  for (const [index, pid] of listProcesses().entries()) {
    // Some microseconds each, too few to be worth a turn of the service; a machine may have thousands.
    if (index % 25 === 24) await turn();
    const mark = environmentOf(pid).find((entry) => sought.has(entry));
    if (mark === undefined) continue;
    found.add(mark);
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // Gone already.
    }
  }
  return found;
}

const listProcesses = (): number[] =>
  existsSync("/proc")
    ? readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .map(Number)
    : [];

function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
  } catch {
    // Gone already, or of another user.
    return [];
  }
}
