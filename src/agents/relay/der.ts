/** Values of ASN.1 in DER (ITU-T X.690). Each function returns a complete value: tag, length and content. */

const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  sequence: 0x30,
  set: 0x31,
};
/** Added to the number of a context-specific tag. */
const contextClass = 0x80;
const constructedBit = 0x20;
/** A length from here on is preceded by the number of its bytes. */
const longLength = 0x80;

function toValue(tag: number, ...contents: Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag, ...lengthBytes(content.length)]), content]);
}

function lengthBytes(length: number): number[] {
  if (length < longLength) return [length];
  const bytes = length < 0x100 ? [length] : [length >> 8, length & 0xff];
  return [longLength | bytes.length, ...bytes];
}

export const sequence = (...values: Uint8Array[]): Buffer => toValue(tags.sequence, ...values);
export const set = (...values: Uint8Array[]): Buffer => toValue(tags.set, ...values);
export const octetString = (bytes: Uint8Array): Buffer => toValue(tags.octetString, bytes);
export const utf8String = (text: string): Buffer => toValue(tags.utf8String, Buffer.from(text));
export const boolean = (value: boolean): Buffer => toValue(tags.boolean, Buffer.from([value ? 0xff : 0]));

/** A number from its bytes, of which the first must be below 128: it would be negative else. */
export const integer = (bytes: Uint8Array | number[]): Buffer => toValue(tags.integer, Uint8Array.from(bytes));

/** `unusedBits`: how many of the last byte don't count. */
export const bitString = (bytes: Uint8Array | number[], unusedBits = 0): Buffer =>
  toValue(tags.bitString, Buffer.from([unusedBits]), Uint8Array.from(bytes));

/** A value with a tag of its context, around other values or in place of a primitive one. */
export const tagged = (number: number, content: Uint8Array, kind: "constructed" | "primitive"): Buffer =>
  toValue(contextClass | (kind === "constructed" ? constructedBit : 0) | number, content);

/** An object identifier, such as `1.2.840.10045.4.3.2`: its first two numbers in one, then each in groups of 7 bits, of which all but the last have the highest bit set. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = [40 * first + second, ...rest].flatMap((number) => {
    const groups = [number & 0x7f];
    for (let left = number >> 7; left > 0; left >>= 7) groups.unshift(0x80 | (left & 0x7f));
    return groups;
  });
  return toValue(tags.oid, Buffer.from(bytes));
}

/** A time to the second. Only of the years 1950 to 2049: the format has two digits for it. */
export const utcTime = (time: Date): Buffer =>
  toValue(tags.utcTime, Buffer.from(`${time.toISOString().slice(2, 19).replace(/[-T:]/g, "")}Z`));
