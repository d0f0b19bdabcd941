import type http from "node:http";
import { promisify } from "node:util";
import zlib from "node:zlib";
import { decodeText } from "../../net/charset.ts";
import type { AgentEvent } from "../agent.ts";
import { createUrlClassifier } from "../docs-urls.ts";
import { type Reader, toPageReadEvent } from "../reader.ts";
import type { Task } from "../task.ts";

/** Larger pages are passed on without being read, as in the fetch_page tool. */
const maxBytes = 5 * 1024 * 1024;

const limits = { maxOutputLength: maxBytes };
const decoders: Record<string, (raw: Buffer) => Promise<Buffer>> = {
  gzip: (raw) => promisify(zlib.gunzip)(raw, limits),
  deflate: (raw) => promisify(zlib.inflate)(raw, limits),
  br: (raw) => promisify(zlib.brotliDecompress)(raw, limits),
  zstd: (raw) => promisify(zlib.zstdDecompress)(raw, limits),
  identity: async (raw) => raw,
};

/** Reads the docs pages among the responses that pass through the relay, as the agent's own tools read pages. */
export function createPageWatch(
  { startUrls, productUrl, basis }: Task,
  reader: Reader,
  report: (event: AgentEvent) => void,
) {
  const groupOf = createUrlClassifier(startUrls, productUrl);

  return (method: string, url: string, response: http.IncomingMessage): void => {
    const status = response.statusCode ?? 0;
    const group = groupOf(new URL(url));
    const decode = decoders[(response.headers["content-encoding"] ?? "identity").trim().toLowerCase()];
    const isDocs = group === "docs" || group === "shared";
    const isSuccess = status >= 200 && status <= 299;
    if (method !== "GET" || !isDocs || !isSuccess || !decode) return;
    const contentType = response.headers["content-type"] ?? null;
    const chunks: Buffer[] = [];
    let size = 0;
    response.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
    });
    response.on("end", async () => {
      if (size > maxBytes) return;
      try {
        const text = decodeText(await decode(Buffer.concat(chunks)), contentType);
        const { page, events } = reader.read({ url, answeredBy: url, status, contentType, text });
        for (const event of events) report(event);
        if (page && page.problem === null) report(toPageReadEvent(url, page, basis));
      } catch {
        // The program gets the damaged body and reports it itself.
      }
    });
  };
}
