import { type AgentProcess, startProcess } from "./process.ts";
import type { Access, AgentCommand } from "./sandbox/agent-command.ts";

/** Time without a new run until the next process is started, so that it takes nothing from the runs that start. */
const restMs = 500;

/** Starts the processes of agents, one of them ahead of the next run. */
export type Standby = {
  /** A process for one run. Throws if it cannot start. */
  take(access: Access): Promise<AgentProcess>;
  /** Keeps a process waiting from now on. `accessOf` returns what the next run will need, from what the last one needed; null: unknown yet. */
  start(accessOf: (last: Access | null) => Promise<Access | null>): void;
  /** Ends the waiting process, and resolves when nothing of it is left. */
  stop(): Promise<void>;
};

/**
 * Keeps a process with the code of its agents loaded, which waits for its order. It serves one run, like any other, and only one that needs
 * exactly its access. `commandOf` returns the command that starts a process; with the arguments `wait` and `kind`, one that loads the code of
 * agents of that kind first.
 */
export function createStandby(
  commandOf: (access: Access) => Promise<AgentCommand>,
  env: Record<string, string>,
  kind: "rules" | "model",
): Standby {
  let waiting: { child: AgentProcess; access: Access } | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let nextAccess: ((last: Access | null) => Promise<Access | null>) | null = null;
  let last: Access | null = null;
  let taken = 0;

  async function fill(): Promise<void> {
    const before = taken;
    try {
      const access = (await nextAccess?.(last)) ?? null;
      if (access === null) return;
      const { argv, group } = await commandOf(access);
      // A run that started meanwhile may have got this access.
      if (!nextAccess || taken !== before || waiting?.child.isRunning()) return void (await group?.remove());
      // With normal priority until its run has begun, which waits for nothing but this process.
      waiting = { child: startProcess([...argv, "wait", kind], env, group), access };
    } catch {
      // The next run tries again, and says why.
      waiting = null;
    }
  }

  function fillLater(): void {
    clearTimeout(timer);
    if (nextAccess) timer = setTimeout(fill, restMs).unref();
  }

  return {
    async take(access) {
      taken++;
      last = access;
      const ready = waiting;
      waiting = null;
      fillLater();
      if (ready?.child.isRunning() && Bun.deepEquals(ready.access, access)) return ready.child;
      ready?.child.kill();
      const { argv, group } = await commandOf(access);
      return startProcess(argv, env, group);
    },
    start(accessOf) {
      nextAccess = accessOf;
      fillLater();
    },
    async stop() {
      nextAccess = null;
      clearTimeout(timer);
      const unused = waiting;
      waiting = null;
      unused?.child.kill();
      await unused?.child.end("wait");
    },
  };
}
