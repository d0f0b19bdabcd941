import type http from "node:http";
import { brotliDecompressSync, constants, gunzipSync, inflateSync } from "node:zlib";

const maxRawBytes = 64 * 1024;
const maxChars = 8_000;

const decoders: Record<string, (raw: Buffer) => Buffer> = {
  gzip: (raw) => gunzipSync(raw, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 16 * maxRawBytes }),
  deflate: (raw) => inflateSync(raw, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 16 * maxRawBytes }),
  br: (raw) => brotliDecompressSync(raw, { maxOutputLength: 16 * maxRawBytes }),
  identity: (raw) => raw,
};

/** Keeps the start of a text response, as evidence of what the product returned; null for other content types. */
export function keepText(headers: http.IncomingHttpHeaders) {
  const type = headers["content-type"] ?? "";
  const decode = decoders[(headers["content-encoding"] ?? "identity").trim().toLowerCase()];
  if (!decode || !/^(text\/|application\/([\w.-]+\+)?(json|xml|x-ndjson|yaml))/i.test(type.trim())) return null;
  const chunks: Buffer[] = [];
  let size = 0;
  return {
    take(chunk: Buffer): void {
      if (size < maxRawBytes) chunks.push(chunk);
      size += chunk.length;
    },
    text(): string | undefined {
      try {
        return decode(Buffer.concat(chunks).subarray(0, maxRawBytes)).toString().slice(0, maxChars);
      } catch {
        return undefined;
      }
    },
  };
}
