import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { inferLanguage } from "../../src/agents/explorer/inferred-languages.ts";
import { parseSample } from "../../src/agents/explorer/samples.ts";
import { isShownAsWrong } from "../../src/agents/explorer/wrong-samples.ts";
import { familyOf } from "../../src/agents/languages.ts";
import { readPage } from "../../src/agents/page.ts";

const modules = join(import.meta.dir, "..", "..", "node_modules");
const docs = "/usr/share/doc";

/** Documentation on the machine: npm packages of bun.lock, and Debian packages that test/support/setup.sh installs. */
const pages: [folder: string, glob: string][] = [
  [modules, "{pino,undici,ai,elysia,bullmq,better-auth,tar,pino-std-serializers}/**/*.{md,mdx}"],
  [modules, "bun-types/docs/runtime/**/*.mdx"],
  [docs, "python-{flask,click,jinja2,requests,peewee,bottle,attr}-doc/html/*.html"],
  [docs, "nodejs/api/*.html"],
];
/** Programs, which are samples without errors. */
const programs: [language: string, folder: string, glob: string][] = [
  ["c", "/usr/include", "*.h"],
  ["cpp", "/usr/include/c++", "*/bits/*.h"],
  ["python", "/usr/lib/python3", "dist-packages/*/*.py"],
  ["ts", modules, "*/*.d.ts"],
  ["js", modules, "*/*.js"],
  ["json", modules, "*/package.json"],
];
const maxPrograms = 60;
const filesOf = (folder: string, glob: string) =>
  existsSync(folder) ? [...new Bun.Glob(glob).scanSync({ cwd: folder, onlyFiles: true })].sort() : [];

/**
 * Samples of these docs that don't parse, as a reader has confirmed: a missing comma, brace or quote, a stray `\n`, or
 * another language than the label says.
 */
const knownMistakes = new Set([
  "ai/docs/08-migration-guides/26-migration-guide-5-0.mdx",
  "ai/docs/09-troubleshooting/14-tool-calling-with-structured-outputs.mdx",
  "bun-types/docs/runtime/environment-variables.mdx",
  "nodejs/api/wasi.html",
  "pino/docs/redaction.md",
  "pino/docs/transports.md",
  "pino/docs/bundling.md",
  "pino/docs/api.md",
  "python-peewee-doc/html/querying.html",
  "undici/docs/docs/api/MockPool.md",
  "undici/docs/docs/best-practices/mocking-request.md",
]);

/** Commands are the same language, whether or not they have prompts. */
const sameLanguage = (family: string): string => (family === "session" ? "shell" : family);

test("valid samples in the docs and programs on this machine give no finding", async () => {
  const counts: Record<string, number> = {};
  const findings: string[] = [];
  const inferred = { all: 0, right: 0 };
  const judge = async (language: string, code: string, place: string) => {
    counts[language] = (counts[language] ?? 0) + 1;
    const result = await parseSample({ language, code, line: 1, isClosed: true });
    if (result?.broken) findings.push(`${place}: ${result.message}`);
    const withoutLabel = await parseSample({ language: null, code, line: 1, isClosed: true });
    if (withoutLabel?.broken) findings.push(`${place} without its label: ${withoutLabel.message}`);
    const [family, inference] = [familyOf(language), inferLanguage(code)];
    if (family === undefined || !inference?.isCertain) return;
    inferred.all++;
    if (sameLanguage(family) === sameLanguage(inference.language)) inferred.right++;
  };
  for (const [folder, glob] of pages)
    for (const path of filesOf(folder, glob)) {
      if (knownMistakes.has(path)) continue;
      const type = path.endsWith(".html") ? "text/html" : "text/markdown";
      const page = readPage(`https://docs.test/${path}`, type, await Bun.file(join(folder, path)).text());
      const delivery = { contentType: type, wrongCharset: null, followed: [], isTooDeep: false };
      for (const sample of page.samples)
        if (sample.language !== null && !isShownAsWrong({ ...page, addresses: [], delivery }, sample))
          await judge(sample.language, sample.code, `${path}:${sample.line}`);
    }
  for (const [language, folder, glob] of programs)
    for (const path of filesOf(folder, glob).slice(0, maxPrograms))
      await judge(language, await Bun.file(join(folder, path)).text(), path);
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  console.log(
    `${total} samples in ${Object.keys(counts).length} languages: ${Object.entries(counts)
      .sort(([, a], [, b]) => b - a)
      .map(([language, count]) => `${language} ${count}`)
      .join(", ")}`,
  );
  console.log(`${inferred.all} could be told without their labels, ${inferred.right} of them as labelled`);
  expect(findings).toEqual([]);
  expect(inferred.right).toBeGreaterThan(0.99 * inferred.all);
  expect(total).toBeGreaterThan(600);
  expect(Object.keys(counts).length).toBeGreaterThanOrEqual(14);
}, 300_000);
