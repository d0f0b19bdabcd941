import { AppError } from "../errors.ts";
import { statusOf } from "./answer.ts";
import type { Actor, PageRequests } from "./page-requests.tsx";
import { sentenceOf } from "./pages/error.tsx";
import type { Site } from "./site.ts";
import type { Act, Viewer } from "./viewer.ts";

/** Result of a form: a success or error message, and the submitted values when they were rejected. */
export type FormResult = { done?: string; wrong?: string; typed?: URLSearchParams };

/** Runs `work` for a form. When it fails, `show` renders the page again with the submitted values and the error. */
export const settingsForms =
  (pages: PageRequests) =>
  (
    request: Request,
    what: Act,
    show: (viewer: Viewer, site: Site, result: FormResult, status: number) => Response,
    work: (viewer: Actor, form: URLSearchParams, site: Site) => Response | Promise<Response>,
  ): Promise<Response> =>
    pages.submit(request, what, async (viewer, form, site) => {
      try {
        return await work(viewer, form, site);
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        return show(viewer, site, { wrong: sentenceOf(error.detail), typed: form }, statusOf(error));
      }
    });
