import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readText } from "../sandbox/kernel-files.ts";
import { systemCertificates } from "../sandbox/surroundings.ts";

/** Paths of files with trusted certificate authorities: as PEM, and as a key store of Java. */
type Certificates = { pem: string; java: string };

/** The machine's certificate authorities: their file in PEM, and the entries of a key store. */
type MachineAuthorities = { modifiedAt: number; pem: string; entries: Buffer[] };

let machineAuthorities: MachineAuthorities | null = null;

/** Reads the machine's authorities. Reads them again only if their file has changed, because reading all of them takes milliseconds. */
function readMachineAuthorities(): MachineAuthorities {
  const modifiedAt = statSync(systemCertificates, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (machineAuthorities?.modifiedAt !== modifiedAt) {
    const pem = readText(systemCertificates).trimEnd();
    const pems = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
    machineAuthorities = { modifiedAt, pem, entries: pems.map(toDer).map(toEntry) };
  }
  return machineAuthorities;
}

/** Writes the machine's certificate authorities and the run's own (`certificate`, in PEM) to two files in the folder. */
export async function writeCertificates(folder: string, certificate: string): Promise<Certificates> {
  const paths = { pem: join(folder, "ca-certificates.crt"), java: join(folder, "cacerts") };
  const { pem, entries } = readMachineAuthorities();
  const keyStore = toKeyStore([...entries, toEntry(toDer(certificate), entries.length)]);
  await Promise.all([
    writeFile(paths.pem, `${pem}\n${certificate}`.trimStart(), { mode: 0o644 }),
    writeFile(paths.java, keyStore, { mode: 0o644 }),
  ]);
  return paths;
}

/** The bytes of a certificate. In PEM, they are between the lines that mark it. */
const toDer = (pem: string): Buffer => Buffer.from(pem.replace(/-----.*?-----/g, ""), "base64");

/** The password that Java expects of its list of authorities. */
const keyStorePassword = "changeit";

/** Numbers of the JKS format: the start of a file, its version, and the kind of entry that is a trusted certificate. */
const jks = { magic: 0xfeedfeed, version: 2, trustedEntry: 2 };
const dateBytes = 8;

const uint32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
/** The text after its length in two bytes. */
const text = (value: string) => Buffer.concat([uint32(Buffer.byteLength(value)).subarray(2), Buffer.from(value)]);

/** The entry of a trusted certificate (in DER), named by its position. It has no creation date. */
const toEntry = (der: Buffer, position: number): Buffer =>
  Buffer.concat([
    ...[uint32(jks.trustedEntry), text(`ca-${position}`), Buffer.alloc(dateBytes)],
    ...[text("X.509"), uint32(der.length), der],
  ]);

/** A key store in the JKS format. */
function toKeyStore(entries: Buffer[]): Buffer {
  const content = Buffer.concat([uint32(jks.magic), uint32(jks.version), uint32(entries.length), ...entries]);
  // Java checks the file by this digest of the password, words that the format prescribes, and the content.
  const salt = Buffer.from(keyStorePassword, "utf16le").swap16();
  const digest = createHash("sha1").update(salt).update("Mighty Aphrodite").update(content).digest();
  return Buffer.concat([content, digest]);
}
