import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { archiveKinds } from "../db/tables/prompts.ts";
import { readBytes } from "../http/body.ts";
import { orgOf } from "../http/caller.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery, paginate } from "../http/paging.ts";
import { OneOf, PathId } from "../schema.ts";
import { checkArchive, maxArchiveBytes, maxSiteBytes } from "./archive-check.ts";
import { createArchive, deleteArchive, listArchives } from "./archives.ts";
import { Archive } from "./schema.ts";

const path = Type.Object({ archiveId: PathId("ID of the archive") });

export const archiveRoutes = (ctx: Context) =>
  new Elysia({ name: "archives" })
    .get(
      "/api/v1/archives",
      ({ request, query, set }) => {
        return listResponse(set, paginate(listArchives(ctx, orgOf(request)), pageOf(query)));
      },
      {
        query: Type.Object(pageQuery),
        ...operation("Prompts", "listArchives", "List archives, newest first", {
          200: listOf(Archive, "Archives, newest first"),
          ...errors(400),
        }),
      },
    )
    .post(
      "/api/v1/archives",
      async ({ request, query: { kind = "workspace" }, set }) => {
        const org = orgOf(request);
        const maxBytes = kind === "site" ? maxSiteBytes : maxArchiveBytes;
        const archive = await checkArchive(await readBytes(request, maxBytes), "body", maxBytes);
        set.status = 201;
        return createArchive(ctx, org, archive, kind);
      },
      {
        query: Type.Object({
          kind: Type.Optional(OneOf(archiveKinds, "What the archive holds. Default: workspace")),
        }),
        // The body is not parsed, even if its content type is JSON.
        parse: () => null,
        ...operation(
          "Prompts",
          "createArchive",
          "Upload the starting files of workspaces, a tar.gz of at most 5 MiB, or a built docs site of at most 15 MiB",
          { 201: Archive, ...errors(400, 409, 413) },
          {
            requestBody: {
              required: true,
              content: { "application/gzip": { schema: { type: "string", format: "binary" } } },
            },
          },
        ),
      },
    )
    .delete(
      "/api/v1/archives/:archiveId",
      ({ request, params }) => deleteArchive(ctx, orgOf(request), params.archiveId),
      {
        params: path,
        ...operation("Prompts", "deleteArchive", "Delete an archive that no prompt uses", {
          200: Archive,
          ...errors(404, 409),
        }),
      },
    );
