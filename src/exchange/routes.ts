import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errors, type OrgOf, operation } from "../http/operation.ts";
import type { Exports } from "./export.ts";
import { exportQuery, mediaOf } from "./schema.ts";

/** Size of a sent chunk. */
const pieceChars = 64 * 1024;

type Parts = { exports: Exports; onError: (error: unknown) => void };

export const exchangeRoutes = ({ exports, onError }: Parts, orgOf: OrgOf) =>
  new Elysia({ name: "exchange" }).get(
    "/api/v1/export",
    ({ request, query }) => {
      const { type, ending } = mediaOf[query.format ?? "jsonl"];
      const disposition = `attachment; filename="evald-export.${ending}"`;
      return new Response(toStream(exports.exportOrg(orgOf(request), query), onError), {
        headers: { "content-type": type, "content-disposition": disposition, "cache-control": "no-store" },
      });
    },
    {
      query: Type.Object(exportQuery),
      ...operation("Reports", "export", "Export runs, sessions and reports as a file", errors(400, 404), {
        responses: {
          ...operation("", "", "", errors(400, 404)).detail.responses,
          200: {
            description: "The file, streamed. A truncated file lacks its last line.",
            content: Object.fromEntries(
              Object.values(mediaOf).map(({ type }) => [type.split(";")[0] as string, { schema: { type: "string" } }]),
            ),
          },
        },
      }),
    },
  );

/** Reads on only as the client consumes, so a slow client uses no memory and a disconnected one stops the export. */
function toStream(pieces: Iterable<string>, onError: (error: unknown) => void): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.iterator]();
  const encoder = new TextEncoder();
  /** The next part of the file; null at its end. */
  function read(): string | null {
    let text = "";
    while (text.length < pieceChars) {
      const next = iterator.next();
      if (next.done) return text === "" ? null : text;
      text += next.value;
    }
    return text;
  }
  return new ReadableStream(
    {
      async pull(controller) {
        // Yield to other requests: a fast client would otherwise block the event loop.
        await new Promise(setImmediate);
        try {
          const text = read();
          if (text === null) controller.close();
          else controller.enqueue(encoder.encode(text));
        } catch (error) {
          // The response has started, so nobody else sees the error.
          onError(error);
          throw error;
        }
      },
      cancel() {
        iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
