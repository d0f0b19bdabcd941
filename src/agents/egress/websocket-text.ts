import { StringDecoder } from "node:string_decoder";

const maxBytes = 8_000;
/** Frames with an opcode from `firstControl` on, such as pings, may come between those of a message. */
const opcodes = { continuation: 0, text: 1, firstControl: 8 };
/** Bits of a frame's first byte: it ends a message, and an extension such as compression changed it. */
const [finalBit, extensionBits] = [0x80, 0x70];

/** Reads the text messages in one direction of a WebSocket without compression, up to a maximum. */
export function createMessageReader() {
  let pending = Buffer.alloc(0);
  let isText = false;
  let text = "";
  let hasUnreadMessage = false;
  // A frame may end within a character.
  const decoder = new StringDecoder("utf8");

  /** The first frame in the pending bytes; null if it isn't complete. */
  function takeFrame(): { head: number; payload: Buffer } | null {
    if (pending.length < 2) return null;
    const [first = 0, second = 0] = pending;
    const short = second & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    const maskAt = 2 + lengthBytes;
    const start = maskAt + (second & 0x80 ? 4 : 0);
    if (pending.length < start) return null;
    const length =
      lengthBytes === 2 ? pending.readUInt16BE(2) : lengthBytes === 8 ? Number(pending.readBigUInt64BE(2)) : short;
    if (pending.length < start + length) return null;
    const mask = pending.subarray(maskAt, start);
    const payload = Buffer.from(pending.subarray(start, start + length));
    if (mask.length === 4) for (let i = 0; i < length; i++) payload[i]! ^= mask[i % 4]!;
    pending = pending.subarray(start + length);
    return { head: first, payload };
  }

  return {
    add(chunk: Buffer): void {
      if (hasUnreadMessage) return;
      pending = Buffer.concat([pending, chunk]);
      for (let frame = takeFrame(); frame !== null; frame = takeFrame()) {
        const { head, payload } = frame;
        const opcode = head & 0x0f;
        if (opcode >= opcodes.firstControl) continue;
        // A continuation is of the same kind as the frame before.
        if (opcode !== opcodes.continuation) isText = opcode === opcodes.text;
        if (!isText || (head & extensionBits) !== 0) hasUnreadMessage = true;
        else text += decoder.write(payload) + (head & finalBit ? "\n" : "");
      }
      hasUnreadMessage ||= pending.length > maxBytes || text.length > maxBytes;
    },
    text: () => text.slice(0, maxBytes),
    /** Whether `text` holds all messages so far: none was binary, compressed or too long. */
    isComplete: () => !hasUnreadMessage && pending.length === 0,
  };
}
