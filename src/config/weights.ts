import { ConfigError } from "../errors.ts";
import { readJsonSetting } from "./setting.ts";

/** The dimensions of a score, in the order of a report. */
export const dimensionNames = [
  "Goal achievement",
  "Docs discoverability",
  "Docs quality",
  "Error recovery",
  "Efficiency",
  "Autonomy",
] as const;
export type DimensionName = (typeof dimensionNames)[number];

/** The distinct names among these dimensions, in the order of a report. */
export const sortDimensionNames = (names: string[]): DimensionName[] =>
  dimensionNames.filter((name) => names.includes(name));

/** An operator's weights, which replace the built-in ones, and the ID of the resulting methodology. */
export type CustomWeights = Readonly<{ id: string; weights: Readonly<Record<DimensionName, number>> }>;

const example: CustomWeights = {
  id: "acme-1",
  weights: {
    "Goal achievement": 40,
    "Docs discoverability": 20,
    "Docs quality": 10,
    "Error recovery": 15,
    Efficiency: 10,
    Autonomy: 5,
  },
};
const syntax = `JSON or the path of a JSON file, with an id that starts with a letter and weights that add up to 100, such as ${JSON.stringify(example)}`;

/** Parses weights from JSON or from a file; null if empty. Throws ConfigError. */
export function parseWeights(value: string): CustomWeights | null {
  if (value === "") return null;
  const invalid = (why: string) => new ConfigError(`${syntax}: ${why}`);
  const { id, weights, ...rest } = (readJsonSetting(value, "{", syntax) ?? {}) as Record<string, unknown>;
  // IDs that consist of digits are reserved for the built-in methodologies.
  if (typeof id !== "string" || !/^[a-z][a-z0-9._-]{0,39}$/.test(id)) throw invalid("id must match [a-z][a-z0-9._-]*");
  const weightByName = (weights ?? {}) as Record<string, unknown>;
  const [unknownKey] = [...Object.keys(rest), ...Object.keys(weightByName).filter((name) => !isDimensionName(name))];
  if (unknownKey !== undefined) throw invalid(`unknown key ${JSON.stringify(unknownKey)}`);
  const entries = dimensionNames.map((name) => {
    const weight = weightByName[name];
    if (typeof weight !== "number" || !Number.isInteger(weight) || weight < 0 || weight > 100)
      throw invalid(`${JSON.stringify(name)} must be a whole number from 0 to 100`);
    return [name, weight] as const;
  });
  const sum = entries.reduce((total, [, weight]) => total + weight, 0);
  if (sum !== 100) throw invalid(`the weights add up to ${sum}, not 100`);
  return { id, weights: Object.fromEntries(entries) as CustomWeights["weights"] };
}

const isDimensionName = (name: string) => dimensionNames.some((dimension) => dimension === name);
