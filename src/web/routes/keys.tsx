import { Elysia } from "elysia";
import { badRequest } from "../../errors.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { page } from "../describe.ts";
import type { PageRequests } from "../page-requests.tsx";
import { KeysPage } from "../pages/keys.tsx";
import { idIn } from "../query.ts";
import { type FormResult, settingsForms } from "../settings-forms.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const dayMs = 24 * 3600_000;

/** API key settings. */
export const keyPages = ({ deps, keys }: Service, pages: PageRequests) => {
  const { now } = deps;
  const act = settingsForms(pages);

  const keysPage = (
    viewer: Viewer,
    site: Site,
    result: FormResult & { made?: ReturnType<typeof keys.createKey> } = {},
    status = 200,
  ) =>
    privateAnswer(
      "html",
      toPage(
        <KeysPage
          {...{ site, viewer, ...result }}
          keys={keys.listKeys(viewer.org)}
          nextId={deps.newId(now())}
          now={now()}
          mayChange={may(viewer, "keys")}
        />,
      ),
      status,
    );
  return new Elysia({ name: "keys pages" })
    .get(
      "/settings/keys",
      ({ request }) => pages.show(request, (viewer, site) => keysPage(viewer, site)),
      page("keysPage", "API keys page", { needsKey: true }),
    )
    .post(
      "/settings/keys",
      ({ request }) =>
        act(request, "keys", keysPage, (viewer, form, site) => {
          const held = form.getAll("scope");
          const days = Number(form.get("days") ?? "");
          if (held.length === 0) throw badRequest("select at least one scope");
          if (!(Number.isInteger(days) && days >= 0 && days <= 3650))
            throw badRequest("select one of the listed expiration times");
          const made = keys.createKey(viewer.org, form.get("name") ?? "", {
            scopes: held.length === 3 ? null : held,
            lifeMs: days === 0 ? null : days * dayMs,
            id: idIn(form),
          });
          return keysPage(viewer, site, { made });
        }),
      page("makeKey", "Create API key (form)", { needsKey: true, refuses: true }),
    )
    .post(
      "/settings/keys/:keyId/revoke",
      ({ request, params }) =>
        pages.submit(request, "keys", (viewer, _form, site) => {
          const { name } = keys.revokeKey(viewer.org, params.keyId);
          return keysPage(viewer, site, {
            done: `API key “${name}” revoked. It no longer works.`,
          });
        }),
      page("revokeKey", "Revoke API key (form)", { needsKey: true, misses: true }),
    );
};
