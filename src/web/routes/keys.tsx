import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { ApiKey } from "../../auth/key-schema.ts";
import { createKey, listKeys, revokeKey, revokeKeysOfFormerMembers } from "../../auth/keys.ts";
import type { Context } from "../../context.ts";
import { badRequest } from "../../errors.ts";
import { count } from "../../grading/text.ts";
import { scopes } from "../../http/operation.ts";
import { columnOf, isDescending, type Sort, sortBy, sorted } from "../../http/sorting.ts";
import { readForm } from "../form-values.ts";
import { showPage, submitForm, submitOrShowAgain } from "../page-requests.tsx";
import { requireConfirmation } from "../pages/confirm.tsx";
import { KeysPage, NewKey } from "../pages/keys.tsx";
import type { FormResult } from "../pages/settings.tsx";
import { idIn, queryOptions } from "../query.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const dayMs = 24 * 3600_000;

const keyColumns = ["name", "creator", "used", "expires"] as const;
type KeySort = Sort<(typeof keyColumns)[number]>;

const sortValues: Record<(typeof keyColumns)[number], (key: ApiKey) => string | null> = {
  name: ({ name }) => name.toLowerCase(),
  creator: ({ createdBy }) => createdBy?.name?.toLowerCase() ?? null,
  used: ({ lastUsedAt }) => lastUsedAt,
  expires: ({ expiresAt }) => expiresAt,
};

const sortKeys = (keys: ApiKey[], sort: KeySort | undefined) =>
  sort === undefined ? keys : sorted(keys, sortValues[columnOf(sort)], isDescending(sort));

type KeysPageProps = FormResult & { newKey?: ReturnType<typeof createKey>; sort?: KeySort; createdBy?: string };

function keysPage(ctx: Context, viewer: Viewer, site: Site, result: KeysPageProps = {}) {
  const keys = listKeys(ctx, viewer.org);
  const { createdBy, sort } = result;
  const shownKeys = keys.filter((key) => createdBy === undefined || key.createdBy?.id === createdBy);
  const creators = new Map(keys.flatMap((key) => (key.createdBy ? [[key.createdBy.id, key.createdBy] as const] : [])));
  return (
    <KeysPage
      {...{ site, viewer, ...result }}
      keys={sortKeys(shownKeys, sort)}
      formerKeys={listKeys(ctx, viewer.org, { isOfFormer: true, isActive: true })}
      creators={sorted([...creators.values()], ({ name }) => name, false)}
      nextId={ctx.newId(ctx.now())}
      now={ctx.now()}
      mayChange={may(viewer, "keys")}
    />
  );
}

/** API key settings. */
export const keyPages = (ctx: Context) =>
  new Elysia({ name: "keys pages" })
    .get(
      "/settings/keys",
      ({ request, query }) => showPage(ctx, request, (viewer, site) => keysPage(ctx, viewer, site, query)),
      queryOptions({ sort: sortBy(keyColumns), createdBy: Type.Optional(Type.String({ maxLength: 100 })) }),
    )
    .post("/settings/keys", ({ request }) =>
      submitOrShowAgain(ctx, request, "keys", keysPage, (viewer, form, site) => {
        const { name, days, usesCompatibilityMode, scopes: keyScopes } = readForm(NewKey, form);
        if (keyScopes.length === 0) throw badRequest("Select at least one scope.");
        // A key with all general scopes is stored without a list of scopes.
        const hasAllScopes = keyScopes.length === scopes.length && scopes.every((scope) => keyScopes.includes(scope));
        const newKey = createKey(ctx, viewer.org, name, {
          scopes: hasAllScopes ? null : keyScopes,
          lifeMs: days ? days * dayMs : null,
          usesCompatibilityMode,
          id: idIn(form),
          createdBy: viewer.person.id,
        });
        return keysPage(ctx, viewer, site, { newKey });
      }),
    )
    .post("/settings/keys/revoke-former", ({ request }) =>
      submitForm(ctx, request, "keys", (viewer, form, site) => {
        const keys = listKeys(ctx, viewer.org, { isOfFormer: true, isActive: true });
        requireConfirmation(form, {
          title: `Revoke ${count(keys.length, "API key")} of people who left?`,
          consequences: [
            "Requests with these keys will fail with status 401. A revoked key can’t be restored.",
            ...keys.map(({ name, createdBy }) => `${name}, created by ${createdBy?.name ?? "a former member"}`),
          ],
          buttonText: "Revoke keys",
          back: "/settings/keys",
        });
        const revoked = revokeKeysOfFormerMembers(ctx, viewer.org);
        return keysPage(ctx, viewer, site, { successMessage: `${count(revoked.length, "API key")} revoked.` });
      }),
    )
    .post("/settings/keys/:keyId/revoke", ({ request, params }) =>
      submitForm(ctx, request, "keys", (viewer, form, site) => {
        const key = listKeys(ctx, viewer.org).find(({ id }) => id === params.keyId);
        if (key)
          requireConfirmation(form, {
            title: `Revoke the API key “${key.name}”?`,
            consequences: ["Requests with this key will fail with status 401. A revoked key can’t be restored."],
            buttonText: "Revoke key",
            back: "/settings/keys",
          });
        const { name } = revokeKey(ctx, viewer.org, params.keyId);
        return keysPage(ctx, viewer, site, {
          successMessage: `API key “${name}” revoked. It no longer works.`,
        });
      }),
    );
