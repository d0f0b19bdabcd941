import type { frictionStates } from "../grading/kinds.ts";

/**
 * The runs of one evaluation that reached the place of a friction point. `met`: how many met the point. `passed`: how many didn't. `byModel`: whether
 * the agent of some of the runs uses a model.
 */
export type Evaluation = { id: string; at: number; met: number; passed: number; byModel: boolean };

/**
 * The state of a friction point after some evaluations. Since the point (re)appeared, `met` of `of` runs met it. `missed`: how many runs reached its
 * place since the last run that met it. `reached`: the runs of all evaluations that count.
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

/** The latest evaluations that count, oldest first, and the state before them. The IDs of evaluations are in time order. */
export type History = { before: LifecycleState; beforeId: string; evaluations: Evaluation[] };

/** How many evaluations are kept individually. They may finish in another order than they started. */
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
 * The probability that this many runs in a row miss something that is still there. A rule-based agent always meets it again, so the rate is met / of.
 * For an agent with a model, one more miss is assumed (Laplace), so that a single run proves nothing.
 */
export const missProbability = ({
  met,
  of,
  missed,
  byModel,
}: Pick<LifecycleState, "met" | "of" | "missed" | "byModel">): number => (1 - met / (byModel ? of + 1 : of)) ** missed;

/**
 * Whether an evaluation counts. An evaluation that meets the friction point always counts. Any other one counts only while the point is known and not
 * fixed.
 */
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
 * The status of a friction point. New: one evaluation met it. Open: several did. Fixed: so many runs reached its place without meeting it that the
 * probability of chance is below 5 %. Regressed: it was met again after it was fixed.
 */
export const currentStateOf = ({ before, evaluations }: History): LifecycleState =>
  evaluations.reduce(nextState, before);

/**
 * A history in which the evaluations from `fromId` on are replaced by these, oldest first. The result is the same as `historyOf` for all evaluations.
 * null: evaluations are needed that are no longer kept individually, so `historyOf` must compute the history.
 */
export function replaceEvaluations(history: History, fromId: string, replacements: Evaluation[]): History | null {
  const { before, beforeId } = history;
  if (fromId <= beforeId) return null;
  const keptEvaluations = history.evaluations.filter(({ id }) => id < fromId);
  const replaced = withEvaluations({ before, beforeId, evaluations: keptEvaluations }, replacements);
  // With fewer, some evaluations that are summarized in `before` would have to be kept individually again.
  return beforeId !== "" && replaced.evaluations.length < maxEvaluations ? null : replaced;
}

/** The history of a friction point with these evaluations, oldest first. */
export const historyOf = (evaluations: Evaluation[]): History => withEvaluations(emptyHistory, evaluations);

/** A history with further evaluations. Evaluations that don't count are left out. */
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
