import type { frictionStates } from "../grading/kinds.ts";

/** The runs of one evaluation that came to where a friction stands: those that met it and those that did not. */
export type Evaluation = { id: string; at: number; met: number; passed: number; byModel: boolean };

/** How a friction stands after some evaluations. `met` of `of` runs met it since it came (back); `missed` came by since one met it last. */
export type Standing = {
  /** null: nobody has met it. */
  state: (typeof frictionStates)[number] | null;
  met: number;
  of: number;
  missed: number;
  byModel: boolean;
  fixedAt: number | null;
};

/** The newest evaluations, oldest first, and how it stood before them. Ids of evaluations follow time. */
export type Life = { before: Standing; beforeId: string; evaluations: Evaluation[] };

/** Evaluations that are remembered one by one: so many may end in another order than they began. */
const remembered = 30;
/** The most that is left to luck. */
export const maxLuck = 0.05;

export const unmet: Life = {
  before: { state: null, met: 0, of: 0, missed: 0, byModel: false, fixedAt: null },
  beforeId: "",
  evaluations: [],
};

/**
 * The chance that so many runs in a row miss what is still there. An agent by rules meets again what it met, so the rate is met / of; with a
 * model one more miss is reckoned in (Laplace), so that a single run proves nothing.
 */
export const luckOf = ({ met, of, missed, byModel }: Pick<Standing, "met" | "of" | "missed" | "byModel">): number =>
  (1 - met / (byModel ? of + 1 : of)) ** missed;

function after(before: Standing, { at, met, passed, byModel }: Evaluation): Standing {
  const { state } = before;
  if (met > 0) {
    const isAgain = state === "new" || state === "open" || state === "regressed";
    if (!isAgain)
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
  return state !== "fixed" && luckOf(missed) < maxLuck ? { ...missed, state: "fixed", fixedAt: at } : missed;
}

/**
 * How a friction stands: new (met in one evaluation), open (in more), fixed (so many runs came by and did not meet it that luck is less than
 * 5 %), regressed (met again in the newest evaluation that met it, after it was fixed).
 */
export const standingOf = ({ before, evaluations }: Life): Standing => evaluations.reduce(after, before);

/** The evaluation as it is remembered; null if it is not. */
export const findEvaluation = ({ evaluations }: Life, id: string): Evaluation | null =>
  evaluations.find((each) => each.id === id) ?? null;

/** The life with runs of an evaluation added or, by numbers below 0, taken out. Null if the evaluation lies too far back to tell. */
export function withRuns(life: Life, { id, at, met, passed, byModel }: Evaluation): Life | null {
  const known = findEvaluation(life, id);
  if (known) {
    const changed = {
      ...known,
      met: Math.max(0, known.met + met),
      passed: Math.max(0, known.passed + passed),
      byModel: known.byModel || byModel,
    };
    return { ...life, evaluations: life.evaluations.map((each) => (each === known ? changed : each)) };
  }
  if (id <= life.beforeId || met + passed < 0) return null;
  const evaluations = [...life.evaluations, { id, at, met, passed, byModel }].sort((a, b) => (a.id < b.id ? -1 : 1));
  const [oldest] = evaluations;
  if (evaluations.length <= remembered || !oldest) return { ...life, evaluations };
  return { before: after(life.before, oldest), beforeId: oldest.id, evaluations: evaluations.slice(1) };
}
