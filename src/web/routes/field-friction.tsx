import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Elysia } from "elysia";
import { badRequest } from "../../errors.ts";
import { changeFieldFriction, getFieldFriction, listFieldFriction } from "../../field/field.ts";
import { FieldFrictionChange, fieldFilter } from "../../field/schema.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import type { PageRequests } from "../page-requests.tsx";
import { FieldFrictionDetailPage, FieldFrictionPage, fieldShown } from "../pages/field-friction.tsx";
import { withoutBlanks } from "../query.ts";

const query = Type.Object({
  ...fieldFilter,
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })),
});
const params = Type.Object({ fieldId: Type.String() });
/** Friction that agents in the field reported. */
export const fieldFrictionPages = ({ ctx }: Service, pages: PageRequests) =>
  new Elysia({ name: "field friction pages" })
    .get(
      "/friction/field",
      ({ request, query }) =>
        pages.show(request, (viewer, site) => {
          const { offset = 0, ...filter } = query;
          const found = listFieldFriction(ctx, viewer.org, filter, { limit: fieldShown, offset });
          return privateAnswer("html", toPage(<FieldFrictionPage {...{ site, viewer, found, query }} />));
        }),
      { transform: withoutBlanks, query },
    )
    .get(
      "/friction/field/:fieldId",
      ({ request, params }) =>
        pages.show(request, (viewer, site) => {
          const friction = getFieldFriction(ctx, viewer.org, params.fieldId);
          return privateAnswer("html", toPage(<FieldFrictionDetailPage {...{ site, viewer, friction }} />));
        }),
      { params },
    )
    .post(
      "/friction/field/:fieldId/state",
      ({ request, params }) =>
        pages.submit(request, "write", (viewer, form) => {
          const change = { state: form.get("state"), reason: form.get("reason") };
          if (!Value.Check(FieldFrictionChange, change)) throw badRequest("Choose open, resolved or dismissed.");
          changeFieldFriction(ctx, viewer.org, params.fieldId, change, viewer.person.name);
          return pages.seeOther(`/friction/field/${params.fieldId}`);
        }),
      { params },
    );
