// `bun run release:image [EXECUTABLE]`: makes container images for this machine's processor, without a container engine. By default, they contain
// the executable of `bun run release`. Needs root, apt and mmdebstrap.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { type Entry, sha256, toTarGz } from "./archives.ts";
import { findCommit } from "./compile.ts";

const root = join(import.meta.dir, "..");

/** The user of the images. Its number is fixed, because volumes keep it. */
const userId = 10_001;
const volume = "/var/lib/evald";

/** Debian packages of an image: the sandbox, what sandboxes run, and for the second image the browser. */
const packages = ["bubblewrap", "ca-certificates", "curl", "git", "ripgrep"];
const variants = { "": packages, "-chromium": [...packages, "chromium"] };

const suites = [
  "deb http://deb.debian.org/debian bookworm main",
  "deb http://deb.debian.org/debian bookworm-updates main",
  "deb http://deb.debian.org/debian-security bookworm-security main",
];

const addUser = [
  `echo "evald:x:${userId}:${userId}:evald:${volume}:/usr/sbin/nologin" >>"$1/etc/passwd"`,
  `echo "evald:x:${userId}:" >>"$1/etc/group"`,
  `install -d -m 0700 -o ${userId} -g ${userId} "$1${volume}"`,
].join(" && ");

/** A blob of an image, by its digest. */
type Blob = { digest: string; content: Uint8Array };

/** `diffId`: the digest before compression. */
type Layer = Blob & { diffId: string };

const toBlob = (content: Uint8Array): Blob => ({ digest: `sha256:${sha256(content)}`, content });
const toJsonBlob = (value: unknown): Blob => toBlob(Buffer.from(JSON.stringify(value)));

/** `compressed`: a tar file, with gzip. */
const toLayer = (compressed: Uint8Array<ArrayBuffer>): Layer => ({
  ...toBlob(compressed),
  diffId: `sha256:${sha256(Bun.gunzipSync(compressed))}`,
});

/** A Debian system with these packages as a layer. The same packages and time give the same bytes. Throws if mmdebstrap fails. */
function toBaseLayer(names: string[], seconds: number): Layer {
  const folder = mkdtempSync(join(tmpdir(), "evald-image-"));
  const file = join(folder, "base.tar");
  const leftOut = ["/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*"];
  try {
    const { success, stderr } = Bun.spawnSync(
      [
        ...["mmdebstrap", "--quiet", "--variant=essential", `--include=${names.join(",")}`],
        ...leftOut.map((path) => `--dpkgopt=path-exclude=${path}`),
        ...["--dpkgopt=path-include=/usr/share/doc/*/copyright", `--customize-hook=${addUser}`],
        ...["bookworm", file, ...suites],
      ],
      { env: { ...process.env, SOURCE_DATE_EPOCH: String(seconds) }, stderr: "pipe" },
    );
    if (!success) throw new Error(`mmdebstrap failed: ${stderr}`);
    return toLayer(Bun.gzipSync(readFileSync(file), { library: "libdeflate", level: 6 }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The configuration of an image. `Healthcheck` is Docker's addition to the format. */
function toConfig(layers: Layer[], seconds: number, commit: string | null) {
  const created = new Date(seconds * 1000).toISOString();
  return {
    created,
    architecture: process.arch === "x64" ? "amd64" : process.arch,
    os: "linux",
    config: {
      User: `${userId}:${userId}`,
      Env: [
        "PATH=/usr/local/bin:/usr/bin:/bin",
        `HOME=${volume}`,
        `EVALD_DATA_DIR=${volume}`,
        "EVALD_HOST=0.0.0.0",
        "EVALD_WELCOME=0",
      ],
      Entrypoint: ["/usr/bin/evald"],
      Cmd: ["serve"],
      WorkingDir: volume,
      Volumes: { [volume]: {} },
      ExposedPorts: { "3000/tcp": {} },
      StopSignal: "SIGTERM",
      Healthcheck: {
        Test: ["CMD", "/usr/bin/evald", "health"],
        // In nanoseconds.
        ...{ Interval: 30e9, Timeout: 3e9, StartPeriod: 60e9, Retries: 3 },
      },
      Labels: {
        "org.opencontainers.image.title": "evald",
        "org.opencontainers.image.description": manifest.description,
        "org.opencontainers.image.licenses": manifest.license,
        "org.opencontainers.image.version": manifest.version,
        ...(commit !== null && { "org.opencontainers.image.revision": commit }),
      },
    },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map((_, i) => ({ created, created_by: i === 0 ? "mmdebstrap" : "evald" })),
  };
}

const mediaType = (name: string) => `application/vnd.oci.image.${name}`;
const describe = (type: string, { digest, content }: Blob) => ({
  mediaType: mediaType(type),
  digest,
  size: content.length,
});

/** What images are made from. `tag`: the name of the first; the others add to it. */
type Parts = { executable: Uint8Array; notices: Entry[]; seconds: number; commit: string | null; tag: string };

/** Writes an OCI archive for each of these images to a folder, and returns the names of their files by tag. */
export function writeImages(parts: Parts, out: string, names = Object.keys(variants)): Record<string, string> {
  const { executable, notices, seconds, commit, tag } = parts;
  const files = [
    { path: "usr/bin/evald", content: executable, isExecutable: true },
    ...notices.map((file) => ({ ...file, path: `usr/share/doc/evald/${file.path}` })),
  ];
  const program = toLayer(toTarGz(files, seconds));
  return Object.fromEntries(
    Object.entries(variants)
      .filter(([name]) => names.includes(name))
      .map(([name, included]) => {
        const layers = [toBaseLayer(included, seconds), program];
        const config = toJsonBlob(toConfig(layers, seconds, commit));
        const image = toJsonBlob({
          ...{ schemaVersion: 2, mediaType: mediaType("manifest.v1+json") },
          config: describe("config.v1+json", config),
          layers: layers.map((layer) => describe("layer.v1.tar+gzip", layer)),
        });
        const index = toJsonBlob({
          ...{ schemaVersion: 2, mediaType: mediaType("index.v1+json") },
          manifests: [
            {
              ...describe("manifest.v1+json", image),
              // Podman reads the first name, Docker the second.
              annotations: {
                "org.opencontainers.image.ref.name": `evald:${tag}${name}`,
                "io.containerd.image.name": `docker.io/library/evald:${tag}${name}`,
              },
            },
          ],
        });
        const file = `evald-${tag}${name}-image.tar`;
        writeArchive(join(out, file), [...layers, config, image], index, seconds);
        return [`${tag}${name}`, file];
      }),
  );
}

/** Writes an image layout as one tar file, which `podman load`, `docker load` and `skopeo copy` read. */
function writeArchive(file: string, blobs: Blob[], index: Blob, seconds: number): void {
  const folder = mkdtempSync(join(tmpdir(), "evald-image-"));
  try {
    mkdirSync(join(folder, "blobs", "sha256"), { recursive: true });
    for (const { digest, content } of blobs) writeFileSync(join(folder, "blobs", digest.replace(":", "/")), content);
    writeFileSync(join(folder, "index.json"), index.content);
    writeFileSync(join(folder, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
    const uniform = [
      "--sort=name",
      "--owner=0",
      "--group=0",
      "--numeric-owner",
      "--mode=go=rX,u=rwX",
      `--mtime=@${seconds}`,
    ];
    const { success, stderr } = Bun.spawnSync(
      ["tar", "--format=ustar", ...uniform, "-C", folder, "-cf", file, "oci-layout", "index.json", "blobs"],
      { stderr: "pipe" },
    );
    if (!success) throw new Error(`tar failed: ${stderr}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The file of the release for this machine, from its archive. */
function readReleased(path: string): Buffer {
  const name = `evald-${manifest.version}-linux-${process.arch}`;
  const archive = join(root, "dist", "release", `${name}.tar.gz`);
  const { success, stdout } = Bun.spawnSync(["tar", "-xzOf", archive, `${name}/${path}`], { maxBuffer: 1e9 });
  if (!success)
    throw new Error(`${archive} doesn't contain ${path}. Make it first: bun run release linux-${process.arch}`);
  return stdout;
}

if (import.meta.main) {
  const [file] = process.argv.slice(2);
  const out = join(root, "dist", "release");
  mkdirSync(out, { recursive: true });
  const commit = findCommit();
  const seconds = commit?.seconds ?? Math.floor(statSync(join(root, "package.json")).mtimeMs / 1000);
  const executable = file === undefined ? readReleased("evald") : readFileSync(file);
  const notices = ["LICENSE", ...(file === undefined ? ["THIRD-PARTY-LICENSES.txt"] : [])].map((path) => ({
    path,
    content: file === undefined ? readReleased(path) : readFileSync(join(root, path)),
  }));
  const parts = { executable, notices, seconds, commit: commit?.id ?? null, tag: manifest.version };
  for (const [tag, name] of Object.entries(writeImages(parts, out)))
    console.log(`${name.padEnd(48)} ${(statSync(join(out, name)).size / 1e6).toFixed(1).padStart(6)} MB  evald:${tag}`);
}
