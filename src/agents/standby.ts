import { existsSync } from "node:fs";
import { type AgentProcess, startProcess } from "./process.ts";
import type { AgentCommand, ProcessAccess } from "./sandbox/agent-command.ts";
import { closeStatusFile } from "./sandbox/status-file.ts";

/**
 * A process is started only if no run has started for this long, so that it takes nothing from runs that start. Sessions of agents with a model take
 * longer to start, and more time passes between their starts.
 */
const quietMs = { rules: 500, model: 2_000 };

/** Releases what was opened for a command that is not run. */
async function discard({ group, status }: Omit<AgentCommand, "argv">): Promise<void> {
  if (status !== null) closeStatusFile(status);
  await group?.remove();
}

/**
 * Keeps processes that have loaded the code of their agents and wait for an order. Each process serves one run, and only a run that needs exactly
 * what the process got. `commandOf` returns the command that starts a process. With the arguments `wait` and `kind`, the process first loads the code
 * of agents of that kind.
 */
export function createStandby<Needs extends ProcessAccess>(
  commandOf: (needs: Needs) => Promise<AgentCommand>,
  env: Record<string, string>,
  kind: "rules" | "model",
) {
  let standbys: { child: AgentProcess; needs: Needs }[] = [];
  let size = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let findNextNeeds: (lastNeeds: Needs | null) => Promise<Needs | null> = async () => null;
  let lastNeeds: Needs | null = null;
  let takeCount = 0;
  const isFull = () => standbys.filter(({ child }) => child.isRunning()).length >= size;

  async function fill(): Promise<void> {
    const previousCount = takeCount;
    try {
      const needs = isFull() ? null : await findNextNeeds(lastNeeds);
      if (needs === null) return;
      const { argv, ...resources } = await commandOf(needs);
      // A run may have started in the meantime and got the same resources.
      if (takeCount !== previousCount || isFull()) return await discard(resources);
      // A waiting process keeps its priority, because the start of its run depends only on its speed.
      standbys.push({ child: startProcess([...argv, "wait", kind], env, resources), needs });
      fillLater();
    } catch {
      // The next run tries again, and says why.
    }
  }

  function fillLater(): void {
    clearTimeout(timer);
    if (size > 0) timer = setTimeout(fill, quietMs[kind]).unref();
  }

  /**
   * Whether a waiting process can serve this run or a later one. Each process was started with the folders of one run, which are gone if that run was
   * cancelled. Everything else is the same for all runs, unless an agent was installed or upgraded in the meantime.
   */
  function isUsable({ child, needs }: (typeof standbys)[number], nextRunNeeds: Needs): boolean {
    const { folders, ...sharedNeeds } = needs;
    const { folders: _, ...nextSharedNeeds } = nextRunNeeds;
    return (
      child.isRunning() && folders.every((path) => existsSync(path)) && Bun.deepEquals(sharedNeeds, nextSharedNeeds)
    );
  }

  return {
    /** A process for one run. Throws if it cannot start. */
    async take(needs: Needs): Promise<AgentProcess> {
      takeCount++;
      lastNeeds = needs;
      fillLater();
      const usable = standbys.filter((each) => isUsable(each, needs));
      for (const each of standbys) if (!usable.includes(each)) each.child.kill();
      const standby = usable.find((each) => Bun.deepEquals(each.needs.folders, needs.folders));
      standbys = usable.filter((each) => each !== standby);
      if (standby) return standby.child;
      const { argv, ...resources } = await commandOf(needs);
      return startProcess(argv, env, resources);
    },
    /**
     * From now on, keeps up to `newSize` processes waiting. `newFindNextNeeds` gets what the last run needed, and returns what the next run will
     * need; null: unknown yet.
     */
    start(newSize: number, newFindNextNeeds: typeof findNextNeeds): void {
      size = newSize;
      findNextNeeds = newFindNextNeeds;
      fillLater();
    },
    /** Ends the waiting processes. Resolves when none of their processes are left. */
    async stop(): Promise<void> {
      size = 0;
      clearTimeout(timer);
      const unusedStandbys = standbys;
      standbys = [];
      for (const { child } of unusedStandbys) child.kill();
      await Promise.all(unusedStandbys.map(({ child }) => child.end("wait")));
    },
  };
}
