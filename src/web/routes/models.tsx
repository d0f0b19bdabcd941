import { Elysia } from "elysia";
import { getOrg } from "../../auth/orgs.ts";
import { type ModelProvider, modelProviders } from "../../config/model-settings.ts";
import { badRequest } from "../../errors.ts";
import { getModel, listModels, removeModelKey, setModelKey } from "../../models/models.ts";
import { describeTrial, tryModel } from "../../models/trial.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import type { PageRequests } from "../page-requests.tsx";
import { ModelsPage } from "../pages/models.tsx";
import { type FormResult, settingsForms } from "../settings-forms.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

/** Model settings. */
export const modelPages = ({ ctx }: Service, pages: PageRequests) => {
  const { config, now } = ctx;
  const act = settingsForms(pages);

  const modelsPage = (viewer: Viewer, site: Site, result: FormResult = {}, status = 200) =>
    privateAnswer(
      "html",
      toPage(
        <ModelsPage
          {...{ site, viewer, config, ...result }}
          models={listModels(ctx, viewer.org)}
          judges={getOrg(ctx, viewer.org).judgeModels}
          mayChange={may(viewer, "models")}
        />,
      ),
      status,
    );

  return new Elysia({ name: "models pages" })
    .get("/settings/models", ({ request }) => pages.show(request, (viewer, site) => modelsPage(viewer, site)))
    .post("/settings/models", ({ request }) =>
      act(request, "models", modelsPage, (viewer, form, site) => {
        const set = setModelKey(
          ctx,
          viewer.org,
          toProvider(form),
          form.get("key") ?? "",
          form.get("baseUrl") || undefined,
        );
        return modelsPage(viewer, site, { done: `API key (${set.key}) saved. Requests go to ${set.baseUrl}.` });
      }),
    )
    .post("/settings/models/forget", ({ request }) =>
      act(request, "models", modelsPage, (viewer, form, site) => {
        removeModelKey(ctx, viewer.org, toProvider(form));
        return modelsPage(viewer, site, { done: "API key removed." });
      }),
    )
    .post("/settings/models/test", ({ request }) =>
      act(request, "models", modelsPage, async (viewer, form, site) => {
        const model = getModel(ctx, viewer.org, form.get("model") ?? "");
        const done = `${describeTrial(await tryModel(model, now))}.`;
        return modelsPage(viewer, site, { done, typed: form });
      }),
    );
};

function toProvider(form: URLSearchParams): ModelProvider {
  const provider = modelProviders.find((each) => each === form.get("provider"));
  if (!provider) throw badRequest(`The provider must be one of ${modelProviders.join(", ")}.`);
  return provider;
}
