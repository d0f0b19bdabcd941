import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Calibration } from "../../src/calibration/schema.ts";

const root = join(import.meta.dir, "..", "..");
const copy = mkdtempSync(join(tmpdir(), "evald-broken-rules-"));
const data = join(copy, "data");
beforeAll(async () => {
  cpSync(join(root, "src"), join(copy, "src"), { recursive: true });
  for (const name of ["node_modules", "drizzle", "package.json", "tsconfig.json", "patches"])
    symlinkSync(join(root, name), join(copy, name));
  await run("org", "create", "Acme");
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

/** The output of a command of the copy. */
async function run(...args: string[]): Promise<string> {
  const command = Bun.spawn([process.execPath, join(copy, "src", "main.ts"), ...args, "--data", data], {
    cwd: copy,
    env: { PATH: process.env.PATH, HOME: copy, EVALD_LOG_LEVEL: "silent" },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors, code] = await Promise.all([
    new Response(command.stdout).text(),
    new Response(command.stderr).text(),
    command.exited,
  ]);
  if (code !== 0) throw new Error(errors);
  return output;
}

const calibrate = async (): Promise<Calibration> =>
  JSON.parse(await run("calibrate", "--agent", "explorer", "--n", "2", "--json"));

test("a grader that no longer reports what its checks found has significantly worse figures", async () => {
  const before = await calibrate();
  expect(before.figures).toMatchObject({ found: { n: 8, of: 8 }, falseFindings: { n: 0, of: 2 } });

  const file = join(copy, "src", "grading", "findings", "findings.ts");
  const source = readFileSync(file, "utf8");
  const broken = source.replace(
    "const otherChecks = failingChecks.filter((check) => !conventions.has(check.id));",
    "const otherChecks = failingChecks.slice(0, 1);",
  );
  expect(broken).not.toBe(source);
  writeFileSync(file, broken);

  const after = await calibrate();
  expect(after.figures?.found.of).toBe(8);
  expect(after.figures?.found.n).toBeLessThan(4);
  expect(after.worse).toContain("found");
  expect(after.methodology).toBe(before.methodology);
}, 170_000);
