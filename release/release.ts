// `bun run release [PLATFORM…]`: makes the files of a release in `dist/release`, by default for every platform. It publishes nothing.
//
//   RELEASE_URL    the folder that the files will be published in; without it there is no Homebrew formula
//   MINISIGN_SECRET_KEY  the file of a minisign key without password; without it the release is not signed
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { type Entry, sha256, toTarGz, toZip } from "./archives.ts";
import { toNotices, toSbom } from "./bill-of-materials.ts";
import { findCommit } from "./compile.ts";
import { architectureOf, packageFileOf, toDebianPackage } from "./debian.ts";
import { buildExecutable } from "./executable.ts";
import { toFormula } from "./formula.ts";
import { type Built, packageOf, tarballOf, toLauncherPackage, toPlatformPackage } from "./npm.ts";
import { fileOf, type Platform, platformNamed, platforms } from "./platforms.ts";

const root = join(import.meta.dir, "..");
const out = join(root, "dist", "release");
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

/** Writes a file of the release, and says how large it is. */
function write(name: string, content: Uint8Array | string, note = ""): void {
  writeFileSync(join(out, name), content, { mode: name.endsWith(".sh") ? 0o755 : 0o644 });
  console.log(`${name.padEnd(48)} ${megabytes(Buffer.byteLength(content)).padStart(9)}${note && `  ${note}`}`);
}

/** The name of the archive for a platform. */
const archiveOf = ({ name, os }: Platform) => `evald-${manifest.version}-${name}.${os === "win32" ? "zip" : "tar.gz"}`;

/** Builds one platform, and writes its archive, source maps and npm package. */
async function releasePlatform(platform: Platform, commit: Commit, notices: Entry[]): Promise<Built> {
  const { executable, maps, runtimeBytes } = await buildExecutable(platform, commit.id);
  const folder = `evald-${manifest.version}-${platform.name}`;
  const files = [{ path: fileOf(platform), content: executable, isExecutable: true }, ...notices];
  const entries = files.map((file) => ({ ...file, path: `${folder}/${file.path}` }));
  const note = `executable ${megabytes(executable.length)}, ${megabytes(executable.length - runtimeBytes)} more than Bun`;
  write(archiveOf(platform), (platform.os === "win32" ? toZip : toTarGz)(entries, commit.seconds), note);
  const mapFiles = maps.map((file) => ({ ...file, path: `${folder}-maps/${file.path}` }));
  write(`${folder}-maps.tar.gz`, toTarGz(mapFiles, commit.seconds));
  const built = { platform, executable };
  write(tarballOf(packageOf(platform)), toPlatformPackage(built, notices, commit.seconds));
  releaseDebian(built, notices, commit);
  return built;
}

/** Writes the Debian package of a platform that has one, if this machine can make it. */
function releaseDebian(built: Built, notices: Entry[], commit: Commit): void {
  const architecture = architectureOf(built.platform);
  if (architecture === null) return;
  if (Bun.which("dpkg-deb")) write(packageFileOf(architecture), toDebianPackage(built, notices, commit.seconds));
  else console.log(`No Debian package for ${architecture}: dpkg-deb is not installed.`);
}

type Commit = NonNullable<ReturnType<typeof findCommit>>;

/** The install script, with the digest of each archive inside. */
function toInstallScript(url: string, released: Platform[], digestOf: (name: string) => string): string {
  const cases = released
    .filter(({ os }) => os !== "win32")
    .map((platform) => `    ${platform.name}) echo ${digestOf(archiveOf(platform))} ;;`);
  return readFileSync(join(import.meta.dir, "install.sh"), "utf8")
    .replaceAll("@VERSION@", manifest.version)
    .replace("@URL@", url)
    .replace("    # @DIGESTS@", cases.join("\n"));
}

/** Signs the list of digests with minisign, if the environment has a key, and says what was done. */
function sign(commit: Commit): void {
  const key = process.env.MINISIGN_SECRET_KEY;
  if (!key) {
    console.log("Not signed: MINISIGN_SECRET_KEY is not set.");
    return;
  }
  // The default comment has the time of signing.
  const comment = `evald ${manifest.version} ${commit.id}`;
  const { success, stderr } = Bun.spawnSync(
    ["minisign", "-S", "-W", "-s", key, "-m", join(out, "SHA256SUMS"), "-t", comment, "-c", `signature of ${comment}`],
    { stdin: "ignore", stderr: "pipe" },
  );
  if (!success) throw new Error(`minisign failed: ${stderr}`);
  console.log("Signed SHA256SUMS with minisign.");
}

async function release(names: string[]): Promise<void> {
  const commit = findCommit();
  if (!commit) throw new Error("A release is made from a commit: commit or remove the changes in this folder first.");
  const url = process.env.RELEASE_URL?.replace(/\/+$/, "") ?? "";
  const selected = names.length === 0 ? platforms : names.map(platformNamed);
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const license = { path: "LICENSE", content: readFileSync(join(root, "LICENSE")) };
  const notices = [license, { path: "THIRD-PARTY-LICENSES.txt", content: Buffer.from(await toNotices()) }];
  const built: Built[] = [];
  for (const platform of selected) {
    try {
      built.push(await releasePlatform(platform, commit, notices));
    } catch (error) {
      throw new Error(`There is no release, because ${platform.name} failed.`, { cause: error });
    }
  }
  write(tarballOf(manifest.name), toLauncherPackage(built, license, commit.seconds));
  write(`evald-${manifest.version}.cdx.json`, `${JSON.stringify(await toSbom(commit), null, 2)}\n`);
  write("THIRD-PARTY-LICENSES.txt", notices[1]?.content ?? "");
  write("latest.json", `${JSON.stringify({ version: manifest.version, commit: commit.id })}\n`);
  const digestOf = (name: string) => sha256(readFileSync(join(out, name)));
  write("install.sh", toInstallScript(url, [...selected], digestOf));
  if (url === "" || selected.length < platforms.length)
    console.log("No Homebrew formula: it needs RELEASE_URL and every platform.");
  else
    write(
      "evald.rb",
      toFormula(url, (name) => digestOf(archiveOf(platformNamed(name)))),
    );
  const files = [...new Bun.Glob("*").scanSync(out)].sort();
  write("SHA256SUMS", files.map((name) => `${digestOf(name)}  ${name}\n`).join(""));
  sign(commit);
}

if (!existsSync(join(root, "node_modules")))
  throw new Error("Install the packages first: bun install --frozen-lockfile");
await release(process.argv.slice(2));
