import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };

const root = join(import.meta.dir, "..");

/** A package in the executable. `path`: its key in bun.lock, such as `a/b` for the version of b that only a uses. */
type Part = { path: string; name: string; version: string; integrity: string; license: string; needs: string[] };

type Needs = Partial<
  Record<"dependencies" | "optionalDependencies" | "peerDependencies", Record<string, string>> & {
    optionalPeers: string[];
  }
>;
type Lock = { packages: Record<string, [id: string, registry: string, needs: Needs, integrity: string]> };

export const readLock = async (): Promise<Lock> =>
  Bun.JSONC.parse(await Bun.file(join(root, "bun.lock")).text()) as Lock;
const folderOf = (path: string) => join(root, "node_modules", ...installedAt(path).split("/"));
/** `a/@b/c` of the lock file is the folder `a/node_modules/@b/c`. */
const installedAt = (path: string) => (path.match(/@[^/]+\/[^/]+|[^/]+/g) ?? []).join("/node_modules/");

let listed: Promise<Part[]> | undefined;

/** The packages that the service uses, directly or not, by name. Throws for one that is not installed. */
export const listParts = (): Promise<Part[]> => (listed ??= readParts());

async function readParts(): Promise<Part[]> {
  const { packages } = await readLock();
  const parts = new Map<string, Part>();
  /** As Node.js resolves it: the nearest one above. */
  const resolve = (from: string, name: string): string | null => {
    const steps = from === "" ? [] : (from.match(/@[^/]+\/[^/]+|[^/]+/g) ?? []);
    for (let depth = steps.length; depth >= 0; depth--) {
      const path = [...steps.slice(0, depth), name].join("/");
      if (packages[path]) return path;
    }
    return null;
  };
  const add = (path: string): void => {
    if (parts.has(path)) return;
    const [id, , needs, integrity] = packages[path] ?? [];
    if (!id || !needs || !integrity) throw new Error(`bun.lock has no version or digest of ${path}`);
    // Optional packages and optional peers are in the lock file, but not always installed.
    const names = [
      ...Object.keys(needs.dependencies ?? {}),
      ...Object.keys(needs.optionalDependencies ?? {}),
      ...Object.keys(needs.peerDependencies ?? {}).filter((name) => !needs.optionalPeers?.includes(name)),
    ];
    const found = names.map((name) => resolve(path, name)).filter((each) => each !== null);
    const installed = found.filter((each) => existsSync(folderOf(each)));
    const at = id.lastIndexOf("@");
    const [name, version] = [id.slice(0, at), id.slice(at + 1)];
    parts.set(path, { path, name, version, integrity, license: licenseOf(path), needs: installed });
    for (const each of installed) add(each);
  };
  for (const name of Object.keys(manifest.dependencies)) add(name);
  return [...parts.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

function licenseOf(path: string): string {
  const { license, licenses } = JSON.parse(readFileSync(join(folderOf(path), "package.json"), "utf8"));
  const named = license ?? licenses;
  const of = (each: string | { type: string }) => (typeof each === "string" ? each : each.type);
  // This name is not in the SPDX list.
  if (named === "BSD-0-Clause") return "0BSD";
  if (named) return (Array.isArray(named) ? named.map(of) : [of(named)]).join(" OR ");
  throw new Error(`${path} names no license in its package.json`);
}

const purlOf = ({ name, version }: Pick<Part, "name" | "version">) => `pkg:npm/${name.replace("@", "%40")}@${version}`;

/** A library in Bun. `license`: its SPDX identifier; otherwise `licenseName`, in the words of Bun's license page, if that names it. */
type Library = { name: string; repository?: string; license?: string; licenseName?: string };

/**
 * The libraries in Bun, which have advisories of their own, by their name in `process.versions`: where Bun's build takes their source from,
 * and their license. Bun states the version or the commit of each.
 */
const bunLibraries: Record<string, Library> = {
  ares: { name: "c-ares", repository: "c-ares/c-ares", license: "MIT" },
  boringssl: { name: "boringssl", repository: "oven-sh/boringssl", licenseName: "several licenses" },
  icu: { name: "icu", licenseName: "ICU license" },
  libarchive: { name: "libarchive", repository: "libarchive/libarchive", licenseName: "several licenses" },
  libdeflate: { name: "libdeflate", repository: "ebiggers/libdeflate", license: "MIT" },
  llhttp: { name: "llhttp" },
  lolhtml: { name: "lol-html", repository: "cloudflare/lol-html", license: "BSD-3-Clause" },
  lshpack: { name: "ls-hpack", repository: "litespeedtech/ls-hpack", license: "MIT" },
  mimalloc: { name: "mimalloc", repository: "oven-sh/mimalloc", license: "MIT" },
  picohttpparser: { name: "picohttpparser", repository: "h2o/picohttpparser", licenseName: "Perl License or MIT" },
  sqlite: { name: "sqlite", licenseName: "public domain" },
  tinycc: { name: "tinycc", repository: "oven-sh/tinycc", licenseName: "LGPL v2.1" },
  uv: { name: "libuv", license: "MIT" },
  // A fork within Bun: its commit is that of Bun.
  uwebsockets: { name: "uWebSockets", repository: "oven-sh/bun", license: "Apache-2.0" },
  webkit: { name: "JavaScriptCore", repository: "oven-sh/WebKit", licenseName: "LGPL-2" },
  zlib: { name: "zlib-ng", repository: "zlib-ng/zlib-ng", license: "Zlib" },
  zstd: { name: "zstd", repository: "facebook/zstd", licenseName: "BSD License or GPLv2" },
};

/** Those on Bun's license page whose version Bun doesn't state. */
const bunLibrariesWithoutVersion: Library[] = [
  { name: "base64", repository: "aklomp/base64", license: "BSD-2-Clause" },
  { name: "brotli", repository: "google/brotli", license: "MIT" },
  { name: "HdrHistogram_c", repository: "HdrHistogram/HdrHistogram_c", licenseName: "CC0 1.0 or BSD 2-Clause" },
  { name: "highway", repository: "google/highway", license: "Apache-2.0" },
  { name: "libjpeg-turbo", repository: "libjpeg-turbo/libjpeg-turbo", licenseName: "BSD 3-Clause / IJG / zlib" },
  { name: "libspng", repository: "randy408/libspng", license: "BSD-2-Clause" },
  { name: "libwebp", repository: "webmproject/libwebp", license: "BSD-3-Clause" },
  { name: "ls-qpack", repository: "litespeedtech/ls-qpack", license: "MIT" },
  { name: "lsquic", repository: "litespeedtech/lsquic", license: "MIT" },
  { name: "simdutf", repository: "simdutf/simdutf", license: "Apache-2.0" },
];

/** Names in `process.versions` that are no library: Bun itself, interfaces that it provides, its compilers, and the part of uWebSockets with the same commit. */
const notInBun = ["bun", "node", "modules", "napi", "openssl", "unicode", "v8", "typescript", "zig", "usockets"];

/** The libraries in Bun as components. Throws for one that isn't listed above, such as a new one. */
function bunParts() {
  const versions = Object.entries(process.versions).filter(([key]) => !notInBun.includes(key));
  const withVersion = versions.map(([key, version = ""]) => {
    const library = bunLibraries[key];
    if (!library) throw new Error(`Bun contains ${key}, which the bill of materials doesn't know`);
    return toBunPart(library, version);
  });
  return [...withVersion, ...bunLibrariesWithoutVersion.map((library) => toBunPart(library))];
}

function toBunPart({ name, repository, license, licenseName }: Library, version?: string) {
  const licenses = license ? [{ license: { id: license } }] : licenseName ? [{ license: { name: licenseName } }] : [];
  return {
    name,
    ...(version !== undefined && { version }),
    ...(licenses.length > 0 && { licenses }),
    purl: `pkg:${repository ? `github/${repository}` : `generic/${name}`}${version === undefined ? "" : `@${version}`}`,
  };
}

/** How we changed a package, which CycloneDX calls its pedigree. */
function toPedigree({ name, version }: Pick<Part, "name" | "version">) {
  const patches: Record<string, string> = manifest.patchedDependencies;
  const file = patches[`${name}@${version}`];
  if (file === undefined) return {};
  const content = readFileSync(join(root, file)).toString("base64");
  const diff = { text: { contentType: "text/x-diff", encoding: "base64", content } };
  return { pedigree: { patches: [{ type: "unofficial", diff }] } };
}

/** Bun is the runtime inside the executable. */
const bun = { name: "bun", version: manifest.devDependencies.bun, license: "MIT" };

/**
 * A bill of materials of the executable in the format CycloneDX 1.6. The same lock file and commit give the same text: its serial number
 * stands for them. `commit`: what the executable was built from; without it, the bill has no time.
 */
export async function toSbom(commit: { id: string; seconds: number } | null) {
  const parts = await listParts();
  const byPath = new Map(parts.map((part) => [part.path, part]));
  const own = `pkg:generic/${manifest.name}@${manifest.version}`;
  const licensed = (expression: string) => [
    /[ ()]/.test(expression) ? { expression } : { license: { id: expression } },
  ];
  // A version that several packages use is one component.
  const unique = [...Map.groupBy(parts, purlOf).values()].map(([part]) => part!);
  const refs = (paths: string[]) => [...new Set(paths.map((path) => purlOf(byPath.get(path)!)))].sort();
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: toSerialNumber(JSON.stringify([commit?.id ?? null, parts])),
    version: 1,
    metadata: {
      ...(commit && { timestamp: new Date(commit.seconds * 1000).toISOString() }),
      component: {
        ...{ type: "application", "bom-ref": own, name: manifest.name, version: manifest.version },
        ...{ licenses: licensed(manifest.license), purl: own },
      },
    },
    components: [
      ...unique.map((part) => ({
        ...{ type: "library", "bom-ref": purlOf(part), name: part.name, version: part.version },
        hashes: [
          { alg: "SHA-512", content: Buffer.from(part.integrity.replace("sha512-", ""), "base64").toString("hex") },
        ],
        ...{ licenses: licensed(part.license), purl: purlOf(part) },
        ...toPedigree(part),
      })),
      ...bunParts().map((part) => ({ type: "library", "bom-ref": part.purl, ...part })),
      {
        ...{ type: "platform", "bom-ref": purlOf(bun), name: bun.name, version: bun.version },
        ...{ licenses: licensed(bun.license), purl: purlOf(bun) },
      },
    ],
    dependencies: [
      { ref: own, dependsOn: [...refs(Object.keys(manifest.dependencies)), purlOf(bun)] },
      ...unique.map((part) => ({ ref: purlOf(part), dependsOn: refs(part.needs) })),
      { ref: purlOf(bun), dependsOn: bunParts().map(({ purl }) => purl) },
    ],
  };
}

/** A UUID that stands for a text: version 8 of RFC 9562. */
function toSerialNumber(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ];
  return `urn:uuid:${parts.join("-")}`;
}

/** The licenses of all packages in the executable, with their texts, which most of them require to be passed on. */
export async function toNotices(): Promise<string> {
  const parts = [...Map.groupBy(await listParts(), purlOf).values()].map(([part]) => part!);
  const rows = parts.map(({ path, name, version, license }) => {
    const folder = folderOf(path);
    const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
    const texts = files.map((file) => readFileSync(join(folder, file), "utf8").trim());
    return `${name} ${version}\nLicense: ${license}\n\n${texts.join("\n\n")}`.trim();
  });
  const line = `\n\n${"-".repeat(80)}\n\n`;
  const about = `evald ${manifest.version} contains these packages, and Bun ${bun.version} (MIT; https://bun.com/docs/project/licensing lists what Bun contains).`;
  return `${[about, ...rows].join(line)}\n`;
}
