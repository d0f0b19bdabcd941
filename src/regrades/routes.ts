import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errors, listOf, type OrgOf, operation } from "../api.ts";
import { jsonBody } from "../body.ts";
import { pageQuery } from "../paging.ts";
import { PathId } from "../schema.ts";
import type { Regrades } from "./regrades.ts";
import { Regrade, RegradeRequest } from "./schema.ts";

type Parts = {
  regrades: Regrades;
  /** Who asks, for a person who reads it later. */
  nameOf: (request: Request) => string;
};

const path = Type.Object({ regradeId: PathId("uuid of the regrade") });

export const regradeRoutes = ({ regrades, nameOf }: Parts, orgOf: OrgOf) =>
  new Elysia({ name: "regrades" })
    .post("/api/v1/regrades", ({ request, body }) => regrades.requestRegrade(orgOf(request), body), {
      ...jsonBody(RegradeRequest),
      ...operation(
        "Reports",
        "regrade",
        "Grade stored sessions again, by another methodology or judge",
        { 200: Regrade, ...errors(400, 404, 409, 413) },
        { description: "What is accepted is never lost. Follow it at statusUrl. No agent is sent." },
      ),
    })
    .get(
      "/api/v1/regrades",
      ({ request, query: { limit = 100, offset }, set }) => {
        const { items, total } = regrades.listRegrades(orgOf(request), { limit, offset: offset ?? 0 });
        set.headers["x-total-count"] = String(total);
        return items;
      },
      {
        query: Type.Object(pageQuery),
        ...operation("Reports", "listRegrades", "List the regrades of the organisation, newest first", {
          200: listOf(Regrade, "Regrades, newest first"),
          ...errors(400),
        }),
      },
    )
    .get(
      "/api/v1/regrades/:regradeId",
      ({ request, params }) => regrades.getRegrade(orgOf(request), params.regradeId),
      {
        params: path,
        ...operation("Reports", "getRegrade", "Get how far a regrade is, and what it cost", {
          200: Regrade,
          ...errors(404),
        }),
      },
    )
    .post(
      "/api/v1/regrades/:regradeId/cancel",
      ({ request, params }) => regrades.cancelRegrade(orgOf(request), params.regradeId, nameOf(request)),
      {
        params: path,
        ...operation("Reports", "cancelRegrade", "End a regrade that has not ended; what it graded stays", {
          200: Regrade,
          ...errors(404, 409),
        }),
      },
    );
