import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { badRequest } from "../../errors.ts";
import { changeFieldFriction, getFieldFriction, listFieldFriction } from "../../field/field.ts";
import { FieldFrictionChange, fieldFilter } from "../../field/schema.ts";
import { showPage, submitForm } from "../page-requests.tsx";
import { seeOther } from "../page-responses.ts";
import { FieldFrictionDetailPage, FieldFrictionPage, fieldFrictionPerPage } from "../pages/field-friction.tsx";
import { queryOptions } from "../query.ts";

const listQuery = queryOptions({
  ...fieldFilter,
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })),
});

/** Friction that agents in the field reported. */
export const fieldFrictionPages = (ctx: Context) =>
  new Elysia({ name: "field friction pages" })
    .get(
      "/friction/field",
      ({ request, query }) =>
        showPage(ctx, request, (viewer, site) => {
          const { offset = 0, ...filter } = query;
          const friction = listFieldFriction(ctx, viewer.org, filter, { limit: fieldFrictionPerPage, offset });
          return <FieldFrictionPage {...{ site, viewer, friction, query }} />;
        }),
      listQuery,
    )
    .get("/friction/field/:fieldId", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) => {
        const friction = getFieldFriction(ctx, viewer.org, params.fieldId);
        return <FieldFrictionDetailPage {...{ site, viewer, friction }} />;
      }),
    )
    .post("/friction/field/:fieldId/state", ({ request, params }) =>
      submitForm(ctx, request, "write", (viewer, form) => {
        const change = { state: form.get("state"), reason: form.get("reason") };
        if (!Value.Check(FieldFrictionChange, change)) throw badRequest("Choose open, resolved or dismissed.");
        changeFieldFriction(ctx, viewer.org, params.fieldId, change, viewer.person.name);
        return seeOther(ctx, `/friction/field/${params.fieldId}`);
      }),
    );
