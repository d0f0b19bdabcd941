import { closeSync, existsSync, openSync, readFileSync, readSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Bind } from "../sandbox/bubblewrap.ts";
import { isTested, type Preset } from "./preset.ts";

/** An installed agent: its command inside a sandbox, and the files to mount there. `state`: see `stateOf`. */
export type InstalledProgram = { version: string; path: string; argv: string[]; binds: Bind[]; state: string[] };

/** Files, and links to them at other paths. `state`: the state of the programs among them. */
export type ProgramFiles = { files: string[]; links: { path: string; target: string }[]; state: string[] };

/** What identifies the present content of files: it differs after a package manager has replaced or removed one of them. */
export const stateOf = (paths: string[]): string[] =>
  paths.map((path) => {
    const file = statSync(path, { throwIfNoEntry: false });
    return file && file.nlink > 0 ? `${path} ${file.dev} ${file.ino} ${file.mtimeMs}` : `${path} is gone`;
  });

/** Folder of the program inside the sandbox. */
const programFolder = "/opt/agent";
export const programBinFolder = `${programFolder}/bin`;
const systemFolder = /^\/(usr|bin|sbin|lib\w*)\//;
const semver = /(?<![\d.])\d+\.\d+\.\d+(?:-[\w.]+)?/;
const versionTimeoutMs = 10_000;

/** Finds an agent's program on a PATH, `searchPath`. `missing` says why it can't run and how to install it. */
export function findProgram(preset: Preset, searchPath: string): InstalledProgram | { missing: string } {
  const entry = which(preset.command, searchPath);
  if (entry === null) {
    const hint = preset.install === null ? "" : `; install it with: ${preset.install}`;
    return { missing: `not installed${hint}` };
  }
  const realPath = realpathSync(entry);
  const mountProblem = findMountProblem(preset.mounts);
  if (mountProblem !== null) return { missing: mountProblem };
  const modulesFolder = findModulesFolder(realPath);
  const manifest = modulesFolder === null ? null : findManifest(dirname(realPath), modulesFolder);
  if (modulesFolder !== null && !isOfPackage(preset.packageName, manifest, modulesFolder)) {
    const other = manifest?.name ?? realPath;
    return { missing: `${preset.command} on PATH belongs to ${other}, not to ${preset.packageName}` };
  }
  const program = findNativeProgram(preset, modulesFolder, manifest) ?? realPath;
  const ownBind =
    modulesFolder === null
      ? { from: program, to: `${programBinFolder}/${basename(program)}` }
      : { from: modulesFolder, to: `${programFolder}/node_modules` };
  const mounts = preset.mounts.filter((mount) => !systemFolder.test(`${mount}/`));
  const isVisible = systemFolder.test(program) || mounts.some((mount) => isBelow(program, mount));
  const pathInSandbox = isVisible ? program : program.replace(ownBind.from, ownBind.to);
  const binds = [...mounts.map((mount) => ({ from: mount, to: mount })), ...(isVisible ? [] : [ownBind])];
  const node = isNodeScript(program) ? findNode(preset, searchPath) : null;
  if (node && "missing" in node) return node;
  return {
    version: manifest?.version ?? semver.exec(realPath)?.[0] ?? findVersion(program, searchPath) ?? "unknown",
    path: entry,
    argv: node ? [node.pathInSandbox, pathInSandbox] : [pathInSandbox],
    binds: [...binds, ...(node?.binds ?? [])],
    state: stateOf([
      realPath,
      program,
      ...(manifest ? [manifest.file] : []),
      ...(node?.binds ?? []).map(({ from }) => from),
    ]),
  };
}

/**
 * Whether a program belongs to the package of its preset, or to a package that this one requires. `manifest`: of the package that contains the
 * program.
 */
const isOfPackage = (packageName: string | null, manifest: Manifest | null, modulesFolder: string): boolean =>
  packageName === null ||
  manifest?.name === packageName ||
  isRequiredBy(packageName, manifest?.name ?? "", modulesFolder);

/** The Node.js that runs the script of an agent: its path in the sandbox, and what to mount there for it. */
function findNode(
  { command, minNode }: Preset,
  searchPath: string,
): { pathInSandbox: string; binds: Bind[] } | { missing: string } {
  const node = which("node", searchPath);
  if (node === null) return { missing: `${command} needs Node.js, which is not on PATH` };
  const nodePath = realpathSync(node);
  const version = findVersion(nodePath, searchPath);
  const major = Number(/\d+/.exec(version ?? "")?.[0]);
  // A machine that is too busy to answer in time doesn't tell the version.
  if (version !== null && major < minNode)
    return { missing: `${command} needs Node.js ${minNode} or later; node on PATH is version ${major}` };
  if (systemFolder.test(nodePath)) return { pathInSandbox: nodePath, binds: [] };
  const pathInSandbox = `${programBinFolder}/node`;
  return { pathInSandbox, binds: [{ from: nodePath, to: pathInSandbox }] };
}

/** A coding agent on this machine. `detail` says why it is missing, and how to install it. */
type InstalledAgent = { id: string; name: string } & (
  | { isInstalled: true; version: string; path: string; isTested: boolean }
  | { isInstalled: false; detail: string }
);

/** Whether an agent is installed, and in which version. */
export function findInstalled(preset: Preset, searchPath: string): InstalledAgent {
  const { id, name } = preset;
  const program = findProgram(preset, searchPath);
  if ("missing" in program) return { id, name, isInstalled: false, detail: program.missing };
  const { version } = program;
  return { id, name, isInstalled: true, version, path: program.path, isTested: isTested(preset, version) };
}

/** The files outside of the system's folders that are needed to find agents on a PATH and to run them. */
export function programFilesOf(presets: Preset[], searchPath: string): ProgramFiles {
  const programs = presets.map((preset) => findProgram(preset, searchPath)).filter((program) => "argv" in program);
  const files = [...new Set(programs.flatMap(({ binds }) => binds.map(({ from }) => from)))];
  const isMounted = (file: string) => files.some((folder) => isBelow(file, folder));
  const node = which("node", searchPath);
  const entries = new Set([...programs.map((program) => program.path), ...(node === null ? [] : [node])]);
  const links = [...entries]
    .filter((entry) => !systemFolder.test(entry) && !isMounted(entry))
    .map((entry) => ({ path: entry, target: realpathSync(entry) }));
  return {
    files,
    links: links.filter(({ target }) => systemFolder.test(target) || isMounted(target)),
    state: programs.flatMap(({ state }) => state),
  };
}

/** Why a mount can't be used; null if all can. */
function findMountProblem(mounts: string[]): string | null {
  for (const mount of mounts) {
    if (!existsSync(mount)) return `${mount}, which is in its mounts, does not exist`;
    // The sandboxes of a service that runs as root belong to another user.
    const isReadable = process.getuid?.() !== 0 || (statSync(mount).mode & 0o004) !== 0;
    if (!isReadable) return `${mount}, which is in its mounts, is not readable for other users; run chmod o+rX on it`;
  }
  return null;
}

/** Whether a package requires another package beside it. Some agents have their native program in such a package. */
function isRequiredBy(packageName: string, requiredName: string, modulesFolder: string): boolean {
  try {
    const manifest = JSON.parse(readFileSync(join(modulesFolder, packageName, "package.json"), "utf8"));
    return [manifest.dependencies, manifest.optionalDependencies].some((names) => names?.[requiredName] !== undefined);
  } catch {
    return false;
  }
}

const isBelow = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);

const which = (command: string, searchPath: string): string | null => Bun.which(command, { PATH: searchPath });

/** The outermost `node_modules` around a file; null: none. */
const findModulesFolder = (path: string): string | null => /^(.*?\/node_modules)\//.exec(path)?.[1] ?? null;

type Manifest = { folder: string; file: string; name: string; version: string };

/** The package that contains a folder below `node_modules`. */
function findManifest(folder: string, modulesFolder: string): Manifest | null {
  for (let current = folder; current.length > modulesFolder.length; current = dirname(current)) {
    try {
      const file = join(current, "package.json");
      const { name, version } = JSON.parse(readFileSync(file, "utf8"));
      if (typeof name === "string" && typeof version === "string") return { folder: current, file, name, version };
    } catch {
      // Missing, or not a manifest.
    }
  }
  return null;
}

/** The native program that is started by the program on the PATH; null: there is none. It is in the same package, or in one beside it. */
function findNativeProgram({ native }: Preset, modulesFolder: string | null, manifest: Manifest | null): string | null {
  if (!native || !modulesFolder || !manifest) return null;
  return findExecutable(native, [modulesFolder, manifest.folder]);
}

/** The first executable that a pattern matches in one of the folders, or in the `node_modules` of one. */
function findExecutable(glob: string, folders: string[]): string | null {
  for (const folder of folders)
    for (const cwd of [folder, join(folder, "node_modules")])
      if (existsSync(cwd))
        for (const path of new Bun.Glob(glob).scanSync({ cwd, absolute: true })) if (which(path, "")) return path;
  return null;
}

/** The npm package that contains a file; null if it is in none. `path`: without links. */
export function findPackage(path: string): Manifest | null {
  const modulesFolder = findModulesFolder(path);
  return modulesFolder === null ? null : findManifest(dirname(path), modulesFolder);
}

/** Whether a program is a script that starts with a Python of its own. */
export const isPythonScript = (path: string): boolean => /^#!\/(?!usr\/bin|bin).*python/.test(firstLineOf(path));

function isNodeScript(path: string): boolean {
  const line = firstLineOf(path);
  return /^#!.*\bnode\b/.test(line) || (/\.[cm]?js$/.test(path) && !line.startsWith("#!"));
}

function firstLineOf(path: string): string {
  const start = Buffer.alloc(256);
  const file = openSync(path, "r");
  try {
    const read = readSync(file, start, 0, start.length, 0);
    return start.subarray(0, read).toString("latin1").split("\n")[0] ?? "";
  } finally {
    closeSync(file);
  }
}

/** Versions by program. `until`: when a program that did not answer in time is asked again, in ms of this process. */
const versions = new Map<string, { version: string | null; until: number }>();
/** A program that did not answer is asked again after this time, because asking blocks the service. */
const askAgainMs = 10 * 60_000;

/** The version that a program reports; queried once per path, or every ten minutes if it does not answer in time. */
export function findVersion(program: string, searchPath: string): string | null {
  const cached = versions.get(program);
  if (cached && performance.now() < cached.until) return cached.version;
  const { stdout, exitedDueToTimeout } = Bun.spawnSync([program, "--version"], {
    env: { PATH: searchPath, HOME: "/nonexistent" },
    cwd: "/",
    stdio: ["ignore", "pipe", "ignore"],
    timeout: versionTimeoutMs,
  });
  const version = semver.exec(stdout.toString())?.[0] ?? null;
  const isUnanswered = version === null && exitedDueToTimeout === true;
  versions.set(program, { version, until: isUnanswered ? performance.now() + askAgainMs : Number.POSITIVE_INFINITY });
  return version;
}
