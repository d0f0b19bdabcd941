import { type AgentProcess, startProcess } from "./process.ts";

/** Time without a new run until the next process is started, so that it takes nothing from the runs that start. */
const restMs = 500;

/** Starts the processes of agents, one of them ahead of the next run. */
export type Standby = {
  /** A process for one run, with access to a unix socket. Throws if it cannot start. */
  take(socketPath: string | null): Promise<AgentProcess>;
  /** Keeps a process waiting from now on, with access to the socket; with `afterFirst`, from the first run on. */
  start(socketPath: () => Promise<string | null>, afterFirst?: "afterFirst"): void;
  /** Ends the waiting process. */
  stop(): void;
};

/**
 * Keeps a process with the code of its agents loaded, which waits for its order. It serves one run, like any other. `commandOf` returns the
 * command that starts a process with access to a unix socket; with the arguments `wait` and `kind`, one that loads the code of agents of that kind first.
 */
export function createStandby(
  commandOf: (socketPath: string | null) => Promise<string[]>,
  env: Record<string, string>,
  kind: "rules" | "model",
): Standby {
  let waiting: AgentProcess | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let socketOf: (() => Promise<string | null>) | null = null;

  async function fill(): Promise<void> {
    try {
      const command = await commandOf((await socketOf?.()) ?? null);
      if (!socketOf || waiting?.isRunning()) return;
      // With normal priority until its run has begun, which waits for nothing but this process.
      waiting = startProcess([...command, "wait", kind], env);
    } catch {
      // The next run tries again, and says why.
      waiting = null;
    }
  }

  function fillLater(): void {
    clearTimeout(timer);
    if (socketOf) timer = setTimeout(fill, restMs).unref();
  }

  return {
    async take(socketPath) {
      const ready = waiting?.isRunning() ? waiting : null;
      waiting = null;
      fillLater();
      return ready ?? startProcess(await commandOf(socketPath), env);
    },
    start(socketPath, afterFirst) {
      socketOf = socketPath;
      if (!afterFirst) fillLater();
    },
    stop() {
      socketOf = null;
      clearTimeout(timer);
      waiting?.kill();
      waiting = null;
    },
  };
}
