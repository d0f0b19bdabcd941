import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { listArchives } from "../../archives/archives.ts";
import type { Context, OrgId } from "../../context.ts";
import { badRequest, invalidField } from "../../errors.ts";
import { equalArms, presetArms, withholdingArms } from "../../experiments/design.ts";
import { getExperiment, getExperimentRow, listExperiments } from "../../experiments/experiments.ts";
import { cancelExperiment } from "../../experiments/progress.ts";
import { estimateExperiment, requestExperiment } from "../../experiments/requests.ts";
import { listEndedRuns } from "../../experiments/results.ts";
import { runsCsv } from "../../experiments/runs-csv.ts";
import type { ExperimentRequest } from "../../experiments/schema.ts";
import { getDocsMap } from "../../friction/docs-map.ts";
import { pageQuery } from "../../http/paging.ts";
import { listPromptChoices, listTags } from "../../prompts/lists.ts";
import { listProviders } from "../../providers/providers.ts";
import { getReport } from "../../reports/reports.ts";
import { promptChoices } from "../components/filter.tsx";
import { assignments, lines, readForm, verbatim } from "../form-values.ts";
import { showPage, submitForm, submitOrShowAgain } from "../page-requests.tsx";
import { pageResponse, seeOther } from "../page-responses.ts";
import { type ExperimentChoices, ExperimentForm, NewExperimentPage } from "../pages/experiment-form.tsx";
import { ExperimentPage, ExperimentsPage } from "../pages/experiments.tsx";
import { availableAgents, queryOptions } from "../query.ts";
import { toDownload } from "../responses.ts";
import { webSourceOf } from "../viewer.ts";

const perPage = 50;
const defaultRepeats = "5";
/** A comparison of a prompt with itself needs more runs, because it looks for rare false alarms. */
const selfComparisonRepeats = "40";
const formats = { hidden: lines, editFind: verbatim, editReplacement: verbatim, templateArgs: assignments };

function choicesOf(ctx: Context, org: OrgId): ExperimentChoices {
  return {
    prompts: promptChoices(listPromptChoices(ctx, org)),
    tags: listTags(ctx, org),
    archives: listArchives(ctx, org)
      .filter(({ kind }) => kind === "workspace")
      .map(({ id, files, createdAt }) => [id, `${id} (${files} files, ${createdAt.slice(0, 10)})`] as const),
    agents: availableAgents(ctx),
    providers: listProviders(ctx, org).map(({ id, name }) => [id, name] as const),
  };
}

/** The experiment that a form requests. Throws bad_request for a form that compares nothing. */
function toRequest(ctx: Context, org: OrgId, form: ExperimentForm): ExperimentRequest {
  const { promptId, tag, repeats, everyWeeks, budgetUsd, shouldTag, shouldNotTag, triggerOf, templateArgs } = form;
  const arms = toArms(ctx, org, form);
  if (arms.length < 2) throw badRequest("There is nothing to compare yet. Fill in a field that adds an arm.");
  const settings = { arms, repeats, everyWeeks, budgetUsd, templateArgs };
  // If there are labels, their tags select the prompts, and the other fields are ignored.
  if (shouldTag || shouldNotTag) {
    const labels = { should: shouldTag ? [shouldTag] : [], shouldNot: shouldNotTag ? [shouldNotTag] : [] };
    return { ...settings, triggering: { of: triggerOf || undefined, ...labels } };
  }
  return { ...settings, ...(promptId ? { promptIds: [promptId] } : { tag }) };
}

/** The arms that a form requests. Throws bad_request for an incomplete edit, and not_found. */
function toArms(ctx: Context, org: OrgId, form: ExperimentForm): ExperimentRequest["arms"] {
  const { promptId, skillsArchive, llmsTxtOf, hidden = [], withoutPages, itself } = form;
  const { mcpUrl, bare, otherAgent, otherModel, competitorId, editUrl, editFind = "", editReplacement = "" } = form;
  if ((editUrl === undefined) !== (editFind === ""))
    throw badRequest("To edit a page, fill in both its URL and the text to replace.");
  if (itself) return equalArms;
  if (withoutPages !== undefined) {
    if (!promptId) throw invalidField("withoutPages", "choose one prompt, whose pages are hidden");
    return withholdingArms(getDocsMap(ctx, org, { promptId }, {}).pages, withoutPages);
  }
  const edit = editUrl === undefined ? undefined : { url: editUrl, find: editFind, replacement: editReplacement };
  return presetArms({
    ...{ bare, mcpUrl, withoutLlmsTxt: llmsTxtOf, otherAgent, otherModel, competitorId },
    skills: skillsArchive === undefined ? undefined : { archive: skillsArchive },
    hidden: hidden.length > 0 ? hidden : undefined,
    replacements: edit && [edit],
  });
}

/** Pages of experiments. */
export const experimentPages = (ctx: Context) =>
  new Elysia({ name: "experiment pages" })
    .get(
      "/experiments",
      ({ request, query }) =>
        showPage(ctx, request, (viewer, site) => {
          const offset = query.offset ?? 0;
          const { items, total } = listExperiments(ctx, viewer.org, { limit: perPage, offset });
          const props = { site, viewer, experiments: items, total, offset, perPage, now: ctx.now() };
          return <ExperimentsPage {...props} />;
        }),
      queryOptions({ offset: pageQuery.offset }),
    )
    .get(
      "/experiments/new",
      ({ request, query: { prompt = "", tag = "", report, fix, itself } }) =>
        showPage(ctx, request, (viewer, site) => {
          const choices = choicesOf(ctx, viewer.org);
          const [firstPromptId = ""] = choices.prompts[0] ?? [];
          const promptId = prompt || (tag === "" ? firstPromptId : "");
          const repeats = itself ? selfComparisonRepeats : defaultRepeats;
          const values = new URLSearchParams({ promptId, tag, repeats });
          if (itself) values.set("itself", "on");
          if (report !== undefined && fix !== undefined)
            for (const [name, value] of Object.entries(valuesOfFix(ctx, viewer.org, report, fix)))
              values.set(name, value);
          return <NewExperimentPage {...{ site, viewer, values, estimate: null }} {...choices} />;
        }),
      queryOptions({
        prompt: Type.Optional(Type.String({ maxLength: 36 })),
        tag: Type.Optional(Type.String({ maxLength: 50 })),
        report: Type.Optional(Type.String({ maxLength: 200 })),
        itself: Type.Optional(Type.Literal("1")),
        fix: Type.Optional(Type.String({ maxLength: 36 })),
      }),
    )
    .post("/experiments/new", ({ request }) =>
      submitOrShowAgain(
        ctx,
        request,
        "run",
        (_, viewer, site, { typedValues, formError, errorMessage }) => (
          <NewExperimentPage
            {...{ site, viewer, formError, errorMessage, estimate: null }}
            values={typedValues ?? new URLSearchParams()}
            {...choicesOf(ctx, viewer.org)}
          />
        ),
        async (viewer, form, site) => {
          const values = readForm(ExperimentForm, form, formats);
          const input = toRequest(ctx, viewer.org, values);
          const estimate = estimateExperiment(ctx, viewer.org, input);
          if (values.do === "estimate" || (estimate.maxUsd !== 0 && !values.agreed))
            return pageResponse(
              <NewExperimentPage {...{ site, viewer, values: form, estimate }} {...choicesOf(ctx, viewer.org)} />,
            );
          const { id } = await requestExperiment(ctx, viewer.org, { ...input, ...webSourceOf(viewer) });
          return seeOther(ctx, `/experiments/${id}`);
        },
      ),
    )
    .get("/experiments/:experimentId", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) => (
        <ExperimentPage
          {...{ site, viewer, now: ctx.now(), experiment: getExperiment(ctx, viewer.org, params.experimentId) }}
        />
      )),
    )
    .get("/experiments/:experimentId/runs.csv", ({ request, params }) =>
      showPage(ctx, request, (viewer) => {
        const row = getExperimentRow(ctx, viewer.org, params.experimentId);
        return toDownload("csv", runsCsv(listEndedRuns(ctx, row)), `evald-experiment-${row.id}`);
      }),
    )
    .post("/experiments/:experimentId/cancel", ({ request, params: { experimentId } }) =>
      submitForm(ctx, request, "run", async (viewer) => {
        await cancelExperiment(ctx, viewer.org, experimentId, viewer.person.name);
        return seeOther(ctx, `/experiments/${experimentId}`);
      }),
    );

/** The values of the form for an experiment that tries a recommended fix. Throws not_found. */
function valuesOfFix(ctx: Context, org: OrgId, slug: string, fixId: string): Record<string, string> {
  const report = getReport(ctx, org, slug);
  const evidence = report.recommendations.find(({ id }) => id === fixId)?.evidence;
  return {
    promptId: report.prompt.id,
    editUrl: evidence?.url ?? "",
    editFind: evidence?.found ?? "",
    editReplacement: evidence?.expected ?? "",
  };
}
