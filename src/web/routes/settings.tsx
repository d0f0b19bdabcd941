import { Elysia } from "elysia";
import { AppError, badRequest } from "../../errors.ts";
import { trialWords, tryModel } from "../../models/trial.ts";
import { type ModelProvider, modelProviders } from "../../modelsettings.ts";
import type { Service } from "../../service.ts";
import { privateAnswer, statusOf } from "../answer.ts";
import { page } from "../describe.ts";
import type { Front } from "../front.tsx";
import { toPage } from "../layout.tsx";
import { sentenceOf } from "../pages/error.tsx";
import { KeysPage } from "../pages/keys.tsx";
import { ModelsPage } from "../pages/models.tsx";
import { OrgPage } from "../pages/settings.tsx";
import { idIn } from "../query.ts";
import type { Site } from "../site.ts";
import { type Act, may, type Viewer } from "../viewer.ts";

const dayMs = 24 * 3600_000;

/** What came of a form, and what was typed where it could not be taken. */
type Came = { done?: string; wrong?: string; typed?: URLSearchParams };

/** The organisation, its API keys and its models. */
export const settingsPages = ({ deps, orgs, keys, models, money }: Service, front: Front) => {
  const { config, now } = deps;

  const orgPage = (viewer: Viewer, site: Site, came: Came = {}, status = 200) =>
    privateAnswer(
      "html",
      toPage(
        <OrgPage
          {...{ site, viewer, ...came }}
          org={orgs.getOrg(viewer.org)}
          spentUsd={money.getSpending(viewer.org).spentUsd}
          defaults={{ runsAtOnce: config.runsPerOrg, runsADay: config.runsADay }}
          mayChange={may(viewer, "organisation")}
        />,
      ),
      status,
    );
  const keysPage = (
    viewer: Viewer,
    site: Site,
    came: Came & { made?: ReturnType<typeof keys.createKey> } = {},
    status = 200,
  ) =>
    privateAnswer(
      "html",
      toPage(
        <KeysPage
          {...{ site, viewer, ...came }}
          keys={keys.listKeys(viewer.org)}
          nextId={deps.newId(now())}
          now={now()}
          mayChange={may(viewer, "keys")}
        />,
      ),
      status,
    );
  const modelsPage = (viewer: Viewer, site: Site, came: Came = {}, status = 200) =>
    privateAnswer(
      "html",
      toPage(
        <ModelsPage
          {...{ site, viewer, config, ...came }}
          models={models.listModels(viewer.org)}
          judges={orgs.getOrg(viewer.org).judgeModels}
          mayChange={may(viewer, "models")}
        />,
      ),
      status,
    );

  /** Does what a form asks for; where it cannot be had, `show` shows the page again with what was typed and why not. */
  const act = (
    request: Request,
    what: Act,
    show: (viewer: Viewer, site: Site, came: Came, status: number) => Response,
    work: (viewer: Viewer, form: URLSearchParams, site: Site) => Response | Promise<Response>,
  ): Promise<Response> =>
    front.act(request, what, async (viewer, form, site) => {
      try {
        return await work(viewer, form, site);
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        return show(viewer, site, { wrong: sentenceOf(error.detail), typed: form }, statusOf(error));
      }
    });

  return new Elysia({ name: "settings pages" })
    .get(
      "/settings",
      ({ request }) => front.show(request, (viewer, site) => orgPage(viewer, site)),
      page("settingsPage", "Name, time zone and limits of the organisation", { needsKey: true }),
    )
    .post(
      "/settings",
      ({ request }) =>
        act(request, "organisation", orgPage, (viewer, form, site) => {
          orgs.updateOrg(viewer.org, {
            name: form.get("name") ?? undefined,
            timeZone: form.get("timeZone") ?? undefined,
            maxRunsAtOnce: toLimit(form, "maxRunsAtOnce", "Runs at once"),
            maxRunsADay: toLimit(form, "maxRunsADay", "Runs a day"),
            maxUsdAMonth: toUsd(form, "maxUsdAMonth", "USD a month"),
            maxUsdARun: toUsd(form, "maxUsdARun", "USD a run"),
            judgeModels: toNames(form, "judgeModels"),
          });
          return orgPage({ ...viewer, orgName: orgs.getOrg(viewer.org).name }, site, { done: "Saved." });
        }),
      page("changeSettings", "Change the organisation, by its form", { needsKey: true, refuses: true }),
    )
    .get(
      "/settings/keys",
      ({ request }) => front.show(request, (viewer, site) => keysPage(viewer, site)),
      page("keysPage", "The API keys of the organisation", { needsKey: true }),
    )
    .post(
      "/settings/keys",
      ({ request }) =>
        act(request, "keys", keysPage, (viewer, form, site) => {
          const held = form.getAll("scope");
          const days = Number(form.get("days") ?? "");
          if (held.length === 0) throw badRequest("choose at least one thing that the key may do");
          if (!(Number.isInteger(days) && days >= 0 && days <= 3650))
            throw badRequest("the end of the key is not one of the list");
          const made = keys.createKey(viewer.org, form.get("name") ?? "", {
            scopes: held.length === 3 ? null : held,
            lifeMs: days === 0 ? null : days * dayMs,
            id: idIn(form),
          });
          return keysPage(viewer, site, { made });
        }),
      page("makeKey", "Make an API key, by its form", { needsKey: true, refuses: true }),
    )
    .post(
      "/settings/keys/:keyId/revoke",
      ({ request, params }) =>
        front.act(request, "keys", (viewer, _form, site) => {
          const { name } = keys.revokeKey(viewer.org, params.keyId);
          return keysPage(viewer, site, {
            done: `The key “${name}” is revoked: it is refused from its next request on.`,
          });
        }),
      page("revokeKey", "Revoke an API key, by its form", { needsKey: true, misses: true }),
    )
    .get(
      "/settings/models",
      ({ request }) => front.show(request, (viewer, site) => modelsPage(viewer, site)),
      page("modelsPage", "Models and the keys for them", { needsKey: true }),
    )
    .post(
      "/settings/models",
      ({ request }) =>
        act(request, "models", modelsPage, (viewer, form, site) => {
          const set = models.setKey(
            viewer.org,
            toProvider(form),
            form.get("key") ?? "",
            form.get("baseUrl") || undefined,
          );
          return modelsPage(viewer, site, { done: `The key (${set.key}) is stored; it goes to ${set.baseUrl}.` });
        }),
      page("setModelKey", "Store a key of a model provider, by its form", { needsKey: true, refuses: true }),
    )
    .post(
      "/settings/models/forget",
      ({ request }) =>
        act(request, "models", modelsPage, (viewer, form, site) => {
          models.removeKey(viewer.org, toProvider(form));
          return modelsPage(viewer, site, { done: "The key is forgotten." });
        }),
      page("forgetModelKey", "Forget a key of a model provider, by its form", { needsKey: true, misses: true }),
    )
    .post(
      "/settings/models/test",
      ({ request }) =>
        act(request, "models", modelsPage, async (viewer, form, site) => {
          const model = models.getModel(viewer.org, form.get("model") ?? "");
          const done = `${trialWords(await tryModel(model, now))}.`;
          return modelsPage(viewer, site, { done, typed: form });
        }),
      page("tryModel", "Make one small call of a model, by its form", { needsKey: true, refuses: true }),
    );
};

function toProvider(form: URLSearchParams): ModelProvider {
  const provider = modelProviders.find((each) => each === form.get("provider"));
  if (!provider) throw badRequest(`the provider must be one of ${modelProviders.join(", ")}`);
  return provider;
}

function toLimit(form: URLSearchParams, name: string, label: string): number | null {
  const text = (form.get(name) ?? "").trim();
  if (text === "") return null;
  if (!/^\d{1,9}$/.test(text))
    throw badRequest(`${label}: ${JSON.stringify(text)} is no limit; use a whole number, or nothing for the service's`);
  return Number(text);
}

function toUsd(form: URLSearchParams, name: string, label: string): number | null {
  const text = (form.get(name) ?? "").trim();
  if (text === "") return null;
  if (!/^\d{1,7}(\.\d{1,6})?$/.test(text))
    throw badRequest(
      `${label}: ${JSON.stringify(text)} is no amount; use USD, as in 50 or 0.5, or nothing for no bound`,
    );
  return Number(text);
}

const toNames = (form: URLSearchParams, name: string): string[] | null => {
  const names = (form.get(name) ?? "")
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);
  return names.length === 0 ? null : names;
};
