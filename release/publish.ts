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

async function npm(...args: string[]): Promise<{ success: boolean; stdout: string; stderr: string }> {
  const child = Bun.spawn(["npm", ...args, `--registry=${registry}`], { stdin: "ignore", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { success: (await child.exited) === 0, stdout, stderr };
}

/** The digest that the registry has for this version of a package; null if it has none. */
async function findIntegrity(name: string): Promise<string | null> {
  const { stdout } = await npm("view", `${name}@${manifest.version}`, "dist.integrity");
  return stdout.trim() || null;
}

/** Publishes a package and checks that the registry serves the same bytes. */
async function publish(name: string): Promise<void> {
  const file = join(folder, tarballOf(name));
  const integrity = `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`;
  let served = await findIntegrity(name);
  if (served === null) {
    const { success, stderr } = await npm("publish", file, "--access=public");
    if (!success) throw new Error(`${name} was not published:\n${stderr}`);
    served = await findIntegrity(name);
  }
  if (served !== integrity)
    throw new Error(`${registry} has another ${name} ${manifest.version}: ${served ?? "none"} instead of ${integrity}`);
  console.log(`${name} ${manifest.version}`);
}

const platformPackages = platforms.map(packageOf);
const missing = [...platformPackages, manifest.name].filter((name) => !existsSync(join(folder, tarballOf(name))));
// The launcher refers to every platform.
if (missing.length > 0)
  throw new Error(`${folder} has no ${missing.join(", ")}: make the release for every platform first`);
const results = await Promise.allSettled(platformPackages.map(publish));
const reasons = results.flatMap((each) => (each.status === "rejected" ? [(each.reason as Error).message] : []));
if (reasons.length > 0) throw new Error(reasons.join("\n"));
await publish(manifest.name);
