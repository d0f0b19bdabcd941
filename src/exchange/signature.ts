import { createPrivateKey, createPublicKey, hkdfSync, type KeyObject, sign, verify } from "node:crypto";

/** What the last line of an export states about the lines above it. */
export type Checksum = { rows: number; sha256: string };
/** Who signed an export. `publicKey`: as `toKeyText` writes it. `signature`: base64. */
export type Signature = { publicKey: string; signature: string };

// A key in these formats is 32 bytes after a fixed head (RFC 8410).
const privateHead = Buffer.from("302e020100300506032b657004220420", "hex");
const publicHead = Buffer.from("302a300506032b6570032100", "hex");
const keyPrefix = "ed25519:";

/** The Ed25519 key with which an instance signs its exports. It follows from EVALD_SECRET_KEY, so it survives a restore and is stored nowhere. */
function privateKeyOf(secretKey: Uint8Array): KeyObject {
  const seed = Buffer.from(hkdfSync("sha256", secretKey, "", "evald export signature", 32));
  return createPrivateKey({ key: Buffer.concat([privateHead, seed]), format: "der", type: "pkcs8" });
}

/** The public key of an instance, such as `ed25519:MCowBQ…`: base64 of its 32 bytes. */
export const publicKeyOf = (secretKey: Uint8Array): string => {
  const der = createPublicKey(privateKeyOf(secretKey)).export({ format: "der", type: "spki" });
  return keyPrefix + der.subarray(publicHead.length).toString("base64");
};

/** Whether a text has the form of a public key. */
export const isPublicKey = (text: string): boolean => /^ed25519:[A-Za-z0-9+/]{43}=$/.test(text);

/** What is signed: the first line with its organization and time, and the checksum of the others. */
const messageOf = (header: string, { rows, sha256 }: Checksum) =>
  Buffer.from(`${header}\n${JSON.stringify({ rows, sha256 })}`);

/** Signs an export. `header`: its first line, without the newline. */
export const signExport = (secretKey: Uint8Array, header: string, checksum: Checksum): Signature => ({
  publicKey: publicKeyOf(secretKey),
  signature: sign(null, messageOf(header, checksum), privateKeyOf(secretKey)).toString("base64"),
});

/** Whether an export was signed with the private key that belongs to the public key in it. */
export function isSignatureValid({ publicKey, signature }: Signature, header: string, checksum: Checksum): boolean {
  if (!isPublicKey(publicKey)) return false;
  const key = Buffer.concat([publicHead, Buffer.from(publicKey.slice(keyPrefix.length), "base64")]);
  const signatureBytes = Buffer.from(signature, "base64");
  // The last character of base64 has bits that decoding ignores. Without this check, it could be changed.
  if (signatureBytes.toString("base64") !== signature) return false;
  try {
    return verify(
      null,
      messageOf(header, checksum),
      createPublicKey({ key, format: "der", type: "spki" }),
      signatureBytes,
    );
  } catch {
    // The bytes are not a point of the curve.
    return false;
  }
}
