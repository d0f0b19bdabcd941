import { afterAll, beforeAll } from "bun:test";
import { rmSync } from "node:fs";
import { buildInstant, call, emptyFolder, instant, serve } from "./executable.ts";

/**
 * Commands of the executable for a service of the organization Acme, which runs during the tests of a file. `cwd`: their folder. `urlOf`: the URL of the service. `scopes`: of their
 * key, between commas.
 */
export function remoteCommands(scopes: string) {
  const cwd = emptyFolder();
  const env = { EVALD_ALLOW_PRIVATE: "127.0.0.1" };
  let service: Awaited<ReturnType<typeof serve>>;
  let key = "";

  async function run(...args: string[]) {
    const remote: Record<string, string> = key === "" ? {} : { EVALD_URL: service.url, EVALD_KEY: key };
    const { code, stdout } = await call(args, { cwd, file: instant, env: { ...env, ...remote } });
    return { code, out: stdout.trim() };
  }

  beforeAll(async () => {
    await buildInstant();
    await run("org", "create", "Acme");
    const created = await run("key", "create", "--org", "Acme", "--name", "ci", "--scopes", scopes);
    service = await serve({ cwd, file: instant, env });
    key = created.out;
  }, 300_000);
  afterAll(async () => {
    await service.stop();
    rmSync(cwd, { recursive: true });
  });

  return {
    cwd,
    run,
    urlOf: () => service.url,
    runJson: async (...args: string[]) => JSON.parse((await run(...args, "--json")).out),
  };
}
