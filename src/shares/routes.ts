import { type Static, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { checkOwner } from "../auth/authentication.ts";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse } from "../http/paging.ts";
import { Id, OneOf, PathId, Time, Url } from "../schema.ts";
import { createShare, listShares, revokeShare, shareDays, shareStates } from "./shares.ts";

const link = {
  id: Id,
  withSession: Type.Boolean({ description: "Whether the session is included" }),
  createdAt: Time,
  expiresAt: Time,
  state: OneOf(shareStates),
};

const example = {
  id: "0199f3a1-2c44-7d0a-8f10-6a7b8c9d0e1f",
  withSession: false,
  createdAt: "2026-11-21T09:30:00.000Z",
  expiresAt: "2026-11-28T09:30:00.000Z",
  state: "active",
};

const ShareLink = Type.Object(link, { title: "ShareLink", examples: [example] });

const NewShareLink = Type.Object(
  { ...link, url: { ...Url, description: "URL of the shared report, returned only once" } },
  {
    title: "MadeShareLink",
    examples: [{ ...example, url: "https://evals.example.com/shared/bqYI3pVJ0mWcQ2nE7xKzT9sLr4uAhGdF1oNwPyXv5iM" }],
  },
);

const ShareInput = Type.Object(
  {
    days: Type.Integer({ description: `Days until the link expires: ${shareDays.join(", ")}` }),
    withSession: Type.Optional(Type.Boolean({ default: false, description: link.withSession.description })),
  },
  { title: "ShareInput", examples: [{ days: 7, withSession: true }] },
);
type ShareInput = Static<typeof ShareInput>;

const path = { slug: Type.String() };

/** Links that show a report without signing in. Only owners create and revoke them. */
export const shareRoutes = (ctx: Context) =>
  new Elysia({ name: "shares" })
    .get(
      "/api/v1/reports/:slug/shares",
      ({ request, params, set }) => {
        const items = listShares(ctx, orgOf(request), params.slug);
        return listResponse(set, { items, total: items.length });
      },
      {
        params: Type.Object(path),
        ...operation("Reports", "listShares", "List the share links of a report, newest first, without their URLs", {
          200: listOf(ShareLink, "Share links, newest first"),
          ...errors(404),
        }),
      },
    )
    .post(
      "/api/v1/reports/:slug/shares",
      ({ request, params, body, set }) => {
        const { days, withSession = false } = body as ShareInput;
        const org = orgOf(request);
        checkOwner(ctx, request, "share reports");
        const share = createShare(ctx, org, params.slug, { days, withSession });
        set.status = 201;
        return share;
      },
      {
        params: Type.Object(path),
        ...jsonBody(ShareInput),
        ...operation(
          "Reports",
          "createShare",
          "Create a share link, which gives access to the report without an account",
          {
            201: NewShareLink,
            ...errors(400, 404, 413),
          },
        ),
      },
    )
    .delete(
      "/api/v1/reports/:slug/shares/:shareId",
      ({ request, params }) => {
        const org = orgOf(request);
        checkOwner(ctx, request, "share reports");
        return revokeShare(ctx, org, params.slug, params.shareId);
      },
      {
        params: Type.Object({ ...path, shareId: PathId("ID of the share link") }),
        ...operation("Reports", "revokeShare", "Revoke a share link", {
          200: ShareLink,
          ...errors(404),
        }),
      },
    );
