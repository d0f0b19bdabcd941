import { expect, test } from "bun:test";
import { join } from "node:path";
import { CHECK_WEIGHTS } from "afdocs/scoring";
import { conventions } from "../src/grading/findings/catalogue.ts";
import { findingKinds } from "../src/grading/findings/finding-kinds.ts";
import { docFile, partOf } from "./support/generated.ts";
import { kindIdOf, kindIdOfTitle } from "./truth/foreign/kinds.ts";
import { readMeasurements } from "./truth/foreign/measurements.ts";
import { rounds } from "./truth/foreign/rounds.ts";

const ids = findingKinds.map(({ id }) => id);

test("the documentation lists every kind of finding once, and no other", async () => {
  const part = partOf(await Bun.file(docFile("explorer.md")).text(), "findings");
  const listed = [...part.matchAll(/^\| ([^|]+) \| (?:critical|high|medium|low) \|/gm)].map(([, title]) => title ?? "");
  expect(listed.toSorted()).toEqual(findingKinds.map(({ title }) => title).toSorted());
  for (const convention of conventions.values()) expect(part).toContain(convention);
});

test("no two kinds have the same ID or title, and a title leads to its kind", () => {
  expect(new Set(ids).size).toBe(ids.length);
  for (const { id, title } of findingKinds) expect([title, kindIdOfTitle(`${title}: /page`)]).toEqual([title, id]);
});

test("every check of the explorer has a kind", async () => {
  const folder = join(import.meta.dir, "..", "src", "agents", "explorer");
  const sources = [...new Bun.Glob("*.ts").scanSync(folder)].map((file) => Bun.file(join(folder, file)).text());
  const own = (await Promise.all(sources)).flatMap((source) =>
    [...source.matchAll(/(?:\bid: |failure\(\s*)"([a-z]+(?:-[a-z]+)+)"/g)].map(([, id]) => id ?? ""),
  );
  // Never a finding: it says what was not checked.
  const checks = new Set([...own, ...Object.keys(CHECK_WEIGHTS)].filter((id) => id !== "sample-language-parsable"));
  expect(checks.size).toBeGreaterThan(40);
  expect([...checks].filter((id) => !ids.includes(id) && !conventions.has(id))).toEqual([]);
});

test("every planted and every measured defect has a kind, or none on purpose", async () => {
  const { kinds, clean } = await readMeasurements();
  const defects = new Set([...rounds.flatMap((round) => Object.keys(round.defects)), ...Object.keys(kinds)]);
  expect([...defects].filter((defect) => kindIdOf(defect) === undefined)).toEqual([]);
  const known = [...defects].flatMap((defect) => kindIdOf(defect) ?? []);
  expect([...known, ...Object.keys(clean?.kinds ?? {})].filter((id) => id !== "other" && !ids.includes(id))).toEqual(
    [],
  );
});
