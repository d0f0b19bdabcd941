import { changesOf, recordAudit } from "../audit/entries.ts";
import { type Context, type OrgId, perContext } from "../context.ts";
import { limitPerOrg } from "../http/limit-per-org.ts";
import { streamOrg } from "./export.ts";
import type { ExportPieces } from "./export-thread.ts";
import { type ExportFilter, mediaOf } from "./schema.ts";

/** How many exports of one organization may be in progress. Each export to a slow client holds up to a few MiB, and more with a large archive. */
const maxPerOrg = 10;

const entranceOf = perContext(() => limitPerOrg(maxPerOrg, "exports"));

/** Streams an export as a file. Throws bad_request and not_found, and rate_limited while ten exports of the organization are in progress. */
export async function downloadExport(ctx: Context, org: OrgId, filter: ExportFilter): Promise<Response> {
  const { type, ending } = mediaOf[filter.format ?? "jsonl"];
  const disposition = `attachment; filename="evald-export.${ending}"`;
  const leave = entranceOf(ctx)(org);
  try {
    await ctx.commit(() => recordAudit(ctx, org, "export.downloaded", {}, changesOf({}, filter)));
    const pieces = streamOrg(ctx, org, filter);
    return new Response(toStream(pieces, leave, ctx.disk.onError), {
      headers: { "content-type": type, "content-disposition": disposition, "cache-control": "no-store" },
    });
  } catch (error) {
    leave();
    throw error;
  }
}

/**
 * Reads on only when the client consumes, so a slow client uses no memory and a disconnected client stops the export. `onEnd` is called when the
 * export has ended.
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
          // An empty piece only lets other work run in between.
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
