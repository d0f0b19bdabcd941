import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { Glob } from "bun";

/**
 * Writes a migration from `src/db/tables/`: with `--name NAME` the next one, without it the first release again, which may change until it
 * is released. Triggers are written by hand below the first comment of its file; drizzle-kit doesn't know them, so they are kept.
 */

const first = "drizzle/0000_first-release.sql";
const args = process.argv.slice(2);
const isFirst = !args.includes("--name");

let triggers = "";
if (isFirst) {
  const text = readFileSync(first, "utf8");
  const start = text.search(/^-- /m);
  if (start < 0) throw new Error(`${first} has no comment above its triggers.`);
  triggers = text.slice(start);
  rmSync("drizzle", { recursive: true });
}
const options = ["--dialect", "sqlite", "--schema", "src/db/tables", "--out", "drizzle"];
const name = isFirst ? ["--name", "first-release"] : [];
const { exitCode } = Bun.spawnSync(["drizzle-kit", "generate", ...options, ...name, ...args], {
  stdio: ["inherit", "inherit", "inherit"],
});
if (exitCode !== 0) process.exit(exitCode);
for (const path of new Glob("drizzle/*.sql").scanSync())
  writeFileSync(path, readFileSync(path, "utf8").replaceAll(/^\);$/gm, ") STRICT;"));
if (triggers !== "")
  writeFileSync(first, `${readFileSync(first, "utf8").trimEnd()}--> statement-breakpoint\n${triggers}`);
