import { ConfigError } from "../errors.ts";

type Reading<T> = {
  /** The variable, or the option that was given instead. */
  name: string;
  value: string;
  /** Throws ConfigError with the valid values, as the end of a sentence. */
  parse: (value: string) => T;
  isSecret?: boolean;
};

/** Parses the value of a setting. Throws ConfigError that names it. */
export function readSetting<T>({ name, value, parse, isSecret = false }: Reading<T>): T {
  try {
    return parse(value);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(`Invalid ${name}${isSecret ? "" : ` ${JSON.stringify(value)}`}: must be ${error.message}.`);
  }
}
