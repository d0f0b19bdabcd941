import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { downloadAuditLog, listAuditActors, listAuditEntries } from "../../audit/audit-log.ts";
import { type AuditFilter, auditCursor, auditFilter, auditFormats } from "../../audit/schema.ts";
import type { Context } from "../../context.ts";
import { AppError } from "../../errors.ts";
import { OneOf } from "../../schema.ts";
import { showPage } from "../page-requests.tsx";
import { AuditLogPage } from "../pages/audit-log.tsx";
import { dayAfter, queryOptions } from "../query.ts";
import { may, refusalOf, type Viewer } from "../viewer.ts";

const perPage = 50;

/** Throws forbidden if the viewer may not read the audit log. It contains the IP addresses of people. */
function checkMayRead(viewer: Viewer): void {
  if (!may(viewer, "audit")) throw new AppError("forbidden", refusalOf(viewer, "audit"));
}

/** Turns the values of the form into a filter. The last day is included. */
const toFilter = ({ until, ...filter }: AuditFilter): AuditFilter => ({ ...filter, until: dayAfter(until) });

/** The audit log and its downloads. */
export const auditPages = (ctx: Context) =>
  new Elysia({ name: "audit pages" })
    .get(
      "/settings/audit-log",
      ({ request, query: { before, ...filter } }) =>
        showPage(ctx, request, (viewer, site) => {
          checkMayRead(viewer);
          const log = listAuditEntries(ctx, viewer.org, toFilter(filter), { before, limit: perPage });
          const actors = listAuditActors(ctx, viewer.org);
          return <AuditLogPage {...{ site, viewer, log, actors, filter }} isFirst={before === undefined} />;
        }),
      queryOptions({ ...auditFilter, ...auditCursor }),
    )
    .get(
      "/settings/audit-log/export",
      ({ request, query: { format = "csv", ...filter } }) =>
        showPage(ctx, request, (viewer) => {
          checkMayRead(viewer);
          return downloadAuditLog(ctx, viewer.org, toFilter(filter), format);
        }),
      queryOptions({ ...auditFilter, format: Type.Optional(OneOf(auditFormats)) }),
    );
