import { type Fields, object } from "../fields.ts";

const maxBufferChars = 32 * 1024 * 1024;

/**
 * Reads a model's response from its bytes as they pass: a stream of events, or one JSON value. `onEvent` is called with each event or value, and with
 * `done` for the mark at the end of a stream.
 */
export function createEventReader(isStream: boolean, onEvent: (event: Fields | "done") => void) {
  const decoder = new TextDecoder();
  let buffer = "";

  function readJson(json: string): void {
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch {
      // An incomplete response.
      return;
    }
    for (const event of Array.isArray(value) ? value : [value]) onEvent(object(event));
  }

  function readLine(line: string): void {
    if (/^data: ?\[DONE\]/.test(line)) onEvent("done");
    else if (line.startsWith("data:")) readJson(line.slice("data:".length));
  }

  return {
    push(bytes: Uint8Array): void {
      if (buffer.length > maxBufferChars) return;
      const text = decoder.decode(bytes, { stream: true });
      buffer += text;
      if (!isStream || !text.includes("\n")) return;
      const lines = buffer.split(/\r?\n/);
      buffer = lines.pop() ?? "";
      for (const line of lines) readLine(line);
    },
    end: (): void => (isStream ? readLine(buffer) : readJson(buffer)),
  };
}
