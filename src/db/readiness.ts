import type { Commit } from "./commit.ts";
import type { Db } from "./open.ts";

type Parts = {
  db: Db;
  commit: Commit;
  /** Why the disk can't be trusted; null if it can. */
  broken: () => string | null;
  /** Why no jobs are claimed; null if they are. */
  findRunnerProblem: () => string | null;
  onError: (error: unknown) => unknown;
};

/** Returns a function that says in a sentence why the service isn't ready; null if it is. */
export const createReadiness =
  ({ db, commit, broken, findRunnerProblem, onError }: Parts) =>
  async (): Promise<string | null> => {
    const why = broken();
    if (why !== null) return `the database disk has failed: ${why}`;
    const ofRunner = findRunnerProblem();
    if (ofRunner !== null) return `the job runner is not taking jobs: ${ofRunner}`;
    try {
      // A small write that reaches the disk: a rolled back transaction wouldn't.
      await commit(() => db.$client.run("pragma user_version = 0"));
      return null;
    } catch (error) {
      onError(error);
      return `the database is not writable: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
