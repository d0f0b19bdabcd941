import { version } from "../../package.json" with { type: "json" };
import { commit, platform } from "../build.ts";
import { findInstallation } from "./installation.ts";

const linuxLibc = platform?.endsWith("-musl") ? "musl" : "glibc";
/** The C library that the executable needs; null on platforms with only one, and when running from source. */
const libc = platform?.startsWith("linux") ? linuxLibc : null;

/** Whether a command line asks only for the version. */
export const isVersionRequest = (argv: string[]): boolean =>
  argv.some((word) => word === "--version" || word === "-V") &&
  argv.every((word) => ["--version", "-V", "--json"].includes(word));

/** Prints the version. With `--json`, it also prints a few facts about this program, for a bug report. */
export function printVersion(argv: string[]): void {
  if (!argv.includes("--json")) {
    process.stdout.write(`${version}\n`);
    return;
  }
  const about = {
    version,
    commit,
    runtime: `bun ${Bun.version}`,
    platform: `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`,
    libc,
    installedWith: findInstallation().method,
  };
  process.stdout.write(`${JSON.stringify(about, null, 2)}\n`);
}
