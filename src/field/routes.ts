import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { jsonBody } from "../http/body.ts";
import { callerOf, orgOf, requesterOf } from "../http/caller.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listAnswer, pageOf, pageQuery } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import type { Field } from "./field.ts";
import type { createFieldReports } from "./reports.ts";
import {
  FieldFriction,
  FieldFrictionChange,
  FieldFrictionDetail,
  FrictionReportInput,
  fieldFilter,
  Received,
} from "./schema.ts";

type Parts = {
  field: Field & ReturnType<typeof createFieldReports>;
};

/** Path of the reports, the only REST path that keys for reporting can use. */
export const fieldPath = "/api/v1/field-friction";

const fieldId = { params: Type.Object({ fieldId: PathId("ID of the field friction") }) };

/** Friction that agents report outside of runs. */
export const fieldRoutes = ({ field }: Parts) =>
  new Elysia({ name: "field" })
    .post(
      fieldPath,
      ({ request, body, set }) => {
        set.status = 201;
        return field.reportFriction(orgOf(request, "report_friction"), callerOf(request).keyId, body);
      },
      {
        ...jsonBody(FrictionReportInput),
        ...operation("Friction", "reportFriction", "Report friction as an agent in the field", {
          201: Received,
          ...errors(400, 413, 429),
        }),
      },
    )
    .get(
      fieldPath,
      ({ request, query: { limit, offset, ...filter }, set }) =>
        listAnswer(set, field.listField(orgOf(request), filter, pageOf({ limit, offset }))),
      {
        query: Type.Object({ ...fieldFilter, ...pageQuery }),
        ...operation("Friction", "listFieldFriction", "List friction that agents in the field reported", {
          200: listOf(FieldFriction, "Field friction, the most recently reported first"),
          ...errors(400),
        }),
      },
    )
    .get(`${fieldPath}/:fieldId`, ({ request, params }) => field.getField(orgOf(request), params.fieldId), {
      ...fieldId,
      ...operation("Friction", "getFieldFriction", "Get field friction with its newest reports", {
        200: FieldFrictionDetail,
        ...errors(404),
      }),
    })
    .patch(
      `${fieldPath}/:fieldId`,
      ({ request, params, body }) => field.changeField(orgOf(request), params.fieldId, body, requesterOf(request)),
      {
        ...fieldId,
        ...jsonBody(FieldFrictionChange),
        ...operation("Friction", "changeFieldFriction", "Resolve, dismiss or reopen field friction", {
          200: FieldFriction,
          ...errors(400, 404, 413),
        }),
      },
    );
