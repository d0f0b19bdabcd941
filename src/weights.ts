import { readFileSync } from "node:fs";
import { ConfigError } from "./errors.ts";

/** What a score is made of, in the order of a report. */
export const dimensionNames = [
  "Goal achievement",
  "Docs discoverability",
  "Docs quality",
  "Error recovery",
  "Efficiency",
  "Autonomy",
] as const;
export type DimensionName = (typeof dimensionNames)[number];

/** Weights of an operator's own in place of those that evald has, under a name of their own. */
export type OwnWeights = Readonly<{ id: string; weights: Readonly<Record<DimensionName, number>> }>;

const syntax = `JSON or a file of it: an id that begins with a letter, and a weight for each dimension, 100 in all, as in ${JSON.stringify(
  {
    id: "acme-1",
    weights: Object.fromEntries(dimensionNames.map((name, i) => [name, [40, 20, 10, 15, 10, 5][i]])),
  },
)}`;

/** Weights as JSON or as the path of a file; empty: none. Throws ConfigError. */
export function weightsSetting(value: string): OwnWeights | null {
  if (value === "") return null;
  const bad = (why: string) => new ConfigError(`${syntax}; ${why}`);
  let stated: unknown;
  try {
    stated = JSON.parse(value.trimStart().startsWith("{") ? value : readFileSync(value, "utf8"));
  } catch (error) {
    throw bad(error instanceof Error ? error.message : String(error));
  }
  const { id, weights, ...rest } = (stated ?? {}) as Record<string, unknown>;
  // Names of digits are those of evald's own methodologies.
  if (typeof id !== "string" || !/^[a-z][a-z0-9._-]{0,39}$/.test(id)) throw bad("the id must match [a-z][a-z0-9._-]*");
  const given = (weights ?? {}) as Record<string, unknown>;
  const unknown = [...Object.keys(rest), ...Object.keys(given).filter((name) => !isDimension(name))];
  if (unknown.length > 0) throw bad(`${JSON.stringify(unknown[0])} is not known`);
  const own = dimensionNames.map((name) => {
    const weight = given[name];
    if (typeof weight !== "number" || !Number.isInteger(weight) || weight < 0 || weight > 100)
      throw bad(`${JSON.stringify(name)} needs a whole number from 0 to 100`);
    return [name, weight] as const;
  });
  const sum = own.reduce((all, [, weight]) => all + weight, 0);
  if (sum !== 100) throw bad(`the weights are ${sum} in all`);
  return { id, weights: Object.fromEntries(own) as OwnWeights["weights"] };
}

const isDimension = (name: string) => dimensionNames.some((known) => known === name);
