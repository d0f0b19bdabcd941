import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError, reasonOf } from "../errors.ts";
import { storeVariables } from "./backup-settings.ts";
import { settingTable } from "./config.ts";
import { providerVariables } from "./model-settings.ts";

type Env = Record<string, string | undefined>;

/** The variables with secrets. Their values can also be in files. */
export const secretVariables: readonly string[] = [
  ...settingTable.flatMap(({ name, isSecret }) => (isSecret ? name : [])),
  ...Object.values(providerVariables).map(({ key }) => key),
  ...Object.values(storeVariables),
];

/**
 * The environment, including the secrets that are in files. A variable `NAME` gets its value from the file that `NAME_FILE` names, or from the
 * systemd credential `NAME`, unless `NAME` itself is set. Throws ConfigError for a file that can't be read, and if both `NAME` and `NAME_FILE` are
 * set.
 */
export function withSecretFiles(env: Env): Env {
  const withSecrets = { ...env };
  for (const name of secretVariables) {
    const file = env[`${name}_FILE`];
    if (file) {
      if (env[name]) throw new ConfigError(`Set ${name} or ${name}_FILE, not both.`);
      delete withSecrets[`${name}_FILE`];
      withSecrets[name] = readSecret(`${name}_FILE`, file);
    } else if (!env[name] && env.CREDENTIALS_DIRECTORY) {
      const secret = findCredential(join(env.CREDENTIALS_DIRECTORY, name));
      if (secret !== null) withSecrets[name] = secret;
    }
  }
  return withSecrets;
}

function readSecret(name: string, file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new ConfigError(`${name}: ${reasonOf(error)}.`);
  }
}

/** The path of a systemd credential; null: there is none. */
function findCredential(file: string): string | null {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return null;
  }
}
