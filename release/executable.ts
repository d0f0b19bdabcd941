import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Entry } from "./archives.ts";
import { compile } from "./compile.ts";
import { checkMachO, signMachO } from "./mach-o.ts";
import { fileOf, type Platform } from "./platforms.ts";
import { fetchRuntime } from "./runtimes.ts";

const root = join(import.meta.dir, "..");

/** What is built for a platform. `maps`: the source maps of its modules. */
export type Build = { executable: Uint8Array; maps: Entry[]; runtimeBytes: number };

/** Builds the executable for a platform. Throws if it isn't as it must be to run there. */
export async function buildExecutable(platform: Platform, commit: string): Promise<Build> {
  const runtime = await fetchRuntime(platform);
  const folder = mkdtempSync(join(tmpdir(), "evald-release-"));
  try {
    const build = { entry: "src/main.ts", platform, runtime, commit };
    const file = join(folder, "executable", fileOf(platform));
    await compile({ ...build, file });
    // Bun embeds the maps that it writes, which are 11 MB. They are the same for the executable without them.
    const mapped = join(folder, "maps");
    await compile({ ...build, file: join(mapped, fileOf(platform)) }, ["--sourcemap=external"]);
    const maps = readdirSync(mapped)
      .filter((name) => name.endsWith(".map"))
      .sort()
      .map((name) => ({ path: name, content: readFileSync(join(mapped, name)) }));
    const executable = platform.os === "darwin" ? signMachO(readFileSync(file), "evald") : readFileSync(file);
    check(platform, executable);
    return { executable, maps, runtimeBytes: readFileSync(runtime).length };
  } finally {
    rmSync(folder, { recursive: true, force: true });
    rmSync(join(runtime, "..", "..", ".."), { recursive: true, force: true });
  }
}

/** Throws for a file that has another format, a wrong signature, or the path of the folder that it was built in. */
function check({ name, os, cpu }: Platform, executable: Uint8Array): void {
  const bytes = Buffer.from(executable.buffer, executable.byteOffset, executable.byteLength);
  const isFormat = {
    linux: () => bytes.readUInt32BE(0) === 0x7f454c46 && bytes.readUInt16LE(18) === (cpu === "x64" ? 62 : 183),
    darwin: () => bytes.readUInt32LE(4) === (cpu === "x64" ? 0x01000007 : 0x0100000c),
    win32: () => bytes.toString("latin1", 0, 2) === "MZ" && bytes.readUInt16LE(bytes.readUInt32LE(60) + 4) === 0x8664,
  };
  if (!isFormat[os]()) throw new Error(`the executable for ${name} is not one for ${os} on ${cpu}`);
  if (os === "darwin") {
    const { identifier, wrong, pages } = checkMachO(executable);
    if (identifier !== "evald" || wrong > 0)
      throw new Error(
        `the signature for ${name} has the identifier ${identifier} and ${wrong} of ${pages} pages wrong`,
      );
  }
  for (const path of [root, tmpdir() === "/tmp" ? "/tmp/evald-" : tmpdir()])
    if (bytes.includes(path)) throw new Error(`the executable for ${name} contains ${path}, where it was built`);
}
