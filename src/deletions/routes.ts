import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { checkOwner } from "../auth/authentication.ts";
import type { Context } from "../context.ts";
import { orgOf, requesterOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery } from "../http/paging.ts";
import { PathId } from "../schema.ts";
import {
  deleteOrg,
  deletePrompt,
  deleteReport,
  deleteRun,
  eraseNow,
  getDeletion,
  listDeletions,
  restore,
} from "./deletions.ts";
import { getRetention, setRetention } from "./retention.ts";
import { Deletion, Retention, RetentionPatch } from "./schema.ts";

const deletionPath = { params: Type.Object({ deletionId: PathId("ID of the deletion") }) };

/** An operation that deletes something, which can be restored. */
const deletes = (operationId: string, summary: string) =>
  operation(
    "Deletions",
    operationId,
    summary,
    { 200: Deletion, ...errors(404) },
    {
      description:
        "It disappears from everything at once, and unfinished runs are cancelled. Until erasesAt it can be restored.",
    },
  );

/** What is deleted, restored and erased. */
const deletionRoutesOf = (ctx: Context) =>
  new Elysia({ name: "deletions" })
    .delete(
      "/api/v1/prompts/:promptId",
      ({ request, params }) => deletePrompt(ctx, orgOf(request, "delete"), params.promptId, requesterOf(request)),
      {
        params: Type.Object({ promptId: PathId("ID of the prompt") }),
        ...deletes("deletePrompt", "Delete a prompt with its runs and reports"),
      },
    )
    .delete(
      "/api/v1/runs/:runId",
      ({ request, params }) => deleteRun(ctx, orgOf(request, "delete"), params.runId, requesterOf(request)),
      {
        params: Type.Object({ runId: PathId("ID of the run") }),
        ...deletes("deleteRun", "Delete a run with its session and report"),
      },
    )
    .delete(
      "/api/v1/reports/:slug",
      ({ request, params }) => deleteReport(ctx, orgOf(request, "delete"), params.slug, requesterOf(request)),
      {
        params: Type.Object({ slug: Type.String({ description: "Slug of the report" }) }),
        ...deletes("deleteReport", "Delete a report with its run"),
      },
    )
    .delete(
      "/api/v1/organization",
      ({ request }) => {
        const org = orgOf(request, "delete");
        checkOwner(ctx, request, "delete the organization");
        return deleteOrg(ctx, org, requesterOf(request));
      },
      operation(
        "Deletions",
        "deleteOrganization",
        "Delete the organization with everything in it",
        { 200: Deletion, ...errors() },
        {
          description:
            "All its API keys stop working at once, this one included. Until erasesAt, an owner can restore it on the account page.",
        },
      ),
    )
    .get(
      "/api/v1/deletions",
      ({ request, query, set }) => listResponse(set, listDeletions(ctx, orgOf(request), pageOf(query))),
      {
        query: Type.Object(pageQuery),
        ...operation("Deletions", "listDeletions", "List what was deleted, newest first", {
          200: listOf(Deletion, "Deletions, newest first"),
          ...errors(400),
        }),
      },
    )
    .get(
      "/api/v1/deletions/:deletionId",
      ({ request, params }) => getDeletion(ctx, orgOf(request), params.deletionId),
      {
        ...deletionPath,
        ...operation("Deletions", "getDeletion", "Get a deletion", { 200: Deletion, ...errors(404) }),
      },
    )
    .post(
      "/api/v1/deletions/:deletionId/restore",
      ({ request, params }) => restore(ctx, orgOf(request, "delete"), params.deletionId),
      {
        ...deletionPath,
        ...operation("Deletions", "restoreDeletion", "Restore what was deleted", {
          200: Deletion,
          ...errors(404, 409),
        }),
      },
    )
    .post(
      "/api/v1/deletions/:deletionId/erase",
      ({ request, params }) => eraseNow(ctx, orgOf(request, "delete"), params.deletionId),
      {
        ...deletionPath,
        ...operation("Deletions", "eraseDeletion", "Erase what was deleted now", {
          200: Deletion,
          ...errors(404, 409),
        }),
      },
    );

export const deletionRoutes = (ctx: Context) =>
  new Elysia({ name: "deletions and retention" })
    .use(deletionRoutesOf(ctx))
    .get("/api/v1/retention", ({ request }) => getRetention(ctx, orgOf(request)), {
      ...operation("Deletions", "getRetention", "Get how long data is kept", { 200: Retention, ...errors() }),
    })
    .patch(
      "/api/v1/retention",
      ({ request, body }) => {
        const org = orgOf(request, "delete");
        checkOwner(ctx, request, "change how long data is kept");
        return setRetention(ctx, org, body);
      },
      {
        ...jsonBody(RetentionPatch),
        ...operation("Deletions", "updateRetention", "Change how long data is kept", {
          200: Retention,
          ...errors(400, 413),
        }),
      },
    );
