import { resolve } from "node:path";
import { type Context, perContext } from "../context.ts";
import { createPoll } from "../poll.ts";
import { type CheckId, type CheckResult, runChecks } from "./checks.ts";
import { recordFreeSpace } from "./disk-history.ts";
import { type CheckOccasion, type CheckState, type Installation, isProblem } from "./finding.ts";
import { listStoredProblems, storeProblems } from "./stored-problems.ts";

/** The first checks wait until the service has started. */
const firstMs = 3_000;
const dayMs = 24 * 3600_000;
/** How often checks that found a problem run again, so that it is gone soon after it was fixed. */
const retryMs = 5 * 60_000;

/** The state of each check at its last run, in this process. */
const lastStates = perContext((_: Context) => new Map<CheckId, CheckState>());

/** The worst state that each check of the service found at its last run; checks that haven't run yet are missing. */
export const listCheckStates = (ctx: Context): ReadonlyMap<CheckId, CheckState> => lastStates(ctx);

const worstFirst = ["failed", "warning", "ok", "not_applicable"] as const satisfies CheckState[];

const worstOf = (results: CheckResult[]): CheckState =>
  worstFirst.find((state) => results.some((each) => each.state === state)) ?? "not_applicable";

/** Runs the checks of an occasion, or `only` some of them, and stores what they find. */
async function checkHealth(
  ctx: Context,
  installation: Installation,
  occasion: CheckOccasion,
  only: (id: CheckId) => boolean = () => true,
): Promise<CheckResult[]> {
  const results = await runChecks(occasion, installation, only);
  const ids = new Set(results.map(({ check }) => check));
  logChanges(ctx, ids, results);
  storeProblems(ctx, ids, results);
  const states = lastStates(ctx);
  for (const id of ids) states.set(id, worstOf(results.filter(({ check }) => check === id)));
  return results;
}

/** Logs problems that checks newly found, and problems that they no longer find. `ids`: the checks that ran. */
function logChanges(ctx: Context, ids: ReadonlySet<CheckId>, results: CheckResult[]): void {
  const before = listStoredProblems(ctx).filter(({ check }) => ids.has(check));
  const isAmong = (some: CheckResult[], { check, cause, subject }: CheckResult) =>
    some.some((each) => each.check === check && each.cause === cause && each.subject === subject);
  for (const result of results)
    if (isProblem(result) && !isAmong(before, result)) ctx.log.warn(result, "a check found a problem");
  for (const problem of before.filter((each) => !isAmong(results, each))) {
    const { check, cause, subject } = problem;
    ctx.log.info({ check, cause, subject }, "a problem is gone");
  }
}

/** Runs the checks of the service soon after its start and then every day. Checks that found a problem run more often. */
export function createHealthChecks(ctx: Context, describeInstallation: () => Installation) {
  const startedAt = ctx.monotonicNow();
  /** When all checks run next, by the monotonic clock: first at the start. */
  let dueAt = startedAt;

  /** Runs the checks that are due. Once a day, these are all checks. Otherwise, they are the checks that found a problem. */
  async function runOnce(): Promise<void> {
    const at = ctx.monotonicNow();
    if (at >= dueAt) {
      recordFreeSpace(resolve(ctx.config.dataDir), ctx.now());
      await checkHealth(ctx, describeInstallation(), dueAt === startedAt ? "start" : "daily");
      dueAt = at + dayMs;
      return;
    }
    // These include problems that an earlier process of the service found.
    const failing = new Set(listStoredProblems(ctx).map(({ check }) => check));
    await checkHealth(ctx, describeInstallation(), "daily", (id) => failing.has(id));
  }

  const poll = createPoll({
    async check() {
      const untilFirstMs = startedAt + firstMs - ctx.monotonicNow();
      if (untilFirstMs > 0) return untilFirstMs;
      await runOnce();
      const untilDueMs = Math.max(0, dueAt - ctx.monotonicNow());
      const hasProblem = [...lastStates(ctx).values()].some((state) => isProblem({ state }));
      return hasProblem ? Math.min(retryMs, untilDueMs) : untilDueMs;
    },
    onError: (error) => ctx.log.error({ err: error }, "could not check the installation"),
    retryMs,
  });
  return { runOnce, start: poll.start, stop: poll.stop };
}
