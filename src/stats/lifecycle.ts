import type { frictionStates } from "../grading/kinds.ts";

/** The runs of one evaluation that reached the place of a friction point. Some met it and some didn't. */
export type Evaluation = { id: string; at: number; met: number; passed: number; byModel: boolean };

/**
 * The state of a friction point after some evaluations. `met` of `of` runs met it since it (re)appeared; `missed`
 * reached its place since the last one that met it.
 */
type LifecycleState = {
  /** null: nobody has met it. */
  state: (typeof frictionStates)[number] | null;
  met: number;
  of: number;
  missed: number;
  byModel: boolean;
  fixedAt: number | null;
};

/** The latest evaluations, oldest first, and the state before them. Evaluation IDs are ordered by time. */
export type History = { before: LifecycleState; beforeId: string; evaluations: Evaluation[] };

/** Number of evaluations that are kept individually, because they may finish in another order than they started. */
const maxEvaluations = 30;
/** Maximum probability that a friction point counts as fixed by chance. */
export const maxMissProbability = 0.05;

export const emptyHistory: History = {
  before: { state: null, met: 0, of: 0, missed: 0, byModel: false, fixedAt: null },
  beforeId: "",
  evaluations: [],
};

/**
 * The probability that this many runs in a row miss something that is still there. A rule-based agent always meets it
 * again, so the rate is met / of; with a model, one more miss is assumed (Laplace), so that a single run proves
 * nothing.
 */
export const missProbability = ({ met, of, missed, byModel }: Omit<LifecycleState, "state" | "fixedAt">): number =>
  (1 - met / (byModel ? of + 1 : of)) ** missed;

function nextState(before: LifecycleState, { at, met, passed, byModel }: Evaluation): LifecycleState {
  const { state } = before;
  if (met > 0) {
    const isActive = state === "new" || state === "open" || state === "regressed";
    if (!isActive)
      return {
        state: state === null ? "new" : "regressed",
        met,
        of: met + passed,
        missed: 0,
        byModel,
        fixedAt: null,
      };
    const of = before.of + before.missed + met + passed;
    return { ...before, state: "open", met: before.met + met, of, missed: 0, byModel: before.byModel || byModel };
  }
  if (passed === 0 || state === null) return before;
  const missed = { ...before, missed: before.missed + passed };
  return state !== "fixed" && missProbability(missed) < maxMissProbability
    ? { ...missed, state: "fixed", fixedAt: at }
    : missed;
}

/**
 * The status of a friction point: new (met in one evaluation), open (in more), fixed (enough runs reached its place
 * without meeting it that chance is below 5 %), regressed (met again after it was fixed).
 */
export const currentStateOf = ({ before, evaluations }: History): LifecycleState =>
  evaluations.reduce(nextState, before);

/** The evaluation if it is kept individually, else null. */
export const findEvaluation = ({ evaluations }: History, id: string): Evaluation | null =>
  evaluations.find((each) => each.id === id) ?? null;

/** Adds runs of an evaluation or, with negative numbers, removes them. Null if the evaluation is too old. */
export function withRuns(history: History, { id, at, met, passed, byModel }: Evaluation): History | null {
  const existing = findEvaluation(history, id);
  if (existing) {
    const changed = {
      ...existing,
      met: Math.max(0, existing.met + met),
      passed: Math.max(0, existing.passed + passed),
      byModel: existing.byModel || byModel,
    };
    return { ...history, evaluations: history.evaluations.map((each) => (each === existing ? changed : each)) };
  }
  if (id <= history.beforeId || met + passed < 0) return null;
  const evaluations = [...history.evaluations, { id, at, met, passed, byModel }].sort((a, b) => (a.id < b.id ? -1 : 1));
  const [oldest] = evaluations;
  if (evaluations.length <= maxEvaluations || !oldest) return { ...history, evaluations };
  return { before: nextState(history.before, oldest), beforeId: oldest.id, evaluations: evaluations.slice(1) };
}
