// `bun run release:check TAG`: checks that a tag may become a release. Exits with 1 and says why, if it may not.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };

/** Why a tag must not be released from these files; empty: it may. `root`: the folder of the project. */
export function findTagProblems(tag: string, root: string): string[] {
  const { version } = manifest;
  const heading = readFileSync(join(root, "CHANGELOG.md"), "utf8")
    .split("\n")
    .find((line) => line.startsWith(`## ${version} `));
  return [
    ...(tag === `v${version}` ? [] : [`The tag ${tag} is not v${version}, the version of package.json.`]),
    ...(heading !== undefined && /\d{4}-\d{2}-\d{2}$/.test(heading)
      ? []
      : [`CHANGELOG.md has no section for ${version} with a date: ## ${version} – YYYY-MM-DD`]),
    ...(existsSync(join(root, "test", "fixtures", "databases", `${version}.db.gz`))
      ? []
      : [`There is no database of ${version} for the tests of upgrades. Run bun run db:keep and commit its file.`]),
  ];
}

if (import.meta.main) {
  const problems = findTagProblems(process.argv[2] ?? "", join(import.meta.dir, ".."));
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exit(1);
}
