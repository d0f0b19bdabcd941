// `bun release/publish.ts REGISTRY`: publishes the npm packages of `dist/release` to a registry, with the credentials that npm has for it.
// The platforms come first, and the launcher only once the registry serves each of them: Yarn fails, and npm installs nothing that runs, if
// one is missing. Packages that are there already are skipped, so it can be repeated.
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { packageOf, tarballOf } from "./npm.ts";
import { platforms } from "./platforms.ts";

const [registry, folder = join(import.meta.dir, "..", "dist", "release")] = process.argv.slice(2);
if (!registry || !URL.canParse(registry)) throw new Error("usage: bun release/publish.ts REGISTRY [FOLDER]");

const npm = (...args: string[]) =>
  Bun.spawnSync(["npm", ...args, `--registry=${registry}`], { stdin: "ignore", stderr: "pipe" });

/** The digest that the registry has for this version of a package; null if it has none. */
function integrityOf(name: string): string | null {
  const { stdout } = npm("view", `${name}@${manifest.version}`, "dist.integrity");
  return stdout.toString().trim() || null;
}

/** Publishes a package and checks that the registry serves the same bytes. */
function publish(name: string): void {
  const file = join(folder, tarballOf(name));
  const integrity = `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`;
  if (integrityOf(name) === null) {
    const { success, stderr } = npm("publish", file, "--access=public");
    if (!success) throw new Error(`${name} was not published:\n${stderr}`);
  }
  const served = integrityOf(name);
  if (served !== integrity)
    throw new Error(`${registry} has another ${name} ${manifest.version}: ${served ?? "none"} instead of ${integrity}`);
  console.log(`${name} ${manifest.version}`);
}

const names = [...platforms.map(packageOf), manifest.name];
const missing = names.filter((name) => !existsSync(join(folder, tarballOf(name))));
// The launcher refers to every platform.
if (missing.length > 0)
  throw new Error(`${folder} has no ${missing.join(", ")}: make the release for every platform first`);
for (const name of names) publish(name);
