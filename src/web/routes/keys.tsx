import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { ApiKey } from "../../auth/keys.ts";
import { createKey, listKeys, revokeKey } from "../../auth/keys.ts";
import { badRequest } from "../../errors.ts";
import { scopes } from "../../http/operation.ts";
import { columnOf, isDescending, type Sort, sortBy, sorted } from "../../http/sorting.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { askBefore } from "../confirmation.tsx";
import type { PageRequests } from "../page-requests.tsx";
import { KeysPage } from "../pages/keys.tsx";
import { idIn, withoutBlanks } from "../query.ts";
import { type FormResult, settingsForms } from "../settings-forms.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const dayMs = 24 * 3600_000;

const keyColumns = ["name", "used", "expires"] as const;
type KeySort = Sort<(typeof keyColumns)[number]>;

const keyValues: Record<(typeof keyColumns)[number], (key: ApiKey) => string | null> = {
  name: ({ name }) => name.toLowerCase(),
  used: ({ lastUsedAt }) => lastUsedAt,
  expires: ({ expiresAt }) => expiresAt,
};

const inOrder = (keys: ApiKey[], sort: KeySort | undefined) =>
  sort === undefined ? keys : sorted(keys, keyValues[columnOf(sort)], isDescending(sort));

/** API key settings. */
export const keyPages = ({ ctx }: Service, pages: PageRequests) => {
  const { now } = ctx;
  const act = settingsForms(pages);

  const keysPage = (
    viewer: Viewer,
    site: Site,
    result: FormResult & { made?: ReturnType<typeof createKey>; sort?: KeySort } = {},
    status = 200,
  ) =>
    privateAnswer(
      "html",
      toPage(
        <KeysPage
          {...{ site, viewer, ...result }}
          keys={inOrder(listKeys(ctx, viewer.org), result.sort)}
          nextId={ctx.newId(now())}
          now={now()}
          mayChange={may(viewer, "keys")}
        />,
      ),
      status,
    );
  return new Elysia({ name: "keys pages" })
    .get(
      "/settings/keys",
      ({ request, query: { sort } }) => pages.show(request, (viewer, site) => keysPage(viewer, site, { sort })),
      {
        transform: withoutBlanks,
        query: Type.Object({ sort: sortBy(keyColumns) }),
      },
    )
    .post("/settings/keys", ({ request }) =>
      act(request, "keys", keysPage, (viewer, form, site) => {
        const held = form.getAll("scope");
        const days = Number(form.get("days") ?? "");
        if (held.length === 0) throw badRequest("Select at least one scope.");
        if (!(Number.isInteger(days) && days >= 0 && days <= 3650))
          throw badRequest("Select one of the listed expiration times.");
        const made = createKey(ctx, viewer.org, form.get("name") ?? "", {
          scopes: scopes.every((scope) => held.includes(scope)) && held.length === scopes.length ? null : held,
          lifeMs: days === 0 ? null : days * dayMs,
          isCompatible: form.has("isCompatible"),
          id: idIn(form),
          createdBy: viewer.person.id,
        });
        return keysPage(viewer, site, { made });
      }),
    )
    .post("/settings/keys/:keyId/revoke", ({ request, params }) =>
      pages.submit(request, "keys", (viewer, form, site) => {
        const key = listKeys(ctx, viewer.org).find(({ id }) => id === params.keyId);
        const asks =
          key &&
          askBefore(
            pages,
            { request, viewer, form },
            {
              title: `Revoke the API key “${key.name}”?`,
              loses: ["Requests with this key will fail with status 401. A revoked key can’t be restored."],
              act: "Revoke key",
              back: "/settings/keys",
            },
          );
        if (asks) return asks;
        const { name } = revokeKey(ctx, viewer.org, params.keyId);
        return keysPage(viewer, site, {
          done: `API key “${name}” revoked. It no longer works.`,
        });
      }),
    );
};
