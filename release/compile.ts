// `bun release/compile.ts ENTRY FILE`: builds the executable for this machine.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { compressedName, packageFiles } from "../src/lazy-packages.ts";
import { ownPlatform, type Platform } from "./platforms.ts";

const root = join(import.meta.dir, "..");

/**
 * How each executable is built. What was measured for linux-x64, beside Bun, which is 107 MB and 51 MB compressed; start: CPU time of all
 * threads until `serve` answers:
 *
 *     as here                       33 MB, 12 MB compressed, 177 ms
 *     without --minify              42 MB, 14 MB compressed, 198 ms
 *     bytecode at every depth       45 MB, 18 MB compressed, 169 ms
 *     bytecode of modules only      21 MB,  6 MB compressed, 202 ms
 *     without bytecode              14 MB,  3 MB compressed, 301 ms
 *
 * Names are kept for stack traces and error names. Bun would replace `__dirname` of packages by the folder of the build.
 */
const flags = [
  ...["--compile", "--bytecode", "--bytecode-depth=1", "--format=esm", "--splitting"],
  ...["--minify", "--keep-names"],
  // Only for WebDriver BiDi: evald controls Chromium by its own protocol.
  ...["--external=chromium-bidi", "--external=*/bidi.js"],
  ...["--no-compile-autoload-dotenv", "--no-compile-autoload-bunfig"],
  ...["--define", '__dirname="/$bunfs/root"'],
];

/** `runtime`: the file of Bun for the platform; by default, the one that runs this. `commit`: null if there is none to name. */
type Build = { entry: string; file: string; platform: Platform; runtime?: string; commit: string | null };

/** Builds an executable from the sources of this folder. Throws with what Bun says if it fails. */
export async function compile({ entry, file, platform, runtime, commit }: Build, more: string[] = []): Promise<void> {
  mkdirSync(dirname(file), { recursive: true });
  // Only the generator of migrations reads the snapshots beside them.
  const assets = mkdtempSync(join(tmpdir(), "evald-build-"));
  cpSync(join(root, "drizzle"), join(assets, "drizzle"), {
    recursive: true,
    filter: (path) => !path.endsWith("_snapshot.json"),
  });
  mkdirSync(join(assets, "package-files"));
  for (const file of packageFiles) {
    const content = readFileSync(Bun.resolveSync(file, root));
    writeFileSync(join(assets, "package-files", compressedName(file)), Bun.zstdCompressSync(content, { level: 19 }));
  }
  const command = [
    ...[process.execPath, "build", ...flags, ...more],
    ...readdirSync(assets)
      .sort()
      .map((folder) => `--asset=${join(assets, folder)}`),
    ...["--define", `EVALD_COMMIT=${JSON.stringify(commit)}`],
    ...["--define", `EVALD_PLATFORM=${JSON.stringify(platform.name)}`],
    ...(runtime === undefined ? [] : [`--target=${platform.target}`, `--compile-executable-path=${runtime}`]),
    ...[entry, "--outfile", file],
  ];
  const build = Bun.spawn(command, { cwd: root, stdout: "pipe", stderr: "pipe", stdin: "ignore" });
  const output = Promise.all([new Response(build.stdout).text(), new Response(build.stderr).text()]);
  const code = await build.exited;
  rmSync(assets, { recursive: true });
  if (code !== 0) throw new Error(`bun build failed for ${platform.name}:\n${(await output).join("")}`);
}

/** The commit of this folder, and its time in seconds since 1970; null if tracked files have changes, or without Git. */
export function findCommit(): { id: string; seconds: number } | null {
  const git = (...args: string[]) => Bun.spawnSync(["git", ...args], { cwd: root, stderr: "ignore" });
  const status = git("status", "--porcelain");
  if (!status.success || status.stdout.length > 0) return null;
  const [id = "", seconds] = git("log", "-1", "--format=%H %ct").stdout.toString().trim().split(" ");
  return { id, seconds: Number(seconds) };
}

if (import.meta.main) {
  const [entry, file] = process.argv.slice(2);
  if (!entry || !file) throw new Error("usage: bun release/compile.ts ENTRY FILE");
  await compile({ entry, file: join(process.cwd(), file), platform: ownPlatform(), commit: findCommit()?.id ?? null });
}
