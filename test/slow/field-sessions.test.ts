import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { buildExecutable, call, emptyFolder, executable } from "../support/executable.ts";

const cwd = emptyFolder();
const file = join(import.meta.dir, "../fixtures/agent-sessions/pi.jsonl");
const options = ["--provider", "Acme", "--data", cwd];
const session = (args: string[] = [], env: Record<string, string> = {}, path = file) =>
  call(["field", "session", path, ...options, ...args], { cwd, env });
const listReports = async () =>
  JSON.parse((await call(["api", "GET", "/field-friction", "--data", cwd], { cwd })).stdout) as { where: string }[];

/** Runs the command in a terminal, where a person types an answer. */
const answer = (text: string) => {
  const command = `"${executable}" field session "${file}" ${options.join(" ")} --send`;
  return call(["-c", `echo ${text} | script -qec '${command}' /dev/null`], { cwd, file: "sh" });
};

beforeAll(async () => {
  await buildExecutable();
  await call(["org", "create", "Acme", "--data", cwd], { cwd });
  const provider = ["provider", "create", "--name", "Acme", "--docs-url", "https://docs.acme.test"];
  expect((await call([...provider, "--data", cwd], { cwd })).code).toBe(0);
});

test("a session is printed as it would be sent, and nothing is sent without a person", async () => {
  const printed = await session();
  expect(printed.code).toBe(0);
  expect(JSON.parse(printed.stdout)).toMatchObject({
    agent: "pi",
    calls: [{ tool: "run_command", input: "curl … https://docs.acme.test/guide", ok: false, exitCode: 6 }],
  });
  expect(printed.stderr).toContain("1 of 4 calls");
  expect((await session(["--send"])).code).toBe(2);
  expect((await session(["--send"], { CI: "true" })).stderr).toContain("CI");
  expect((await answer("no")).code).toBe(2);
  expect(await listReports()).toEqual([]);
  expect((await answer("yes")).code).toBe(0);
  expect(await listReports()).toMatchObject([{ where: "https://docs.acme.test/guide" }]);
});

test("a file that is no session, or has nothing of the product, is refused by name", async () => {
  const other = join(import.meta.dir, "../../package.json");
  expect(await session([], {}, other)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(other) });
  const gemini = file.replace("pi.jsonl", "gemini.jsonl");
  expect(await session([], {}, gemini)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(gemini) });
});
