import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, operation } from "../http/operation.ts";
import { PathId } from "../schema.ts";
import { acceptProposals } from "./acceptance.ts";
import { getProposalSet, requestProposals } from "./proposal-sets.ts";
import { AcceptedProposalRequest, CreatedPrompts, ProposalAcceptance, ProposalRequest, ProposalSet } from "./schema.ts";

const path = Type.Object({ proposalSetId: PathId("ID of the set of proposals") });

/** Prompts proposed from docs. */
export const proposalRoutes = (ctx: Context) =>
  new Elysia({ name: "proposals" })
    .post(
      "/api/v1/proposals",
      ({ request, body, set }) => {
        set.status = 202;
        return requestProposals(ctx, orgOf(request, "run"), body);
      },
      {
        ...jsonBody(ProposalRequest),
        ...operation(
          "Prompts",
          "proposePrompts",
          "Propose prompts from docs",
          { 202: AcceptedProposalRequest, ...errors(400, 409, 413, 429) },
          { description: "Reads the docs in the background. Nothing is a prompt until you accept it." },
        ),
      },
    )
    .get(
      "/api/v1/proposals/:proposalSetId",
      ({ request, params }) => getProposalSet(ctx, orgOf(request), params.proposalSetId),
      {
        params: path,
        ...operation("Prompts", "getProposalSet", "Get proposals and their state", {
          200: ProposalSet,
          ...errors(404),
        }),
      },
    )
    .post(
      "/api/v1/proposals/:proposalSetId/prompts",
      ({ request, params, body, set }) => {
        set.status = 201;
        return acceptProposals(ctx, orgOf(request), params.proposalSetId, body);
      },
      {
        params: path,
        ...jsonBody(ProposalAcceptance),
        ...operation("Prompts", "acceptProposals", "Create prompts from proposals", {
          201: CreatedPrompts,
          ...errors(400, 404, 409, 413),
        }),
      },
    );
