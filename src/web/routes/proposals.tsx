import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context, OrgId } from "../../context.ts";
import { badRequest } from "../../errors.ts";
import { agentOfPrompt } from "../../prompts/prompt-check.ts";
import { acceptProposals } from "../../proposals/acceptance.ts";
import { checkSkill, getProposalSet, listProposalSets, requestProposals } from "../../proposals/proposal-sets.ts";
import { listProposalModels } from "../../proposals/propose-with-model.ts";
import { requestEval } from "../../runs/requests.ts";
import { renderFragment } from "../components/layout.tsx";
import { readForm } from "../form-values.ts";
import { showPage, streamPart, submitForm, submitOrShowAgain } from "../page-requests.tsx";
import { pageResponse, seeOther, seeOtherWithToast } from "../page-responses.ts";
import { ProposalForm, ProposalSetPage, ProposalSetPart, ProposePage } from "../pages/proposals.tsx";
import { queryOptions } from "../query.ts";
import { statusOf } from "../responses.ts";
import type { Site } from "../site.ts";
import { type Viewer, webSourceOf } from "../viewer.ts";
import { isInputError } from "./prompt-form.tsx";

const maxSetsListed = 5;

/** The model that runs of new prompts would use; null: none. */
const paidModelOf = (ctx: Context, org: OrgId): string | null =>
  agentOfPrompt(ctx, org, { agent: null, model: null }).model;

const listProps = (ctx: Context, org: OrgId) => ({
  sets: listProposalSets(ctx, org, { limit: maxSetsListed, offset: 0 }).items,
  models: listProposalModels(ctx, org),
  now: ctx.now(),
});

const setProps = (ctx: Context, viewer: Viewer, site: Site, id: string) => ({
  site,
  viewer,
  set: getProposalSet(ctx, viewer.org, id),
  paidModel: paidModelOf(ctx, viewer.org),
});

/** The proposals that a form selects, and its edits of their texts. Throws bad_request. */
function toAcceptance(form: URLSearchParams) {
  const only = form.getAll("only").map(Number);
  if (only.length === 0 || !only.every(Number.isInteger)) throw badRequest("Select at least one proposal.");
  const textOf = (field: string, number: number) => form.get(`${field}.${number}`)?.trim() || undefined;
  const edits = only.map((number) => ({ number, title: textOf("title", number), endGoal: textOf("endGoal", number) }));
  return { only: [...new Set(only)], edits };
}

/** Pages that propose prompts from docs. */
export const proposalPages = (ctx: Context) =>
  new Elysia({ name: "proposal pages" })
    .get(
      "/prompts/propose",
      ({ request, query: { docsUrl = "" } }) =>
        showPage(ctx, request, (viewer, site) => {
          const values = new URLSearchParams({ docsUrl });
          return <ProposePage {...{ site, viewer, values }} {...listProps(ctx, viewer.org)} />;
        }),
      queryOptions({ docsUrl: Type.Optional(Type.String({ maxLength: 2000 })) }),
    )
    .post("/prompts/propose", ({ request }) =>
      submitOrShowAgain(
        ctx,
        request,
        "run",
        (_, viewer, site, { typedValues, formError, errorMessage }) => (
          <ProposePage
            {...{ site, viewer, formError, errorMessage }}
            values={typedValues ?? new URLSearchParams()}
            {...listProps(ctx, viewer.org)}
          />
        ),
        async (viewer, form) => {
          const { skill, ...fields } = readForm(ProposalForm, form);
          if (skill !== undefined) checkSkill("skill", skill);
          const files = skill === undefined ? [] : [{ name: "SKILL.md", text: skill }];
          const { proposalSetId } = await requestProposals(ctx, viewer.org, { ...fields, files });
          return seeOther(ctx, `/prompts/propose/${proposalSetId}`);
        },
      ),
    )
    .get("/prompts/propose/:proposalSetId", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) => (
        <ProposalSetPage {...setProps(ctx, viewer, site, params.proposalSetId)} />
      )),
    )
    .get("/prompts/propose/:proposalSetId/live", ({ request, params }) =>
      streamPart(ctx, request, (viewer, site) => {
        // Checked here, so that not_found is an error of the request and not of its stream.
        getProposalSet(ctx, viewer.org, params.proposalSetId);
        return () => renderFragment(<ProposalSetPart {...setProps(ctx, viewer, site, params.proposalSetId)} />, viewer);
      }),
    )
    .post("/prompts/propose/:proposalSetId", ({ request, params: { proposalSetId } }) =>
      submitForm(ctx, request, "write", async (viewer, form, site) => {
        const { org } = viewer;
        const startsRuns = form.get("do") === "run";
        try {
          if (startsRuns && paidModelOf(ctx, org) !== null && !form.has("agreed"))
            throw badRequest("These runs use a paid model. Select the checkbox to accept their cost.");
          const { prompts } = acceptProposals(ctx, org, proposalSetId, toAcceptance(form));
          if (!startsRuns) return seeOtherWithToast(ctx, "/prompts", "promptsCreated");
          for (const { promptId } of prompts) {
            const idempotencyKey = `${proposalSetId}-${promptId}`;
            await requestEval(ctx, org, promptId, { urlMap: {}, runs: null, idempotencyKey, ...webSourceOf(viewer) });
          }
          return seeOtherWithToast(ctx, "/runs", "runsStarted");
        } catch (error) {
          if (!isInputError(error)) throw error;
          const rejected = { values: form, errorMessage: error.detail };
          const props = setProps(ctx, viewer, site, proposalSetId);
          return pageResponse(<ProposalSetPage {...{ ...props, rejected }} />, statusOf(error));
        }
      }),
    );
