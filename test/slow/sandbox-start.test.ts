import { expect, test } from "bun:test";
import { runCommand } from "../../src/agents/sandbox/command.ts";

const { signal } = new AbortController();
const run = (command: string, binds: { from: string; to: string }[] = []) =>
  runCommand({ argv: ["sh", "-c", command], binds, seconds: 30, signal });

test("a sandbox that cannot start is a failure of the infrastructure, and is tried again", async () => {
  const start = run("true", [{ from: "/nowhere/at-all", to: "/opt/shown" }]);
  await expect(start).rejects.toMatchObject({ failure: { cause: "infrastructure" }, options: { retryable: true } });
});

test.each([
  ["exit 1", 1],
  ["echo 'bwrap: no such file' >&2; exit 1", 1],
  ["kill -9 $$", 137],
  ["not-a-program", 127],
])("a command that fails has an exit code of its own: %s", async (command, exitCode) => {
  expect(await run(command)).toMatchObject({ exitCode, limit: null, timedOut: false });
});
