import { Elysia } from "elysia";
import { getOrg } from "../../auth/orgs.ts";
import { type ModelProvider, modelProviders } from "../../config/model-settings.ts";
import type { Context } from "../../context.ts";
import { badRequest } from "../../errors.ts";
import { getModel, listModels, removeModelKey, setModelKey } from "../../models/models.ts";
import { describeTrial, tryModel } from "../../models/trial.ts";
import { type FormResult, showPage, submitSettings } from "../page-requests.tsx";
import { ModelsPage } from "../pages/models.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const modelsPage = (ctx: Context, viewer: Viewer, site: Site, result: FormResult = {}) => (
  <ModelsPage
    {...{ site, viewer, config: ctx.config, ...result }}
    models={listModels(ctx, viewer.org)}
    judges={getOrg(ctx, viewer.org).judgeModels}
    mayChange={may(viewer, "models")}
  />
);

/** Model settings. */
export const modelPages = (ctx: Context) =>
  new Elysia({ name: "models pages" })
    .get("/settings/models", ({ request }) => showPage(ctx, request, (viewer, site) => modelsPage(ctx, viewer, site)))
    .post("/settings/models", ({ request }) =>
      submitSettings(ctx, request, "models", modelsPage, (viewer, form, site) => {
        const set = setModelKey(
          ctx,
          viewer.org,
          toProvider(form),
          form.get("key") ?? "",
          form.get("baseUrl") || undefined,
        );
        return modelsPage(ctx, viewer, site, { done: `API key (${set.key}) saved. Requests go to ${set.baseUrl}.` });
      }),
    )
    .post("/settings/models/forget", ({ request }) =>
      submitSettings(ctx, request, "models", modelsPage, (viewer, form, site) => {
        removeModelKey(ctx, viewer.org, toProvider(form));
        return modelsPage(ctx, viewer, site, { done: "API key removed." });
      }),
    )
    .post("/settings/models/test", ({ request }) =>
      submitSettings(ctx, request, "models", modelsPage, async (viewer, form, site) => {
        const model = getModel(ctx, viewer.org, form.get("model") ?? "");
        const done = `${describeTrial(await tryModel(model, ctx.now))}.`;
        return modelsPage(ctx, viewer, site, { done, typed: form });
      }),
    );

function toProvider(form: URLSearchParams): ModelProvider {
  const provider = modelProviders.find((each) => each === form.get("provider"));
  if (!provider) throw badRequest(`The provider must be one of ${modelProviders.join(", ")}.`);
  return provider;
}
