import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readLock } from "./bill-of-materials.ts";
import type { Platform } from "./platforms.ts";

const root = join(import.meta.dir, "..");
const cache = join(root, "node_modules", ".cache", "evald-release");

/**
 * The file of Bun for a platform, from its npm package. It is downloaded once, from npm's configured registry, and has the digest of
 * bun.lock whenever it is used. Throws if it has another one.
 */
export async function fetchRuntime({ name, runtime, os }: Platform): Promise<string> {
  const { packages } = await readLock();
  const [id, , , integrity] = packages[runtime] ?? [];
  if (!id || !integrity) throw new Error(`bun.lock has no ${runtime}, which ${name} needs`);
  const tarball = join(cache, `${id.replaceAll(/[@/]/g, "-").replace(/^-+/, "")}.tgz`);
  if (!existsSync(tarball)) download(id, tarball);
  const digest = `sha512-${createHash("sha512").update(readFileSync(tarball)).digest("base64")}`;
  if (digest !== integrity) throw new Error(`${tarball} is not the ${id} of bun.lock: its digest is ${digest}`);
  const folder = mkdtempSync(join(tmpdir(), "evald-runtime-"));
  const file = join(folder, "package", "bin", os === "win32" ? "bun.exe" : "bun");
  run(["tar", "-xzf", tarball, "-C", folder]);
  if (!existsSync(file)) throw new Error(`${id} has no ${file.slice(folder.length + 1)}`);
  return file;
}

function download(id: string, tarball: string): void {
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "download-"));
  const [file = ""] = run(["npm", "pack", "--silent", "--pack-destination", folder, id]).trim().split("\n").slice(-1);
  renameSync(join(folder, file), tarball);
  rmdirSync(folder);
}

function run(command: string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync(command, { cwd: root, stderr: "pipe" });
  if (!success) throw new Error(`${command.join(" ")} failed:\n${stderr}`);
  return stdout.toString();
}
