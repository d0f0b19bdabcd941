import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { callerOf, orgOf, requesterOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import { changeFieldFriction, getFieldFriction, listFieldFriction } from "./field.ts";
import { reportFriction } from "./reports.ts";
import {
  FieldFriction,
  FieldFrictionChange,
  FieldFrictionDetail,
  FrictionReportInput,
  fieldFilter,
  Received,
} from "./schema.ts";
import { FieldSessionInput, ReceivedFieldSession } from "./session-schema.ts";
import { reportSession } from "./sessions.ts";

const fieldPath = "/api/v1/field-friction";
const sessionPath = "/api/v1/field-sessions";
/** The only REST paths to which a key for reporting can send requests. */
export const reportPaths = [fieldPath, sessionPath];

const fieldId = { params: Type.Object({ fieldId: PathId("ID of the field friction") }) };

/** Friction that agents report outside of runs. */
export const fieldRoutes = (ctx: Context) =>
  new Elysia({ name: "field" })
    .post(
      fieldPath,
      ({ request, body, set }) => {
        set.status = 201;
        return reportFriction(ctx, orgOf(request, "report_friction"), callerOf(request).keyId, body);
      },
      {
        ...jsonBody(FrictionReportInput),
        ...operation("Friction", "reportFriction", "Report friction from an agent of your users", {
          201: Received,
          ...errors(400, 413, 429),
        }),
      },
    )
    .post(
      sessionPath,
      ({ request, body, set }) => {
        set.status = 201;
        return reportSession(ctx, orgOf(request, "report_friction"), callerOf(request).keyId, body);
      },
      {
        ...jsonBody(FieldSessionInput),
        ...operation("Friction", "reportFieldSession", "Report the failed calls of an agent's session", {
          201: ReceivedFieldSession,
          ...errors(400, 413, 429),
        }),
      },
    )
    .get(
      fieldPath,
      ({ request, query: { limit, offset, ...filter }, set }) =>
        listResponse(set, listFieldFriction(ctx, orgOf(request), filter, pageOf({ limit, offset }))),
      {
        query: Type.Object({ ...fieldFilter, ...pageQuery }),
        ...operation("Friction", "listFieldFriction", "List friction that agents in the field reported", {
          200: listOf(FieldFriction, "Field friction, the most recently reported first"),
          ...errors(400),
        }),
      },
    )
    .get(`${fieldPath}/:fieldId`, ({ request, params }) => getFieldFriction(ctx, orgOf(request), params.fieldId), {
      ...fieldId,
      ...operation("Friction", "getFieldFriction", "Get field friction with its newest reports", {
        200: FieldFrictionDetail,
        ...errors(404),
      }),
    })
    .patch(
      `${fieldPath}/:fieldId`,
      ({ request, params, body }) =>
        changeFieldFriction(ctx, orgOf(request), params.fieldId, body, requesterOf(request)),
      {
        ...fieldId,
        ...jsonBody(FieldFrictionChange),
        ...operation("Friction", "changeFieldFriction", "Resolve, dismiss or reopen field friction", {
          200: FieldFriction,
          ...errors(400, 404, 413),
        }),
      },
    );
