import { invalidField } from "../errors.ts";

/** Passwords that take fewer than 10^8 guesses are rejected. */
const minScore = 3;
/** Limits the length, because the time of an estimate grows with the square of the length. */
const maxLength = 100;

let estimator: Promise<(password: string, userInputs: string[]) => number> | undefined;

/** The package is loaded lazily, because its dictionaries take longer to load than all pages together. */
async function loadEstimator() {
  const [{ ZxcvbnFactory }, { dictionary, adjacencyGraphs }] = await Promise.all([
    import("@zxcvbn-ts/core"),
    import("@zxcvbn-ts/language-common"),
  ]);
  const zxcvbn = new ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs });
  return (password: string, userInputs: string[]) => zxcvbn.check(password.slice(0, maxLength), userInputs).score;
}

/** Throws bad_request for a password that is easy to guess, such as a common one, a sequence or a repetition. */
export async function checkStrength(password: string): Promise<void> {
  estimator ??= loadEstimator();
  const scoreOf = await estimator;
  if (scoreOf(password, ["evald"]) < minScore)
    throw invalidField("password", "too easy to guess; use a phrase of several unrelated words");
}
