import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery, paginate } from "../http/paging.ts";
import { CreatedPrompts } from "../proposals/schema.ts";
import { sourceOf } from "../runs/requests.ts";
import { compareSuite } from "./comparison.ts";
import { createSuitePrompts } from "./members.ts";
import { StartedSuite, Suite, SuiteComparison, SuiteProduct, SuiteRun } from "./schema.ts";
import { runSuite } from "./suite-runs.ts";
import { createSuite, listSuites } from "./suites.ts";

const path = Type.Object({ suiteId: Type.String({ maxLength: 50 }) });

/** Suites: the same tasks for several products. */
export const suiteRoutes = (ctx: Context) =>
  new Elysia({ name: "suites" })
    .get(
      "/api/v1/suites",
      // An organization has few suites.
      ({ request, query, set }) => listResponse(set, paginate(listSuites(ctx, orgOf(request)), pageOf(query))),
      {
        query: Type.Object(pageQuery),
        ...operation("Prompts", "listSuites", "List the newest version of each suite", {
          200: listOf(Suite, "Suites, the built-in one first"),
          ...errors(400),
        }),
      },
    )
    .post(
      "/api/v1/suites",
      ({ request, body, set }) => {
        set.status = 201;
        return createSuite(ctx, orgOf(request), body);
      },
      {
        ...jsonBody(Suite),
        ...operation("Prompts", "createSuite", "Create a suite (version 1), or its next version", {
          201: Suite,
          ...errors(400, 409, 413),
        }),
      },
    )
    .post(
      "/api/v1/suites/:suiteId/prompts",
      ({ request, params, body, set }) => {
        set.status = 201;
        return createSuitePrompts(ctx, orgOf(request), params.suiteId, body);
      },
      {
        params: path,
        ...jsonBody(SuiteProduct),
        ...operation("Prompts", "createSuitePrompts", "Create the prompts of a suite for a product", {
          201: CreatedPrompts,
          ...errors(400, 404, 413),
        }),
      },
    )
    .post(
      "/api/v1/suites/:suiteId/run",
      ({ request, params, body, set }) => {
        set.status = 202;
        return runSuite(ctx, orgOf(request, "run"), params.suiteId, body, sourceOf(request));
      },
      {
        params: path,
        ...jsonBody(SuiteRun),
        ...operation("Prompts", "runSuite", "Run all prompts of a suite", {
          202: StartedSuite,
          ...errors(400, 404, 409, 413),
        }),
      },
    )
    .get(
      "/api/v1/suites/:suiteId/comparison",
      ({ request, params }) => compareSuite(ctx, orgOf(request), params.suiteId),
      {
        params: path,
        ...operation("Prompts", "compareSuite", "Compare products by a suite", {
          200: SuiteComparison,
          ...errors(404),
        }),
      },
    );
