/**
 * Decodes a body. The encoding is that of its byte order mark, content-type charset or meta tag in the first KiB, in that order. Without these, it is
 * the one that browsers choose.
 */
export const decodeText = (body: Uint8Array, contentType: string | null): string =>
  createDecoder(labelOf(body, contentType)).decode(body);

const labelOf = (body: Uint8Array, contentType: string | null): string =>
  bomLabel(body) ?? headerLabel(contentType) ?? metaLabel(body) ?? undeclaredLabel(body);

/** Without a declaration, browsers read text that can't be UTF-8 as windows-1252. Text that is partly UTF-8 is damaged UTF-8. */
function undeclaredLabel(body: Uint8Array): string {
  if (body.every((byte) => byte < 0x80)) return "utf-8";
  const beyondAscii = new TextDecoder().decode(body).match(/\P{ASCII}/gu) ?? [];
  return beyondAscii.every((character) => character === "\ufffd") ? "windows-1252" : "utf-8";
}

/** `declared` is the encoding that readers use, `actual` the one in which the text is readable. */
export type WrongCharset = { declared: string; actual: string };

/** With this many characters, a text is in another encoding and not just damaged. */
const minCharacters = 3;

/** Whether a body is in another encoding than the one with which it is decoded. null: it isn't, or that can't be decided. */
export function findWrongCharset(body: Uint8Array, contentType: string | null): WrongCharset | null {
  const declared = createDecoder(labelOf(body, contentType)).encoding;
  if (declared.startsWith("utf-16")) return null;
  const actual = utf16Of(body);
  if (actual !== null) return { declared, actual };
  if (body.every((byte) => byte < 0x80)) return null;
  const utf8Text = new TextDecoder().decode(body);
  // The text may contain the replacement character itself, whose bytes are “ï¿½” in Latin-1.
  const shownCount = new TextDecoder("latin1").decode(body).split("ï¿½").length - 1;
  const invalidCount = utf8Text.split("\ufffd").length - 1 - shownCount;
  // Nearly all pages that aren't in UTF-8 are in windows-1252, which includes Latin-1.
  if (declared === "utf-8") {
    if (invalidCount >= minCharacters) return { declared, actual: "windows-1252" };
    return isEncodedTwice(utf8Text) ? { declared, actual: "UTF-8 that was encoded twice" } : null;
  }
  // Text in another encoding is hardly ever valid UTF-8.
  const beyondAsciiCount = utf8Text.match(/\P{ASCII}/gu)?.length ?? 0;
  return invalidCount === 0 && beyondAsciiCount >= minCharacters ? { declared, actual: "utf-8" } : null;
}

/** UTF-16 if many of the bytes at even or odd positions are zero, as in ASCII text; null: it isn't. */
function utf16Of(body: Uint8Array): string | null {
  const zeros = [0, 0];
  body.forEach((byte, index) => {
    if (byte === 0) zeros[index % 2]!++;
  });
  const [even, odd] = zeros as [number, number];
  const most = Math.max(even, odd);
  if (most < minCharacters || most <= body.length / 3) return null;
  return odd > even ? "utf-16le" : "utf-16be";
}

/** The characters that windows-1252 has instead of the control characters of Latin-1, with their bytes. */
const byteOfCharacter = new Map(
  Array.from({ length: 32 }, (_, index) => 0x80 + index).map((byte) => [
    new TextDecoder("windows-1252").decode(Uint8Array.of(byte)),
    byte,
  ]),
);

/** Whether most of a text beyond ASCII was encoded twice: its UTF-8 bytes were taken for characters and encoded again, such as “Ã©” for “é”. */
function isEncodedTwice(text: string): boolean {
  let decodedCount = 0;
  let otherCount = 0;
  for (const [characters] of text.matchAll(/\P{ASCII}+/gu)) {
    const bytes = Array.from(characters, (each) => byteOfCharacter.get(each) ?? each.codePointAt(0)!);
    const decoded = bytes.every((byte) => byte <= 0xff) ? new TextDecoder().decode(Uint8Array.from(bytes)) : "\ufffd";
    if (decoded.includes("\ufffd")) otherCount += bytes.length;
    else decodedCount += decoded.length;
  }
  return decodedCount >= minCharacters && decodedCount > otherCount;
}

function bomLabel([a, b, c]: Uint8Array): string | null {
  if (a === 0xef && b === 0xbb && c === 0xbf) return "utf-8";
  if (a === 0xfe && b === 0xff) return "utf-16be";
  if (a === 0xff && b === 0xfe) return "utf-16le";
  return null;
}

function headerLabel(contentType: string | null): string | null {
  return /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType ?? "")?.[1] ?? null;
}

function metaLabel(body: Uint8Array): string | null {
  const head = new TextDecoder("latin1").decode(body.subarray(0, 1024));
  const label = /<meta[^>]+charset\s*=\s*["']?\s*([^\s"'/>;]+)/i.exec(head)?.[1] ?? null;
  // A meta tag that is readable as single bytes rules out UTF-16, even if the tag names it.
  return label && /^utf-?16/i.test(label) ? "utf-8" : label;
}

function createDecoder(label: string): TextDecoder {
  try {
    return new TextDecoder(label as Bun.Encoding);
  } catch {
    return new TextDecoder();
  }
}
