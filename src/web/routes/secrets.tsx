import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { deleteSecret, listSecrets, setSecret } from "../../secrets/secrets.ts";
import { readForm } from "../form-values.ts";
import { showPage, submitForm, submitOrShowAgain } from "../page-requests.tsx";
import { requireConfirmation } from "../pages/confirm.tsx";
import { SecretForm, SecretsPage } from "../pages/secrets.tsx";
import type { FormResult } from "../pages/settings.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const secretsPage = (ctx: Context, viewer: Viewer, site: Site, result: FormResult = {}) => (
  <SecretsPage
    {...{ site, viewer, ...result }}
    secrets={listSecrets(ctx, viewer.org)}
    canStore={ctx.config.secretKey !== null}
    now={ctx.now()}
    mayChange={may(viewer, "secrets")}
  />
);

/** The settings page for the secrets of success checks. */
export const secretPages = (ctx: Context) =>
  new Elysia({ name: "secret pages" })
    .get("/settings/secrets", ({ request }) => showPage(ctx, request, (viewer, site) => secretsPage(ctx, viewer, site)))
    .post("/settings/secrets", ({ request }) =>
      submitOrShowAgain(ctx, request, "secrets", secretsPage, (viewer, form, site) => {
        const { name, value, hosts = "" } = readForm(SecretForm, form);
        const names = hosts.split(/[\s,]+/).filter((host) => host !== "");
        setSecret(ctx, viewer.org, name, { value, hosts: names.length > 0 ? names : undefined });
        return secretsPage(ctx, viewer, site, { successMessage: `Secret ${name} saved.` });
      }),
    )
    .post("/settings/secrets/delete", ({ request }) =>
      submitForm(ctx, request, "secrets", (viewer, form, site) => {
        const { name } = readForm(Type.Pick(SecretForm, ["name"]), form);
        if (listSecrets(ctx, viewer.org).some((each) => each.name === name))
          requireConfirmation(form, {
            title: `Delete the secret ${name}?`,
            consequences: ["Success checks that refer to it can’t run any more."],
            buttonText: "Delete",
            back: "/settings/secrets",
          });
        deleteSecret(ctx, viewer.org, name);
        return secretsPage(ctx, viewer, site, { successMessage: `Secret ${name} deleted.` });
      }),
    );
