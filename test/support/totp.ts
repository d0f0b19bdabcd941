import { createHmac } from "node:crypto";

/** RFC 6238 with HMAC-SHA-1, independent of what the service uses. `key`: its bytes. */
export function totp(key: Uint8Array, atMs: number, digits = 6): string {
  const counter = Buffer.from(
    Math.floor(atMs / 30_000)
      .toString(16)
      .padStart(16, "0"),
    "hex",
  );
  const hash = createHmac("sha1", key).update(counter).digest();
  const offset = (hash[19] ?? 0) & 0xf;
  const [a = 0, b = 0, c = 0, d = 0] = hash.subarray(offset, offset + 4);
  const binary = (a & 0x7f) * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d;
  return String(binary % 10 ** digits).padStart(digits, "0");
}

/** The bytes of a Base32 text (RFC 4648) without padding. */
export function fromBase32(text: string): Uint8Array {
  const bits = [...text].map((char) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(char).toString(2).padStart(5, "0"));
  return Uint8Array.from((bits.join("").match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
