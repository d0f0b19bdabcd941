import type { frictionStates } from "../grading/kinds.ts";

/**
 * The runs of one evaluation that reached the place of a friction point. `met`: how many met it; `passed`: how many didn't. `byModel`: whether the
 * agent of some of them uses a model.
 */
export type Evaluation = { id: string; at: number; met: number; passed: number; byModel: boolean };

/**
 * The state of a friction point after some evaluations. `met` of `of` runs met it since it (re)appeared; `missed`
 * reached its place since the last one that met it. `reached`: runs of all evaluations that count.
 */
type LifecycleState = {
  /** null: nobody has met it. */
  state: (typeof frictionStates)[number] | null;
  met: number;
  of: number;
  missed: number;
  reached: number;
  byModel: boolean;
  fixedAt: number | null;
};

/** The latest evaluations that count, oldest first, and the state before them. Evaluation IDs are ordered by time. */
export type History = { before: LifecycleState; beforeId: string; evaluations: Evaluation[] };

/** Number of evaluations that are kept individually, because they may finish in another order than they started. */
const maxEvaluations = 30;
/** Maximum probability that a friction point counts as fixed by chance. */
export const maxMissProbability = 0.05;

/** The history of friction that no evaluation has tested. */
const emptyHistory: History = {
  before: { state: null, met: 0, of: 0, missed: 0, reached: 0, byModel: false, fixedAt: null },
  beforeId: "",
  evaluations: [],
};

/**
 * The probability that this many runs in a row miss something that is still there. A rule-based agent always meets it
 * again, so the rate is met / of; with a model, one more miss is assumed (Laplace), so that a single run proves
 * nothing.
 */
export const missProbability = ({
  met,
  of,
  missed,
  byModel,
}: Pick<LifecycleState, "met" | "of" | "missed" | "byModel">): number => (1 - met / (byModel ? of + 1 : of)) ** missed;

/** Whether an evaluation counts: one that meets the friction point always does, any other only while the point is known and not fixed. */
const counts = ({ state }: LifecycleState, { met, passed }: Evaluation): boolean =>
  met > 0 || (passed > 0 && state !== null && state !== "fixed");

function nextState(before: LifecycleState, { at, met, passed, byModel }: Evaluation): LifecycleState {
  const { state } = before;
  const reached = before.reached + met + passed;
  if (met === 0) {
    const next = { ...before, reached, missed: before.missed + passed };
    return missProbability(next) < maxMissProbability ? { ...next, state: "fixed", fixedAt: at } : next;
  }
  const reappeared = { met, of: met + passed, missed: 0, reached, byModel, fixedAt: null };
  if (state === null) return { ...reappeared, state: "new" };
  if (state === "fixed") return { ...reappeared, state: "regressed" };
  const of = before.of + before.missed + met + passed;
  return {
    ...before,
    state: "open",
    met: before.met + met,
    of,
    missed: 0,
    reached,
    byModel: before.byModel || byModel,
  };
}

/**
 * The status of a friction point: new (met in one evaluation), open (in more), fixed (enough runs reached its place
 * without meeting it that chance is below 5 %), regressed (met again after it was fixed).
 */
export const currentStateOf = ({ before, evaluations }: History): LifecycleState =>
  evaluations.reduce(nextState, before);

/**
 * A history whose evaluations from `fromId` on are replaced by these, oldest first. It is the same as `historyOf` all of them. null: it must be
 * computed by that, since evaluations are needed that are no longer kept individually.
 */
export function replaceEvaluations(history: History, fromId: string, replacements: Evaluation[]): History | null {
  const { before, beforeId } = history;
  if (fromId <= beforeId) return null;
  const keptEvaluations = history.evaluations.filter(({ id }) => id < fromId);
  const replaced = withEvaluations({ before, beforeId, evaluations: keptEvaluations }, replacements);
  // With fewer, the latest of those that are summarized in `before` would be kept individually again.
  return beforeId !== "" && replaced.evaluations.length < maxEvaluations ? null : replaced;
}

/** The history of a friction point with these evaluations, oldest first. */
export const historyOf = (evaluations: Evaluation[]): History => withEvaluations(emptyHistory, evaluations);

/** A history with further evaluations, of which those that don't count are left out. */
function withEvaluations(history: History, additions: Evaluation[]): History {
  const { before, beforeId } = history;
  const evaluations = [...history.evaluations];
  let state = currentStateOf(history);
  for (const each of additions) {
    if (!counts(state, each)) continue;
    state = nextState(state, each);
    evaluations.push(each);
  }
  const older = evaluations.slice(0, -maxEvaluations);
  return {
    before: older.reduce(nextState, before),
    beforeId: older.at(-1)?.id ?? beforeId,
    evaluations: evaluations.slice(-maxEvaluations),
  };
}
