import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context } from "../context.ts";
import { callerOf, checkMayReadAuditLog, orgOf } from "../http/caller.ts";
import { limitPerOrg } from "../http/limit-per-org.ts";
import { errors, operation } from "../http/operation.ts";
import { streamOrg } from "./export.ts";
import type { ExportPieces } from "./export-thread.ts";
import { exportQuery, mediaOf } from "./schema.ts";

/** Exports of one organization in progress. One to a slow client holds up to a few MiB, a large archive even more. */
const maxPerOrg = 10;

export const exchangeRoutes = (ctx: Context) => {
  const enter = limitPerOrg(maxPerOrg, "exports");
  return new Elysia({ name: "exchange" }).get(
    "/api/v1/export",
    async ({ request, query }) => {
      const { type, ending } = mediaOf[query.format ?? "jsonl"];
      const disposition = `attachment; filename="evald-export.${ending}"`;
      const org = orgOf(request);
      if (query.auditLog) checkMayReadAuditLog(callerOf(request));
      const leave = enter(org);
      try {
        await ctx.commit(() => recordAudit(ctx, org, "export.downloaded", {}, changesOf({}, query)));
        const pieces = streamOrg(ctx, org, query);
        return new Response(toStream(pieces, leave, ctx.disk.onError), {
          headers: { "content-type": type, "content-disposition": disposition, "cache-control": "no-store" },
        });
      } catch (error) {
        leave();
        throw error;
      }
    },
    {
      query: Type.Object(exportQuery),
      ...operation("Reports", "export", "Export runs, sessions and reports as a file", errors(400, 404, 429), {
        responses: {
          ...operation("", "", "", errors(400, 404, 429)).detail.responses,
          200: {
            description: "The file, streamed. A truncated file lacks its last line.",
            headers: {
              "Content-Disposition": { description: "Name of the file", schema: { type: "string" } },
            },
            content: Object.fromEntries(
              Object.values(mediaOf).map(({ type }) => [type.split(";")[0] as string, { schema: { type: "string" } }]),
            ),
          },
        },
      }),
    },
  );
};

/**
 * Reads on only as the client consumes, so a slow client uses no memory and a disconnected one stops the export. `onEnd` is called when
 * the export has ended.
 */
function toStream(
  pieces: ExportPieces,
  onEnd: () => void,
  onError: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  let isGone = false;
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          let next: Uint8Array | null;
          do next = await pieces.next();
          while (next?.length === 0 && !isGone);
          if (isGone) return;
          if (next !== null) return controller.enqueue(next);
          onEnd();
          controller.close();
        } catch (error) {
          onEnd();
          // The response has started, so nobody else sees the error.
          onError(error);
          throw error;
        }
      },
      cancel() {
        isGone = true;
        onEnd();
        pieces.close();
      },
    },
    { highWaterMark: 0 },
  );
}
