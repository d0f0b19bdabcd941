import { afterAll, expect, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dir, "..", "..");
const copy = mkdtempSync(join(tmpdir(), "evald-contributing-"));
afterAll(() => rmSync(copy, { recursive: true }));

async function run(...command: string[]) {
  const path = `${join(root, "node_modules", ".bin")}:${process.env.PATH}`;
  const env = { ...process.env, PATH: path };
  const child = Bun.spawn(command, { cwd: copy, env, stdout: "pipe", stderr: "pipe" });
  const outputs = [new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited] as const;
  const [stdout, stderr, code] = await Promise.all(outputs);
  expect([command.join(" "), code, code === 0 ? "" : stdout + stderr]).toEqual([command.join(" "), 0, ""]);
  return stdout;
}

/** One change of an example: a whole new file, or a diff of an existing one. */
type Step = { file: string; language: string; code: string };

/** The steps of an example: each code block belongs to the file named last. */
function stepsOf(example: string): Step[] {
  let file = "";
  return [...example.matchAll(/^\d+\. .*?`((?:src|test)\/[^`]+)`|^ {3}```(\w+)\n([\s\S]*?)^ {3}```$/gm)].flatMap(
    ([, named, language = "", code = ""]) => {
      if (named !== undefined) file = named;
      return named === undefined ? [{ file, language, code: code.replace(/^ {3}/gm, "") }] : [];
    },
  );
}

/** Applies a diff whose old lines occur in the text exactly once; one without old lines is appended. */
function withDiff(text: string, { file, code }: Step): string {
  const lines = code.trimEnd().split("\n");
  const side = (other: string) =>
    lines
      .filter((line) => !line.startsWith(other))
      .map((line) => `${line.slice(1)}\n`)
      .join("");
  const [old, fresh] = [side("+"), side("-")];
  if (old === "") return text + fresh;
  expect([file, old, text.split(old).length - 1]).toEqual([file, old, 1]);
  return text.replace(old, () => fresh);
}

test("every example applies and passes, with the stated number of files", async () => {
  const files = (await Bun.$`git ls-files -co --exclude-standard`.cwd(root).text()).trim().split("\n");
  for (const file of files) cpSync(join(root, file), join(copy, file), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  await run("git", "init", "-q");
  await Bun.write(join(copy, ".git", "info", "exclude"), "node_modules\n");

  const guide = await Bun.file(join(root, "src", "web", "docs", "extending.md")).text();
  const examples = guide.split(/^## (?=Add )/m).slice(1);
  const words = ["No", "One", "Two", "Three", "Four", "Five"];
  const tests = new Set<string>();
  const names = new Set<string>();
  for (const example of examples) {
    const steps = stepsOf(example);
    const touched = new Set(steps.map(({ file }) => file));
    const [title] = example.split("\n");
    expect([title, example.includes(`${words[touched.size]} files`)]).toEqual([title, true]);
    for (const step of steps) {
      const file = Bun.file(join(copy, step.file));
      await file.write(step.language === "diff" ? withDiff(await file.text(), step) : step.code);
      if (!step.file.endsWith(".test.ts")) continue;
      tests.add(step.file);
      for (const [, name = ""] of step.code.matchAll(/^\+?test\("(.+?)", /gm)) names.add(RegExp.escape(name));
    }
  }
  expect(examples.length).toBeGreaterThan(4);
  for (const command of new Set(
    [...guide.matchAll(/\d\. Run `(.+?)`(?: and `(.+?)`)?\.$/gm)].flatMap((m) => m.slice(1)),
  ))
    if (command) await run(...command.split(" "));
  await run("git", "add", "-A");
  await run("biome", "check", "--diagnostic-level=error");
  await run("tsc", "--noEmit");
  await run("bun", "test", "--timeout", "120000", "-t", [...names].join("|"), ...tests);
  await run(
    "bun",
    "test",
    "--timeout",
    "60000",
    ...["mcp", "documentation", "openapi", "rules", "grading", "slow/exchange", "contract"].map(
      (each) => `test/${each}.test.ts`,
    ),
  );
}, 300_000);
