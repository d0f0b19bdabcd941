import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { gateStatuses } from "../../db/tables/gates.ts";
import { findSelfComparison } from "../../experiments/experiments.ts";
import { gateColumns, getGate, listGates } from "../../gates/gates.ts";
import { pageQuery } from "../../http/paging.ts";
import { sortBy } from "../../http/sorting.ts";
import { listPromptChoices } from "../../prompts/lists.ts";
import { Id, OneOf } from "../../schema.ts";
import { showPage } from "../page-requests.tsx";
import { GatePage, GatesPage } from "../pages/gates.tsx";
import { queryOptions } from "../query.ts";

const perPage = 50;

/** Pages of gates. */
export const gatePages = (ctx: Context) =>
  new Elysia({ name: "gate pages" })
    .get(
      "/gates",
      ({ request, query }) =>
        showPage(ctx, request, (viewer, site) => {
          const promptId = query.promptId?.toLowerCase();
          const page = { limit: perPage, offset: query.offset ?? 0 };
          const { items, total } = listGates(ctx, viewer.org, { ...query, promptId }, page);
          const choices = listPromptChoices(ctx, viewer.org);
          const props = { site, viewer, gates: items, total, query, prompts: choices, perPage, now: ctx.now() };
          return <GatesPage {...props} />;
        }),
      queryOptions({
        promptId: Type.Optional(Id),
        status: Type.Optional(OneOf(gateStatuses)),
        sort: sortBy(gateColumns),
        offset: pageQuery.offset,
      }),
    )
    .get("/gates/:gateId", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) => {
        const gate = getGate(ctx, viewer.org, params.gateId);
        const selfComparison = findSelfComparison(ctx, viewer.org, gate.prompts[0]?.id ?? "");
        return <GatePage {...{ site, viewer, gate, selfComparison, now: ctx.now() }} />;
      }),
    );
