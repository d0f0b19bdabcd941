import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemCertificates } from "../sandbox/surroundings.ts";

/** Paths of files with trusted certificate authorities: as PEM, and as a key store of Java. */
type Certificates = { pem: string; java: string };

/** Writes the machine's certificate authorities and the run's own (`certificate`, in PEM) to two files in the folder. */
export async function writeCertificates(folder: string, certificate: string): Promise<Certificates> {
  const paths = { pem: join(folder, "ca-certificates.crt"), java: join(folder, "cacerts") };
  const system = await readFile(systemCertificates, "utf8").catch(() => "");
  const bundle = `${system.trimEnd()}\n${certificate}\n`.trimStart();
  await writeFile(paths.pem, bundle, { mode: 0o644 });
  const pems = bundle.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
  await writeFile(paths.java, toKeyStore(pems.map(toDer)), { mode: 0o644 });
  return paths;
}

/** What is between the lines that mark a certificate. */
const toDer = (pem: string): Buffer => Buffer.from(pem.replace(/-----.*?-----/g, ""), "base64");

/** The password that Java expects of its list of authorities. */
const keyStorePassword = "changeit";

/** Numbers of the JKS format: with which a file starts, its version, and the kind of an entry that is a trusted certificate. */
const jks = { magic: 0xfeedfeed, version: 2, trustedEntry: 2 };

/** A key store in the JKS format with a trusted entry for each certificate (in DER). */
function toKeyStore(certificates: Buffer[]): Buffer {
  const uint32 = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return bytes;
  };
  /** With its length before it, as two bytes. */
  const text = (value: string) => Buffer.concat([uint32(Buffer.byteLength(value)).subarray(2), Buffer.from(value)]);
  const creationDate = Buffer.alloc(8);
  const entries = certificates.map((der, i) =>
    Buffer.concat([uint32(jks.trustedEntry), text(`ca-${i}`), creationDate, text("X.509"), uint32(der.length), der]),
  );
  const content = Buffer.concat([uint32(jks.magic), uint32(jks.version), uint32(entries.length), ...entries]);
  // Java checks the file by this digest of the password, of words that the format prescribes, and of the content.
  const salt = Buffer.from(keyStorePassword, "utf16le").swap16();
  const digest = createHash("sha1").update(salt).update("Mighty Aphrodite").update(content).digest();
  return Buffer.concat([content, digest]);
}
