import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { isCompiled } from "../build.ts";

const methods = [
  "source",
  "npx",
  "npm",
  "pnpm",
  "yarn",
  "bun",
  "homebrew",
  "debian",
  "container",
  "script",
  "archive",
] as const;

/** How evald was installed. `archive`: unpacked from an archive, or built by hand. */
type Method = (typeof methods)[number];

/** `command`: the command that upgrades evald; null if this process can't know the command. `hint`: what to do in that case. */
export type Installation = { method: Method; command: string | null; hint: string | null };

/** Finds out how this program was installed, from the location of its file. It runs nothing. */
export function findInstallation(): Installation {
  if (!isCompiled) return by("source", "git pull && bun install --frozen-lockfile");
  const file = realpathSync(process.execPath).replaceAll("\\", "/");
  if (file.includes("/node_modules/@evald/")) return byPackageManager(file);
  if (file.includes("/Cellar/evald/")) return by("homebrew", "brew upgrade evald");
  if (file === "/usr/bin/evald" && existsSync("/var/lib/dpkg/info/evald.list"))
    return {
      method: "debian",
      command: null,
      hint: `Download the package of the new version, and install it: sudo apt-get install ./evald_VERSION_${process.arch === "x64" ? "amd64" : "arm64"}.deb`,
    };
  // The install script stores the URL that it was downloaded from.
  const source = join(dirname(file), "..", "share", "evald", "install-url");
  if (existsSync(source)) return by("script", `curl -fsSL ${readFileSync(source, "utf8").trim()} | sh`);
  // Checked last, because somebody may have installed evald by one of the other methods in a container of their own.
  if (existsSync("/.dockerenv") || existsSync("/run/.containerenv"))
    return {
      method: "container",
      command: null,
      hint: "Pull the image of the new version and start the container again.",
    };
  return { method: "archive", command: null, hint: `Replace ${file} by the one in the archive of the new version.` };
}

const by = (method: Method, command: string): Installation => ({ method, command, hint: null });

/** The path of the package shows which package manager installed it, and whether it is installed globally. */
function byPackageManager(file: string): Installation {
  if (file.includes("/_npx/")) return by("npx", "npx evald@latest");
  // Yarn keeps the package in a folder without other files of the project.
  if (file.includes("/.yarn/unplugged/"))
    return by("yarn", /\/dlx-/.test(file) ? "yarn dlx evald@latest" : "yarn add evald@latest");
  if (/\/dlx[-/]/.test(file)) return by("pnpm", "pnpm dlx evald@latest");
  if (/\/\.?bunx-/.test(file)) return by("bun", "bunx evald@latest");
  if (file.includes("/node_modules/.pnpm/"))
    return by("pnpm", `pnpm add ${/\/pnpm\/(global|.*\/global)\//.test(file) ? "--global " : ""}evald@latest`);
  if (file.includes("/.bun/install/global/")) return by("bun", "bun add --global evald@latest");
  if (/\/yarn\/global\//.test(file)) return by("yarn", "yarn global add evald@latest");
  if (/\/lib\/node_modules\/|\/npm\/node_modules\//.test(file)) return by("npm", "npm install --global evald@latest");
  const project = file.slice(0, file.indexOf("/node_modules/"));
  if (existsSync(join(project, "yarn.lock"))) return by("yarn", "yarn add evald@latest");
  if (existsSync(join(project, "bun.lock"))) return by("bun", "bun add evald@latest");
  return by("npm", "npm install evald@latest");
}
