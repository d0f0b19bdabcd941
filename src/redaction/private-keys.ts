/** Replaces a secret. */
export const redactedText = "[redacted]";
const keyLabel = "[A-Z0-9 ]{0,40}PRIVATE KEY";
const keyBlock = new RegExp(`-----BEGIN ${keyLabel}-----[\\s\\S]*?(?:-----END ${keyLabel}-----|$)`, "g");
const keyStart = new RegExp(`-----BEGIN ${keyLabel}-----`, "g");
const keyEnd = new RegExp(`-----END ${keyLabel}-----`);
const lineNumber = "\\d{1,6}[:\\t ]{1,3}";
const diffOrQuoteMark = "[>|+-]";
const base64 = "[A-Za-z0-9+/=\\\\]{1,20000}";
const keyHeader = "(?:Proc-Type|DEK-Info|Comment): .{0,200}";
/** A line of a key, as files, diffs and quotes show it. */
const bodyLine = new RegExp(
  `^[ \\t]{0,20}(?:${lineNumber})?${diffOrQuoteMark}?[ \\t]{0,20}(?:${base64}|${keyHeader})?\\s{0,9}$`,
);
/** Maximum number of lines of a key after its first text. */
const maxLines = 400;
const maxOpenKeys = 100;

/** Removes private keys from a text, complete or truncated. */
export function withoutPrivateKeys(text: string): string {
  if (!text.includes("PRIVATE KEY-----")) return text;
  // Text before a remaining end marker is the rest of a key whose beginning is missing.
  const parts = text.replace(keyBlock, redactedText).split(keyEnd);
  const cleanParts = parts.slice(0, -1).map((part) => {
    let end = part.length;
    while (end > 0 && /[A-Za-z0-9+/=\s\\]/.test(part[end - 1]!)) end--;
    return part.slice(0, end) + redactedText;
  });
  return [...cleanParts, parts.at(-1)].join("");
}

/** How the last text of a stream ended: inside a key, of which up to `lines` lines may follow, or inside the marker that starts a key. */
type OpenKey = { lines: number } | { markerStart: string };

/**
 * Removes private keys whose lines arrive in several texts of the same stream. A key that began in one text continues in the next texts until its
 * end, or until a line that can't be part of a key.
 */
export function createKeyStreams() {
  const openKeys = new Map<string, OpenKey>();

  function keepOpen(stream: string, key: OpenKey): void {
    openKeys.set(stream, key);
    if (openKeys.size > maxOpenKeys) openKeys.delete(openKeys.keys().next().value!);
  }

  /** How many characters of a text continue a key of at most `lines` more lines, and how many lines may follow in later texts. */
  function readKeyBody(text: string, lines: number): { length: number; lines: number } {
    let length = 0;
    let remainingLines = lines;
    for (const line of text.split(/(?<=\n)/)) {
      const end = keyEnd.exec(line);
      if (end) return { length: length + end.index + end[0].length, lines: 0 };
      if (remainingLines === 0 || !bodyLine.test(line)) return { length, lines: 0 };
      length += line.length;
      remainingLines--;
    }
    return { length, lines: remainingLines };
  }

  /**
   * Returns the text without the rest of a key that began in an earlier text of this stream. Keys that are complete stay for `withoutPrivateKeys`.
   */
  return (stream: string, text: string): string => {
    const openKey = openKeys.get(stream);
    if (openKey === undefined && !text.includes("-----")) return text;
    openKeys.delete(stream);
    const body = openKey && "lines" in openKey ? readKeyBody(text, openKey.lines) : { length: 0, lines: 0 };
    if (body.lines > 0) keepOpen(stream, { lines: body.lines });
    const [keyText, rest] = [text.slice(0, body.length), text.slice(body.length)];
    const earlierStart = openKey && "markerStart" in openKey ? openKey.markerStart : "";
    const unread = earlierStart + rest;
    const marker = [...unread.matchAll(keyStart)].at(-1);
    const isLastKeyOpen = marker !== undefined && !keyEnd.test(unread.slice(marker.index + marker[0].length));
    const [markerStart] = /-----B?E?G?I?N? ?[A-Z0-9 ]{0,52}-{0,4}$/.exec(unread.slice(-80)) ?? [];
    if (isLastKeyOpen) keepOpen(stream, { lines: maxLines });
    else if (markerStart !== undefined) keepOpen(stream, { markerStart });
    // The start of a split marker has been returned already, so `withoutPrivateKeys` can't find it.
    const isMarkerSplit = isLastKeyOpen && marker.index < earlierStart.length;
    return (keyText.trim() === "" ? keyText : redactedText) + (isMarkerSplit ? redactedText : rest);
  };
}
