const newline = 10;
/** Longer lines are dropped. */
const maxLineBytes = 32 * 1024 * 1024;

/** The lines of a stream, including an unterminated last one; null for a line that is too long. */
export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string | null, void> {
  let parts: Uint8Array[] = [];
  let size = 0;
  const add = (part: Uint8Array) => {
    size += part.length;
    if (size > maxLineBytes) parts = [];
    else parts.push(part);
  };
  const endLine = () => {
    const text = size > maxLineBytes ? null : Buffer.concat(parts).toString();
    parts = [];
    size = 0;
    return text;
  };
  for await (const chunk of stream) {
    let from = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, from)) {
      add(chunk.subarray(from, end));
      from = end + 1;
      yield endLine();
    }
    add(chunk.subarray(from));
  }
  if (size > 0) yield endLine();
}

/** Reads a stream to its end and keeps the last characters. */
export function tailOf(
  stream: ReadableStream<Uint8Array>,
  chars: number,
): { text: () => string; ended: Promise<void> } {
  const decoder = new TextDecoder();
  let tail = "";
  const read = async () => {
    for await (const bytes of stream) tail = (tail + decoder.decode(bytes, { stream: true })).slice(-chars);
  };
  return { text: () => tail.trim(), ended: read().catch(() => {}) };
}
