/** Redacts a text. `name`: the property that contains it. `stream`: identifies the texts that it continues. */
type Clean = (text: string, name?: string, stream?: string) => string;

/** A text of a JSON line. `cleaned`: the text with its secrets redacted. `set` puts another text in its place. */
type Piece = { text: string; cleaned: string; set: (text: string) => void };

/** Where agents write the pieces of a message. Longer texts are whole messages. */
const pieceNames = new Set(["text", "content", "delta"]);
const maxPieceChars = 4_000;

/**
 * Redacts lines of text or of JSON. In JSON, each text is redacted separately, as in an event. Agents write messages in pieces, so a secret may be
 * spread over texts at the same place in several lines. Such texts are joined in the first of these lines.
 */
export function cleanLines(lines: string, clean: Clean): string {
  const groups = new Map<string, Piece[]>();
  const values = lines.split("\n").map((line) => {
    const value = parse(line);
    if (value === null) return clean(line, undefined, "line");
    const type = "type" in value ? String(value.type) : "";
    cleanTexts(value, clean, { path: type, name: "" }, (path, name, piece) => {
      if (!pieceNames.has(name) || piece.text.length > maxPieceChars) return;
      const group = groups.get(path);
      if (group) group.push(piece);
      else groups.set(path, [piece]);
    });
    return value;
  });
  for (const pieces of groups.values()) joinSecret(pieces, clean);
  return values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join("\n");
}

function parse(line: string): object | null {
  if (!/^\s*[{[]/.test(line)) return null;
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** Redacts the texts in an object or a list, in place, and the names of its properties. */
function cleanTexts(
  value: object,
  clean: Clean,
  at: { path: string; name: string },
  onText: (path: string, name: string, piece: Piece) => void,
): void {
  const properties = value as Record<string, unknown>;
  for (const [key, item] of Object.entries(properties)) {
    const cleanKey = clean(key);
    if (cleanKey !== key) delete properties[key];
    const name = Array.isArray(value) ? at.name : key;
    const path = `${at.path}/${key}`;
    if (typeof item === "string") {
      const cleaned = clean(item, name, path);
      const set = (text: string) => {
        properties[cleanKey] = text;
      };
      set(cleaned);
      onText(path, name, { text: item, cleaned, set });
      continue;
    }
    properties[cleanKey] = item;
    if (item !== null && typeof item === "object") cleanTexts(item, clean, { path, name }, onText);
  }
}

/** Redacts a secret that is spread over several texts. */
function joinSecret(pieces: Piece[], clean: Clean): void {
  const [first, ...others] = pieces;
  if (!first || others.length === 0) return;
  const joined = clean(pieces.map(({ text }) => text).join(""));
  if (joined === pieces.map(({ cleaned }) => cleaned).join("")) return;
  first.set(joined);
  for (const piece of others) piece.set("");
}
