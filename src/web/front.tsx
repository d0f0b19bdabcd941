import { AppError, badRequest } from "../errors.ts";
import type { Service } from "../service.ts";
import { compressed, privateAnswer, statusOf } from "./answer.ts";
import { challenge, findOrg } from "./credential.ts";
import { toPage } from "./layout.tsx";
import { ErrorPage, SignInPage } from "./pages/error.tsx";
import { type Site, toSite } from "./site.ts";
import { mayActAs, type Role, type Viewer } from "./viewer.ts";

type Answer = Response | Promise<Response>;

export type Front = ReturnType<typeof createFront>;

/** What every page that belongs to an organisation goes through: who looks, whether they may, and errors as pages. */
export function createFront(service: Service) {
  const { deps, keys, orgs } = service;
  const site = () => toSite(deps);

  function findViewer(request: Request): Viewer | null {
    const org = findOrg(request, keys);
    if (org === null) return null;
    const { name } = orgs.getOrg(org);
    return { org, orgName: name, role: "owner", person: null, orgs: [{ id: org, name }] };
  }

  async function answer(request: Request, make: (viewer: Viewer, site: Site) => Answer): Promise<Response> {
    const here = site();
    const viewer = findViewer(request);
    if (viewer === null) {
      const body = toPage(<SignInPage site={here} path={new URL(request.url).pathname} />);
      return privateAnswer("html", body, 401, { "www-authenticate": challenge });
    }
    try {
      return compressed(request, await make(viewer, here));
    } catch (error) {
      if (error instanceof AppError) return errorAnswer(here, request, error, viewer);
      throw error;
    }
  }

  return {
    site,
    /** null: nobody who is known here. */
    findViewer,
    /** Shows what belongs to the organisation of whoever looks; a stranger is asked who they are. */
    show: (request: Request, make: (viewer: Viewer, site: Site) => Answer): Promise<Response> => answer(request, make),

    /** Does what a form asks for, for a viewer of that role or above, if the form stands on a page of this service. */
    act: (
      request: Request,
      role: Role,
      make: (viewer: Viewer, form: URLSearchParams, site: Site) => Answer,
    ): Promise<Response> =>
      answer(request, async (viewer, here) => {
        // A form of another site bears the cookie as well, but not this origin. Programs use the API.
        if (request.headers.get("origin") !== new URL(deps.baseUrl()).origin)
          throw new AppError("forbidden", "this was not sent from a page of this service; open the page and try again");
        if (!mayActAs(viewer, role))
          throw new AppError("forbidden", `this takes the role ${role}; yours is ${viewer.role}`);
        const type = request.headers.get("content-type") ?? "";
        if (!type.startsWith("application/x-www-form-urlencoded")) throw badRequest("a form is needed");
        return make(viewer, new URLSearchParams(await request.text()), here);
      }),

    /** Where the browser goes after a form, by GET. `path` is from the base on. */
    seeOther: (path: string): Response =>
      new Response(null, { status: 303, headers: { location: site().base + path, "cache-control": "no-store" } }),
  };
}

/** An error as a page, with its own status. */
export function errorAnswer(site: Site, request: Request, error: AppError, viewer?: Viewer): Response {
  const { pathname } = new URL(request.url);
  const status = statusOf(error);
  const page = <ErrorPage {...{ site, viewer, path: pathname, status, error }} />;
  return privateAnswer("html", toPage(page), status);
}
