/** Decodes a body by its byte order mark, content-type charset or meta tag in the first KiB, in that order; else as UTF-8. */
export function decodeText(body: Uint8Array, contentType: string | null): string {
  const label = bomLabel(body) ?? headerLabel(contentType) ?? metaLabel(body) ?? "utf-8";
  return createDecoder(label).decode(body);
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
  // A meta tag that is readable as single bytes rules out UTF-16, even if it names it.
  return label && /^utf-?16/i.test(label) ? "utf-8" : label;
}

function createDecoder(label: string): TextDecoder {
  try {
    return new TextDecoder(label as Bun.Encoding);
  } catch {
    return new TextDecoder();
  }
}
