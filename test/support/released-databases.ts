import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { version } from "../../package.json" with { type: "json" };
import { testApp } from "./app.ts";
import { niceGrade, runWithReport } from "./reports.ts";

/** A small database of each released version, which every later version must upgrade. */
const releasedFolder = join(import.meta.dir, "..", "fixtures", "databases");

/** The files of released databases, oldest first. */
export const listReleasedDatabases = (folder = releasedFolder): string[] =>
  [...(existsSync(folder) ? new Bun.Glob("*.db.gz").scanSync(folder) : [])]
    .sort((a, b) => Bun.semver.order(a.replace(".db.gz", ""), b.replace(".db.gz", "")))
    .map((name) => join(folder, name));

/** Writes the database of a released version to a data folder. */
export const unpackDatabase = (file: string, dataDir: string): void =>
  writeFileSync(join(dataDir, "evald.db"), gunzipSync(readFileSync(file)));

/** Keeps a database of this version, with a run and its report. Throws if there is one: what was released doesn't change. */
export function keepDatabase(folder = releasedFolder): string {
  const app = testApp();
  runWithReport(app, niceGrade);
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${version}.db.gz`);
  writeFileSync(file, gzipSync(app.db.$client.serialize(), { level: 9 }), { flag: "wx" });
  return file;
}

if (import.meta.main) console.log(keepDatabase());
