import type http from "node:http";
import { brotliDecompressSync, constants, gunzipSync, inflateSync } from "node:zlib";

const maxRawBytes = 64 * 1024;
const maxChars = 8_000;

// The sample may end in the middle of the body. With Z_SYNC_FLUSH, gzip and deflate return the text up to that point. A cut brotli body has no text.
const decoders: Record<string, (raw: Buffer) => Buffer> = {
  gzip: (raw) => gunzipSync(raw, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 16 * maxRawBytes }),
  deflate: (raw) => inflateSync(raw, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 16 * maxRawBytes }),
  br: (raw) => brotliDecompressSync(raw, { maxOutputLength: 16 * maxRawBytes }),
  identity: (raw) => raw,
};

/** Collects the start of a text response, as evidence of what the product returned. Other content types have no text. */
export function createTextSample() {
  let decode: ((raw: Buffer) => Buffer) | undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  return {
    /** Begins to collect the body of a response with these headers. */
    start(headers: http.IncomingHttpHeaders): void {
      const type = headers["content-type"] ?? "";
      if (/^(text\/|application\/([\w.-]+\+)?(json|xml|x-ndjson|yaml))/i.test(type.trim()))
        // A text in another encoding isn't collected.
        decode = decoders[(headers["content-encoding"] ?? "identity").trim().toLowerCase()];
    },
    add(chunk: Buffer): void {
      if (decode && size < maxRawBytes) chunks.push(chunk);
      size += chunk.length;
    },
    text(): string | undefined {
      try {
        return decode?.(Buffer.concat(chunks).subarray(0, maxRawBytes)).toString().slice(0, maxChars);
      } catch {
        return undefined;
      }
    },
  };
}
