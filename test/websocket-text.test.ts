import { describe, expect, test } from "bun:test";
import { createMessageReader } from "../src/agents/egress/websocket-text.ts";

type Frame = { head: number; mask?: number[] };

/** A frame of RFC 6455. */
function toFrame(payload: Uint8Array, { head, mask }: Frame): Buffer {
  const flag = mask ? 0x80 : 0;
  const size =
    payload.length < 126
      ? [flag | payload.length]
      : payload.length < 65_536
        ? [flag | 126, payload.length >> 8, payload.length & 0xff]
        : [flag | 127, 0, 0, 0, 0, 0, payload.length >> 16, (payload.length >> 8) & 0xff, payload.length & 0xff];
  const bytes = mask ? payload.map((byte, i) => byte ^ mask[i % 4]!) : payload;
  return Buffer.concat([Buffer.from([head, ...size, ...(mask ?? [])]), bytes]);
}

const [text, binary, ping] = [0x81, 0x82, 0x89];
const [firstPart, lastPart] = [0x01, 0x80];
const bytesOf = (words: string) => Buffer.from(words);

function read(chunks: Buffer[]) {
  const reader = createMessageReader();
  for (const chunk of chunks) reader.add(chunk);
  return { text: reader.text(), isComplete: reader.isComplete() };
}

describe("the text of a WebSocket", () => {
  test.each([1, 2, 3, 7, 1000])("doesn't depend on how its bytes arrive: %d at a time", (size) => {
    const long = "x".repeat(300);
    const bytes = Buffer.concat([
      toFrame(bytesOf("hello"), { head: text, mask: [1, 2, 3, 4] }),
      toFrame(bytesOf("are you there"), { head: ping }),
      toFrame(bytesOf(long), { head: text }),
    ]);
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );
    expect(read(chunks)).toEqual({ text: `hello\n${long}\n`, isComplete: true });
  });

  test("joins the frames of a message, even if one ends within a character or a ping comes between", () => {
    const bytes = bytesOf("note_é7");
    const frames = [
      toFrame(bytes.subarray(0, 6), { head: firstPart, mask: [9, 8, 7, 6] }),
      toFrame(bytesOf(""), { head: ping, mask: [0, 0, 0, 0] }),
      toFrame(bytes.subarray(6), { head: lastPart, mask: [5, 5, 5, 5] }),
    ];
    expect(read(frames)).toEqual({ text: "note_é7\n", isComplete: true });
  });

  test.each([
    ["a binary message", toFrame(bytesOf("note_1"), { head: binary })],
    ["a message that an extension changed", toFrame(bytesOf("note_1"), { head: text | 0x40 })],
    ["a message that is too long", toFrame(bytesOf("n".repeat(70_000)), { head: text })],
    ["a frame that has not ended", toFrame(bytesOf("note_1"), { head: text }).subarray(0, 5)],
  ])("is not complete after %s", (_, frame) => {
    expect(read([toFrame(bytesOf("hello"), { head: text }), frame])).toMatchObject({ isComplete: false });
  });
});
