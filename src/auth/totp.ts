import { createHmac, randomInt, timingSafeEqual } from "node:crypto";

const stepMs = 30_000;
const digits = 6;
/** This many steps before and after the current one are accepted, because clocks differ. */
const tolerance = 1;

/** Lower-case letters and digits, except those that look alike. */
const backupCodeLetters = "abcdefghjkmnpqrstuvwxyz23456789";
const backupCodeCount = 10;
const backupCodeLength = 10;

/** The code of a step, according to RFC 4226, section 5.3, with the step of RFC 6238. */
function codeOf(secret: string, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac("sha1", secret).update(counter).digest();
  // The last four bits give the position of the 31 bits to use.
  const offset = (mac.at(-1) ?? 0) & 0xf;
  const number = mac.readUInt32BE(offset) & 0x7fffffff;
  return String(number % 10 ** digits).padStart(digits, "0");
}

/** The 30-second step that a code belongs to, near a time in epoch milliseconds; null: the code is wrong. */
export function findStep(secret: string, code: string, nowMs: number): number | null {
  const sent = Buffer.from(code);
  const current = Math.floor(nowMs / stepMs);
  for (let step = current + tolerance; step >= current - tolerance; step--) {
    const expected = Buffer.from(codeOf(secret, step));
    if (sent.length === expected.length && timingSafeEqual(sent, expected)) return step;
  }
  return null;
}

/** A code without spaces. People type them as apps show them. */
export const toCode = (text: string): string => text.replace(/\s/g, "");

/** Ten codes of 49 bits, such as `k3m9q-x7abc`. */
export const newBackupCodes = (): string[] =>
  Array.from({ length: backupCodeCount }, () =>
    toBackupCode(
      Array.from({ length: backupCodeLength }, () => backupCodeLetters[randomInt(backupCodeLetters.length)]).join(""),
    ),
  );

/** A backup code in the form in which it was shown to the person. */
export function toBackupCode(text: string): string {
  const letters = text.toLowerCase().replace(/[^a-z0-9]/g, "");
  return `${letters.slice(0, backupCodeLength / 2)}-${letters.slice(backupCodeLength / 2)}`;
}
