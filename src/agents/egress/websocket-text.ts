import { StringDecoder } from "node:string_decoder";

const maxBytes = 8_000;
/** Frames with an opcode from `firstControl` on, such as pings, may come between the frames of a message. */
const opcodes = { continuation: 0, text: 1, firstControl: 8 };
const opcodeBits = 0x0f;
/**
 * Bits of a frame's first byte. The first says that the frame ends a message. The others say that an extension such as compression changed it (RFC
 * 6455, section 5.2).
 */
const [finalBit, extensionBits] = [0x80, 0x70];
/** Bits of a frame's second byte: whether a mask follows, and the length. */
const [maskBit, lengthBits] = [0x80, 0x7f];
/** Values of the length field that say that the length follows in the next 2 or 8 bytes. */
const [lengthIn2Bytes, lengthIn8Bytes] = [126, 127];
const maskBytes = 4;

/** The length of a frame, and the number of further bytes that hold it; null if they aren't there yet. */
function readLength(frame: Buffer): { length: number; bytes: 0 | 2 | 8 } | null {
  const length = frame[1]! & lengthBits;
  if (length === lengthIn2Bytes) return frame.length < 4 ? null : { length: frame.readUInt16BE(2), bytes: 2 };
  if (length === lengthIn8Bytes)
    return frame.length < 10 ? null : { length: Number(frame.readBigUInt64BE(2)), bytes: 8 };
  return { length, bytes: 0 };
}

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
    const size = pending.length < 2 ? null : readLength(pending);
    if (size === null) return null;
    const [first = 0, second = 0] = pending;
    const maskStart = 2 + size.bytes;
    const start = maskStart + (second & maskBit ? maskBytes : 0);
    const end = start + size.length;
    if (pending.length < end) return null;
    const mask = pending.subarray(maskStart, start);
    const payload = Buffer.from(pending.subarray(start, end));
    if (mask.length > 0) for (let i = 0; i < payload.length; i++) payload[i]! ^= mask[i % maskBytes]!;
    pending = pending.subarray(end);
    return { head: first, payload };
  }

  return {
    add(chunk: Buffer): void {
      if (hasUnreadMessage) return;
      pending = Buffer.concat([pending, chunk]);
      for (let frame = takeFrame(); frame !== null; frame = takeFrame()) {
        const { head, payload } = frame;
        const opcode = head & opcodeBits;
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
