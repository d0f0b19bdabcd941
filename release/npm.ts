import { readFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { type Entry, sha256, toTarGz } from "./archives.ts";
import { fileOf, type Platform } from "./platforms.ts";

/** An executable with its platform. */
export type Built = { platform: Platform; executable: Uint8Array };

/** The name of the npm package that holds the executable for a platform. */
export const packageOf = ({ name }: Platform): string => `@evald/${name}`;

/** The name of the file of an npm package in a release. */
export const tarballOf = (name: string): string => `${name.replace("@", "").replace("/", "-")}-${manifest.version}.tgz`;

const { version, license, description } = manifest;
const common = { version, description, license };
const textOf = (value: unknown) => Buffer.from(`${JSON.stringify(value, null, 2)}\n`);

function toPackage(files: Entry[], seconds: number): Uint8Array<ArrayBuffer> {
  return toTarGz(
    files.map((file) => ({ ...file, path: `package/${file.path}` })),
    seconds,
  );
}

/** The npm package with the executable for one platform. It has no scripts, and npm installs it only there. */
export function toPlatformPackage({ platform, executable }: Built, notices: Entry[], seconds: number) {
  const { os, cpu, libc } = platform;
  const about = {
    ...{ name: packageOf(platform), ...common, os: [os], cpu: [cpu] },
    ...(libc !== null && { libc: [libc] }),
    // Yarn would keep it in an archive, from which it can't be run.
    preferUnplugged: true,
  };
  const readme = `The executable of [evald](https://www.npmjs.com/package/evald) for ${platform.name}. Install \`evald\` instead.\n`;
  return toPackage(
    [
      { path: "package.json", content: textOf(about) },
      { path: "README.md", content: Buffer.from(readme) },
      ...notices,
      { path: `bin/${fileOf(platform)}`, content: executable, isExecutable: true },
    ],
    seconds,
  );
}

/** The npm package `evald`: a launcher that finds the executable in the package of the platform, and knows the digest of each. */
export function toLauncherPackage(built: Built[], licenseFile: Entry, seconds: number) {
  const about = {
    ...{ name: manifest.name, ...common, bin: { evald: "evald.cjs" }, engines: { node: ">=18" } },
    optionalDependencies: Object.fromEntries(built.map(({ platform }) => [packageOf(platform), version])),
  };
  const digests = Object.fromEntries(built.map(({ platform, executable }) => [platform.name, sha256(executable)]));
  const launcher = readFileSync(join(import.meta.dir, "npm", "evald.cjs"));
  const readme = readFileSync(join(import.meta.dir, "npm", "readme.md"));
  return toPackage(
    [
      { path: "package.json", content: textOf(about) },
      { path: "README.md", content: readme },
      licenseFile,
      { path: "digests.json", content: textOf(digests) },
      { path: "evald.cjs", content: launcher, isExecutable: true },
    ],
    seconds,
  );
}
