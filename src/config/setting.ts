import { readFileSync } from "node:fs";
import { ConfigError, reasonOf } from "../errors.ts";

/** One setting that the operator can set. */
type Setting<T> = {
  /** The environment variable. */
  name: string;
  default: string;
  description: string;
  /** Throws ConfigError whose message ends with the valid values. */
  parse: (value: string) => T;
  /** Whether error messages leave out the value. */
  isSecret: boolean;
};

/** Settings, by the field of the configuration that holds the value. A group of settings is a nested table. */
type SettingTable = { readonly [field: string]: Setting<unknown> | SettingTable };

/** The values of a table of settings. */
export type SettingValues<T> = {
  readonly [K in keyof T]: T[K] extends Setting<infer V> ? V : SettingValues<T[K]>;
};

/** Defines a setting. */
export const setting = <T>(
  name: string,
  fallback: string,
  description: string,
  parse: (value: string) => T,
  { isSecret = false }: { isSecret?: boolean } = {},
): Setting<T> => ({ name, default: fallback, description, parse, isSecret });

const isSetting = (entry: Setting<unknown> | SettingTable): entry is Setting<unknown> =>
  typeof entry.parse === "function";

/** Every setting of a table and its groups, in order. */
export const listSettings = (table: SettingTable): Setting<unknown>[] =>
  Object.values(table).flatMap((entry) => (isSetting(entry) ? [entry] : listSettings(entry)));

/**
 * Reads every setting of a table. `options`: the names of the command line options that gave a setting, by the name of the setting. Errors then
 * mention the option. Throws ConfigError for the first invalid value.
 */
export function readSettings<T extends SettingTable>(
  table: T,
  env: Record<string, string | undefined>,
  options: Record<string, string>,
): SettingValues<T> {
  const values = Object.entries(table).map(([field, entry]) => [
    field,
    isSetting(entry)
      ? parseSetting({ ...entry, name: options[entry.name] ?? entry.name }, env[entry.name] ?? entry.default)
      : readSettings(entry, env, options),
  ]);
  return Object.fromEntries(values) as SettingValues<T>;
}

/** Parses the value of a setting. Throws ConfigError that names the setting. */
export function parseSetting<T>(
  { name, parse, isSecret }: Omit<Setting<T>, "default" | "description">,
  value: string,
): T {
  try {
    return parse(value);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(`Invalid ${name}${isSecret ? "" : ` ${JSON.stringify(value)}`}: must be ${error.message}.`);
  }
}

/** Rejects a value with a ConfigError. `expected`: the valid values, as the end of a sentence. */
export function throwExpected(expected: string): never {
  throw new ConfigError(expected);
}

/**
 * Reads JSON from a text that starts with `bracket`. Any other text is the path of a JSON file. `expected`: the valid values, as the end of a
 * sentence. Throws ConfigError.
 */
export function readJsonSetting(value: string, bracket: "[" | "{", expected: string): unknown {
  try {
    return JSON.parse(value.trimStart().startsWith(bracket) ? value : readFileSync(value, "utf8"));
  } catch (error) {
    return throwExpected(`${expected}: ${reasonOf(error)}`);
  }
}

/** An http or https URL without trailing slashes; null if the text is no such URL, or has a user name, a query or a fragment. */
export function toPlainUrl(text: string): string | null {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) return null;
  return url.origin + url.pathname.replace(/\/+$/, "");
}

/** Parses a flag: 0 or 1. */
export const parseFlag = (value: string): boolean =>
  value === "0" || value === "1" ? value === "1" : throwExpected("0 or 1");

/** The items of a comma-separated list, trimmed. Empty items are left out. */
export const splitList = (value: string): string[] => value.split(",").flatMap((item) => item.trim() || []);
