import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import type { Entry } from "./archives.ts";
import { toManPage } from "./man-page.ts";
import type { Built } from "./npm.ts";
import type { Platform } from "./platforms.ts";

const sources = join(import.meta.dir, "debian");
const revision = `${manifest.version}-1`;
/** As other tools of Debian find it. */
const { DEBFULLNAME: name = "evald developers", DEBEMAIL: email = "evald@localhost" } = process.env;
const maintainer = `${name} <${email}>`;

/** The architecture of Debian for a platform; null if there is no package for it. */
export const architectureOf = ({ os, cpu, libc }: Platform): string | null =>
  os === "linux" && libc === "glibc" ? { x64: "amd64", arm64: "arm64" }[cpu] : null;

/** The name of a package's file. */
export const packageFileOf = (architecture: string): string => `evald_${revision}_${architecture}.deb`;

const control = (architecture: string, kilobytes: number) => `Package: evald
Version: ${revision}
Architecture: ${architecture}
Maintainer: ${maintainer}
Installed-Size: ${kilobytes}
Depends: adduser, libc6 (>= 2.17)
Recommends: bubblewrap (>= 0.8.0), ca-certificates, curl, git
Suggests: caddy, chromium, redis-server, ripgrep
Section: devel
Priority: optional
Description: ${manifest.description.replace(/^M/, "m")}
 evald sends an agent to do a task with the documentation and the product of a
 developer tool, records every step, and grades the session into a report:
 where the agent got stuck, the evidence, and what to fix first.
`;

const changelog = (seconds: number) => `evald (${revision}) unstable; urgency=medium

  * See CHANGELOG.md in the sources.

 -- ${maintainer}  ${new Date(seconds * 1000).toUTCString().replace("GMT", "+0000")}
`;

/** The license of evald in the machine-readable format of Debian, and where those of its packages are. */
function toCopyright(license: string): string {
  const body = license.trim().replace(/^$/gm, ".").replace(/^/gm, " ");
  const holder = /^Copyright \(c\) (.+)$/m.exec(license)?.[1] ?? "the evald developers";
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: evald
Comment: The licenses of the packages that the executable contains are in
 /usr/share/doc/evald/THIRD-PARTY-LICENSES.txt

Files: *
Copyright: ${holder}
License: Expat
${body}
`;
}

/**
 * The Debian package with an executable, its systemd units and its man page. The same input and version of dpkg-deb give the same bytes. `seconds`:
 * the time of each file, since 1970. Throws with what dpkg-deb says if it fails.
 */
export function toDebianPackage({ platform, executable }: Built, notices: Entry[], seconds: number): Uint8Array {
  const architecture = architectureOf(platform);
  if (architecture === null) throw new Error(`${platform.name} has no Debian package`);
  const folder = mkdtempSync(join(tmpdir(), "evald-debian-"));
  const root = join(folder, "root");
  const put = (path: string, content: Uint8Array | string, mode = 0o644) => {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    chmodSync(file, mode);
  };
  const source = (name: string) => readFileSync(join(sources, name));
  const gzip = (text: string) => Bun.gzipSync(Buffer.from(text), { library: "libdeflate", level: 9 });
  const noticeOf = (path: string) => Buffer.from(notices.find((each) => each.path === path)?.content ?? "");
  try {
    put("usr/bin/evald", executable, 0o755);
    for (const unit of ["evald.service", "evald-worker.service"]) put(`lib/systemd/system/${unit}`, source(unit));
    put("etc/evald/evald.env", source("evald.env"), 0o600);
    put("usr/share/man/man1/evald.1.gz", gzip(toManPage(seconds)));
    put("usr/share/doc/evald/changelog.Debian.gz", gzip(changelog(seconds)));
    put("usr/share/doc/evald/copyright", toCopyright(noticeOf("LICENSE").toString()));
    put("usr/share/doc/evald/THIRD-PARTY-LICENSES.txt", noticeOf("THIRD-PARTY-LICENSES.txt"));
    put("usr/share/lintian/overrides/evald", source("lintian-overrides"));
    put("DEBIAN/control", control(architecture, Math.ceil(executable.length / 1024)));
    put("DEBIAN/conffiles", "/etc/evald/evald.env\n");
    for (const script of ["preinst", "postinst", "prerm", "postrm"]) put(`DEBIAN/${script}`, source(script), 0o755);
    put("DEBIAN/md5sums", toMd5sums(root));
    makeReadable(root);
    const file = join(folder, "evald.deb");
    // gzip takes 5 seconds; xz saves 10 MB, but takes minutes.
    const { success, stderr } = Bun.spawnSync(
      ["dpkg-deb", "--root-owner-group", "--uniform-compression", "-Zgzip", "--build", root, file],
      { env: { PATH: process.env.PATH ?? "", SOURCE_DATE_EPOCH: String(seconds), LC_ALL: "C" }, stderr: "pipe" },
    );
    if (!success) throw new Error(`dpkg-deb failed: ${stderr}`);
    return readFileSync(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Gives folders the same mode, whatever this user's umask is. */
function makeReadable(root: string): void {
  chmodSync(root, 0o755);
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true }))
    if (entry.isDirectory()) chmodSync(join(entry.parentPath, entry.name), 0o755);
}

/** The digests of the files of a package, by which `dpkg --verify` finds changes. Configuration has none. */
function toMd5sums(root: string): string {
  const files = [...new Bun.Glob("{usr,lib}/**").scanSync(root)].sort();
  const md5 = (file: string) =>
    createHash("md5")
      .update(readFileSync(join(root, file)))
      .digest("hex");
  return files.map((file) => `${md5(file)}  ${file}\n`).join("");
}
