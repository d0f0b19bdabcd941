import { Elysia } from "elysia";
import { cancelCalibration, listCalibrations } from "../../calibration/calibrations.ts";
import { requestCalibration } from "../../calibration/requests.ts";
import type { Calibration } from "../../calibration/schema.ts";
import type { Context, OrgId } from "../../context.ts";
import { pageQuery } from "../../http/paging.ts";
import { listPromptChoices } from "../../prompts/lists.ts";
import { promptChoices } from "../components/filter.tsx";
import { readForm } from "../form-values.ts";
import { showPage, submitForm, submitOrShowAgain } from "../page-requests.tsx";
import { pageResponse, seeOther } from "../page-responses.ts";
import { type CalibrationChoices, CalibrationForm, CalibrationPage } from "../pages/calibration.tsx";
import { availableAgents, queryOptions } from "../query.ts";
import type { Site } from "../site.ts";
import { type Viewer, webSourceOf } from "../viewer.ts";

const perPage = 20;

const choicesOf = (ctx: Context, org: OrgId): CalibrationChoices => ({
  prompts: promptChoices(listPromptChoices(ctx, org)),
  agents: availableAgents(ctx),
});

/** What a page of calibrations shows besides the list. `planned`: the calibration that the user must agree to. */
type PageState = { values?: URLSearchParams; planned?: Calibration | null; offset?: number };

function calibrationProps(ctx: Context, viewer: Viewer, site: Site, { values, planned = null, offset = 0 }: PageState) {
  const { items, total } = listCalibrations(ctx, viewer.org, { limit: perPage, offset });
  const list = { calibrations: items, total, offset, perPage, now: ctx.now() };
  return {
    ...{ site, viewer, ...list, ...choicesOf(ctx, viewer.org), planned },
    values: values ?? new URLSearchParams(),
  };
}

/** Pages of calibrations. */
export const calibrationPages = (ctx: Context) =>
  new Elysia({ name: "calibration pages" })
    .get(
      "/calibration",
      ({ request, query: { offset } }) =>
        showPage(ctx, request, (viewer, site) => (
          <CalibrationPage {...calibrationProps(ctx, viewer, site, { offset: offset ?? 0 })} />
        )),
      queryOptions({ offset: pageQuery.offset }),
    )
    .post("/calibration", ({ request }) =>
      submitOrShowAgain(
        ctx,
        request,
        "run",
        (_, viewer, site, { typedValues, formError, errorMessage }) => (
          <CalibrationPage
            {...{ ...calibrationProps(ctx, viewer, site, { values: typedValues }), formError, errorMessage }}
          />
        ),
        async (viewer, form, site) => {
          const { agreed, promptId, ...input } = readForm(CalibrationForm, form);
          const requested = { ...input, ...(promptId && { promptId }), ...webSourceOf(viewer) };
          const planned = await requestCalibration(ctx, viewer.org, { ...requested, dryRun: true });
          const isFree = planned.estimate?.maxUsd === 0;
          if (!isFree && !agreed)
            return pageResponse(
              <CalibrationPage {...calibrationProps(ctx, viewer, site, { values: form, planned })} />,
            );
          const { id } = await requestCalibration(ctx, viewer.org, requested);
          return seeOther(ctx, `/calibration#${id}`);
        },
      ),
    )
    .post("/calibration/:calibrationId/cancel", ({ request, params: { calibrationId } }) =>
      submitForm(ctx, request, "run", async (viewer) => {
        await cancelCalibration(ctx, viewer.org, calibrationId, viewer.person.name);
        return seeOther(ctx, `/calibration#${calibrationId}`);
      }),
    );
