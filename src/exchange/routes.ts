import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { callerOf, checkMayReadAuditLog, orgOf } from "../http/caller.ts";
import { errors, operation } from "../http/operation.ts";
import { downloadExport } from "./download.ts";
import { exportQuery, mediaOf } from "./schema.ts";

export const exchangeRoutes = (ctx: Context) =>
  new Elysia({ name: "exchange" }).get(
    "/api/v1/export",
    ({ request, query }) => {
      if (query.auditLog) checkMayReadAuditLog(callerOf(request));
      return downloadExport(ctx, orgOf(request), query);
    },
    {
      query: Type.Object(exportQuery),
      ...operation("Reports", "export", "Export runs, sessions and reports as a file", {
        200: {
          description: "The file, streamed. A truncated file lacks its last line.",
          headers: {
            "Content-Disposition": { description: "Name of the file", schema: { type: "string" } },
          },
          content: Object.fromEntries(
            Object.values(mediaOf).map(({ type }) => [type.split(";")[0] as string, { schema: { type: "string" } }]),
          ),
        },
        ...errors(400, 404, 429),
      }),
    },
  );
