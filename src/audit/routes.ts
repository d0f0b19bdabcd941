import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { callerOf, checkMayReadAuditLog } from "../http/caller.ts";
import { errors, operation } from "../http/operation.ts";
import { pageQuery } from "../http/paging.ts";
import { OneOf } from "../schema.ts";
import { downloadAuditLog, listAuditEntries } from "./audit-log.ts";
import { AuditLog, auditCursor, auditFilter, auditFormats } from "./schema.ts";

const described = operation(
  "System",
  "getAuditLog",
  "List who changed what, newest first",
  { 200: AuditLog, ...errors(400) },
  { description: "Needs a key with the scope audit. csv and jsonl contain all entries that match." },
);

/** Who did what in the organization. */
export const auditRoutes = (ctx: Context) =>
  new Elysia({ name: "audit" }).get(
    "/api/v1/audit-log",
    async ({ request, query: { before, limit = 100, format = "json", ...filter } }) => {
      const caller = callerOf(request);
      checkMayReadAuditLog(caller);
      return format === "json"
        ? listAuditEntries(ctx, caller.org, filter, { before, limit })
        : await downloadAuditLog(ctx, caller.org, filter, format);
    },
    {
      query: Type.Object({
        ...auditFilter,
        ...auditCursor,
        limit: pageQuery.limit,
        format: Type.Optional(OneOf(["json", ...auditFormats], "csv, jsonl: a file with all entries")),
      }),
      ...described,
    },
  );
