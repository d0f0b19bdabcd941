import { readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { join } from "node:path";
import type { Command } from "commander";
import { codeOf } from "../db/fault.ts";
import { badRequest } from "../errors.ts";
import { print } from "./terminal.ts";

/** Adds `stack`, which names the source lines for a stack trace from a log. */
export function addStack(program: Command): void {
  program
    .command("stack")
    .description("Read a log or stack trace from stdin, and print it with the source file and line of each position")
    .requiredOption(
      "--maps <folder>",
      "Folder with the source maps of this version, from the archive evald-VERSION-PLATFORM-maps.tar.gz",
    )
    .addHelpText("after", "\nExample:\n  evald stack --maps evald-1.0.0-linux-x64-maps < evald.log")
    .action(async ({ maps }: { maps: string }) => print(toSourceLines(await Bun.stdin.text(), maps).trimEnd()));
}

/** The folder of bundles in the executable. The second path is for Windows. */
const bundleFolder = /\/\$bunfs\/root\/|B:[\\/]~BUN[\\/]root[\\/]/;
/** A position in the executable: bundle, line and column, such as `/$bunfs/root/main-1a2b3c4d.js:1:2345`. */
const position = new RegExp(`(?:${bundleFolder.source})([\\w.-]+?)(?:\\.js)?:(\\d+):(\\d+)`, "g");

/**
 * Replaces positions in the executable with positions in the source. A position without a source map stays unchanged. Throws bad_request if there is
 * no source map at all.
 */
function toSourceLines(text: string, folder: string): string {
  const maps = new Map<string, SourceMap | null>();
  const mapOf = (name: string): SourceMap | null => {
    if (!maps.has(name)) maps.set(name, readMap(folder, name));
    return maps.get(name) ?? null;
  };
  const lines = text.replace(position, (whole, name: string, line: string, column: string) => {
    // Stack traces count from 1, source maps from 0.
    const entry = mapOf(name)?.findEntry(Number(line) - 1, Number(column) - 1);
    if (!entry || !("originalSource" in entry)) return whole;
    return `${entry.originalSource}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  });
  if (maps.size > 0 && [...maps.values()].every((map) => map === null))
    throw badRequest(
      `${folder} has no source maps of the executable in this stack trace. Use those of its version and platform.`,
    );
  return lines;
}

function readMap(folder: string, name: string): SourceMap | null {
  for (const file of [`${name}.js.map`, `${name}.map`]) {
    try {
      return new SourceMap(JSON.parse(readFileSync(join(folder, file), "utf8")) as SourceMapPayload);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
    }
  }
  return null;
}
