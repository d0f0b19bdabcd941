import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { getOrg } from "../../auth/orgs.ts";
import type { Context } from "../../context.ts";
import { listLoginAgents, listLogins, removeLogin, setLogin } from "../../models/logins.ts";
import { getModel, listModels, removeModelKey, setModelKey } from "../../models/models.ts";
import { describeTrial, tryModel } from "../../models/trial.ts";
import { LoginForm } from "../components/agent-logins.tsx";
import { readForm } from "../form-values.ts";
import { showPage, submitOrShowAgain } from "../page-requests.tsx";
import { ModelKey, ModelsPage } from "../pages/models.tsx";
import type { FormResult } from "../pages/settings.tsx";
import { uploadQuery } from "../received-forms.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

/** The names of the fields with files in the login form. */
const loginFiles = ["file"];

const modelsPage = (ctx: Context, viewer: Viewer, site: Site, result: FormResult = {}) => (
  <ModelsPage
    {...{ site, viewer, config: ctx.config, ...result }}
    providers={listModels(ctx, viewer.org)}
    judgeModels={getOrg(ctx, viewer.org).judgeModels}
    mayChange={may(viewer, "models")}
    logins={{
      agents: listLoginAgents(ctx),
      logins: listLogins(ctx, viewer.org),
      // Only a person can upload a login, and storing it requires a secret key.
      uploadQuery: viewer.person && ctx.config.secretKey && uploadQuery(ctx, viewer.org, viewer.person.id),
      now: ctx.now(),
    }}
  />
);

/** Model settings. */
export const modelPages = (ctx: Context) =>
  new Elysia({ name: "models pages" })
    .get("/settings/models", ({ request }) => showPage(ctx, request, (viewer, site) => modelsPage(ctx, viewer, site)))
    .post("/settings/models", ({ request }) =>
      submitOrShowAgain(ctx, request, "models", modelsPage, (viewer, form, site) => {
        const { provider, key, baseUrl } = readForm(ModelKey, form);
        const storedKey = setModelKey(ctx, viewer.org, provider, key, baseUrl);
        return modelsPage(ctx, viewer, site, {
          successMessage: `API key (${storedKey.key}) saved. Requests go to ${storedKey.baseUrl}.`,
        });
      }),
    )
    .post("/settings/models/forget", ({ request }) =>
      submitOrShowAgain(ctx, request, "models", modelsPage, (viewer, form, site) => {
        removeModelKey(ctx, viewer.org, readForm(Type.Pick(ModelKey, ["provider"]), form).provider);
        return modelsPage(ctx, viewer, site, { successMessage: "API key removed." });
      }),
    )
    .post("/settings/models/logins", ({ request }) =>
      submitOrShowAgain(
        ctx,
        request,
        "models",
        modelsPage,
        (viewer, form, site) => {
          const { agent, file } = readForm(LoginForm, form);
          setLogin(ctx, viewer.org, agent, Buffer.from(file, "base64").toString());
          return modelsPage(ctx, viewer, site, { successMessage: `Login for ${agent} saved.` });
        },
        loginFiles,
      ),
    )
    .post("/settings/models/logins/remove", ({ request }) =>
      submitOrShowAgain(ctx, request, "models", modelsPage, (viewer, form, site) => {
        const { agent } = removeLogin(ctx, viewer.org, readForm(Type.Pick(LoginForm, ["agent"]), form).agent);
        return modelsPage(ctx, viewer, site, { successMessage: `Login for ${agent} removed.` });
      }),
    )
    .post("/settings/models/test", ({ request }) =>
      submitOrShowAgain(ctx, request, "models", modelsPage, async (viewer, form, site) => {
        const model = getModel(ctx, viewer.org, form.get("model") ?? "");
        const successMessage = `${describeTrial(await tryModel(model, ctx.now))}.`;
        return modelsPage(ctx, viewer, site, { successMessage, typedValues: form });
      }),
    );
