import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError, reasonOf } from "../errors.ts";
import { storeVariables } from "./backup-settings.ts";
import { settingTable } from "./config.ts";
import { providerVariables } from "./model-settings.ts";

type Env = Record<string, string | undefined>;

/** The variables with secrets, which can be in files. */
export const secretVariables: readonly string[] = [
  ...settingTable.flatMap(({ name, isSecret }) => (isSecret ? name : [])),
  ...Object.values(providerVariables).map(({ key }) => key),
  ...Object.values(storeVariables),
];

/**
 * The environment with the secrets that are in files: of the path in `NAME_FILE`, else `NAME` among the credentials of systemd. A variable that
 * is set itself precedes credentials. Throws ConfigError for a file that can't be read, and for a variable that is set together with its file.
 */
export function withSecretFiles(env: Env): Env {
  const all = { ...env };
  for (const name of secretVariables) {
    const file = env[`${name}_FILE`];
    if (file) {
      if (env[name]) throw new ConfigError(`Set ${name} or ${name}_FILE, not both.`);
      delete all[`${name}_FILE`];
      all[name] = readSecret(`${name}_FILE`, file);
    } else if (!env[name] && env.CREDENTIALS_DIRECTORY) {
      const secret = findCredential(join(env.CREDENTIALS_DIRECTORY, name));
      if (secret !== null) all[name] = secret;
    }
  }
  return all;
}

function readSecret(name: string, file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new ConfigError(`${name}: ${reasonOf(error)}.`);
  }
}

/** null: there is no such credential. */
function findCredential(file: string): string | null {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return null;
  }
}
