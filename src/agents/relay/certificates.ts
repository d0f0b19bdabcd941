import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemCertificates } from "../sandbox/surroundings.ts";

/** Writes a PEM bundle of the machine's certificate authorities and the run's own to the folder, and returns its path. */
export async function writeCertificates(folder: string, certificate: string): Promise<string> {
  const path = join(folder, "ca-certificates.crt");
  const known = await readFile(systemCertificates, "utf8").catch(() => "");
  await writeFile(path, `${known.trimEnd()}\n${certificate}\n`.trimStart(), { mode: 0o644 });
  return path;
}
