import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Deps, OrgId } from "../deps.ts";
import { AppError, notFound } from "../errors.ts";
import { traceQuery } from "../reports/schema.ts";
import { findNotice, getTrace } from "../reports/trace.ts";
import type { Service } from "../service.ts";
import { prefersMarkdown, privateAnswer, publicAnswer, statusOf, wantsHtml } from "./answer.ts";
import { challenge, findOrg } from "./credential.ts";
import { page } from "./describe.ts";
import { docs, findDoc, indexMarkdown, toMarkdown } from "./docs.ts";
import { css, toPage } from "./layout.tsx";
import { reportMarkdown } from "./markdown.ts";
import { DocPage, DocsIndexPage } from "./pages/doc.tsx";
import { ErrorPage, SignInPage } from "./pages/error.tsx";
import { HomePage } from "./pages/home.tsx";
import { ReportPage } from "./pages/report.tsx";
import { RunPage } from "./pages/run.tsx";
import { SessionPage } from "./pages/session.tsx";
import { llmsTxt, robotsTxt, type Site, sitemapXml, toSite } from "./site.ts";

const varyAccept = { vary: "Accept" };

/** Everything that is served to people, and the documentation for people and agents. */
export const pageRoutes = (service: Service) => {
  const { deps, endings, keys, reports, runs } = service;
  const site = () => toSite(deps);

  /** Shows what belongs to the organisation of the caller's key; without one, the browser is made to ask for it. */
  function forOrg(request: Request, show: (org: OrgId, site: Site) => Response): Response {
    const here = site();
    const org = findOrg(request, keys);
    if (org === null) {
      const body = toPage(<SignInPage site={here} path={new URL(request.url).pathname} />);
      return privateAnswer("html", body, 401, { "www-authenticate": challenge });
    }
    try {
      return show(org, here);
    } catch (error) {
      if (error instanceof AppError) return errorAnswer(here, request, error);
      throw error;
    }
  }

  return new Elysia({ name: "pages" })
    .get(
      "/",
      ({ request }) => publicAnswer(request, "html", toPage(<HomePage site={site()} />)),
      page("home", "What this service is"),
    )
    .get(
      "/style.css",
      ({ request }) => publicAnswer(request, "css", css),
      page("style", "The style of all pages", { types: ["text/css"] }),
    )
    .get(
      "/llms.txt",
      ({ request }) => publicAnswer(request, "text", llmsTxt(site())),
      page("llmsTxt", "The documentation as a list for agents", { types: ["text/plain"] }),
    )
    .get(
      "/robots.txt",
      ({ request }) => publicAnswer(request, "text", robotsTxt(site())),
      page("robotsTxt", "What crawlers may read", { types: ["text/plain"] }),
    )
    .get(
      "/sitemap.xml",
      ({ request }) => publicAnswer(request, "xml", sitemapXml(site())),
      page("sitemap", "The public pages", { types: ["application/xml"] }),
    )
    .get(
      "/docs",
      ({ request }) =>
        prefersMarkdown(request)
          ? publicAnswer(request, "markdown", indexMarkdown(site()), varyAccept)
          : publicAnswer(request, "html", toPage(<DocsIndexPage site={site()} />), varyAccept),
      page("docs", "All pages of the documentation", { types: ["text/html", "text/markdown"] }),
    )
    .get(
      "/docs.md",
      ({ request }) => publicAnswer(request, "markdown", indexMarkdown(site())),
      page("docsMarkdown", "All pages of the documentation, as Markdown", { types: ["text/markdown"] }),
    )
    .get(
      "/docs/:page",
      ({ request, params }) => {
        const here = site();
        const slug = params.page.replace(/\.md$/, "");
        const doc = findDoc(slug);
        if (!doc)
          return errorAnswer(
            here,
            request,
            notFound(`there is no page of that name; the pages are ${docs.map((each) => each.slug).join(", ")}`),
          );
        if (slug !== params.page) return publicAnswer(request, "markdown", toMarkdown(doc, here));
        return prefersMarkdown(request)
          ? publicAnswer(request, "markdown", toMarkdown(doc, here), varyAccept)
          : publicAnswer(request, "html", toPage(<DocPage site={here} doc={doc} />), varyAccept);
      },
      {
        params: Type.Object({ page: Type.String({ description: "Name of the page; with .md for Markdown" }) }),
        ...page("doc", "A page of the documentation", { types: ["text/html", "text/markdown"], misses: true }),
      },
    )
    .get(
      "/reports/:slug",
      ({ request, params }) =>
        forOrg(request, (org, here) => {
          const slug = params.slug.replace(/\.md$/, "");
          const report = reports.getReport(org, slug);
          const notice = findNotice(deps, org, slug);
          return slug !== params.slug || prefersMarkdown(request)
            ? privateAnswer("markdown", reportMarkdown(report), 200, varyAccept)
            : privateAnswer(
                "html",
                toPage(<ReportPage site={here} report={report} notice={notice} />),
                200,
                varyAccept,
              );
        }),
      {
        params: Type.Object({ slug: Type.String({ description: "slug of the report; with .md for Markdown" }) }),
        ...page("reportPage", "A report, for people", {
          types: ["text/html", "text/markdown"],
          misses: true,
          needsKey: true,
        }),
      },
    )
    .get(
      "/reports/:slug/session",
      ({ request, params, query }) =>
        forOrg(request, (org, here) => {
          const report = reports.getReport(org, params.slug);
          const trace = getTrace(deps, org, params.slug, query);
          return privateAnswer(
            "html",
            toPage(<SessionPage site={here} report={report} trace={trace} filter={query} />),
          );
        }),
      {
        params: Type.Object({ slug: Type.String() }),
        query: Type.Object(traceQuery),
        ...page("sessionPage", "The session behind a report, for people", {
          refuses: true,
          misses: true,
          needsKey: true,
        }),
      },
    )
    .get(
      "/runs/:runId",
      ({ request, params }) =>
        forOrg(request, (org, here) => {
          const run = runs.getRun(org, params.runId);
          const asked = runs.getAsked(org, run.runId);
          const attempts = endings.listAttempts(org, params.runId);
          return privateAnswer("html", toPage(<RunPage {...{ site: here, run, asked, attempts }} />));
        }),
      {
        params: Type.Object({ runId: Type.String({ description: "uuid of the run" }) }),
        ...page("runPage", "A run, for people; loads itself again until the run is finished", {
          misses: true,
          needsKey: true,
        }),
      },
    );
};

function errorAnswer(site: Site, request: Request, error: AppError): Response {
  const { pathname } = new URL(request.url);
  const status = statusOf(error);
  return privateAnswer("html", toPage(<ErrorPage site={site} path={pathname} status={status} error={error} />), status);
}

/** An error as a page, for a caller that asks for HTML outside the API; null for all others. */
export function findErrorPage(deps: Deps, request: Request, error: AppError): Response | null {
  const site = toSite(deps);
  if (!wantsHtml(request) || new URL(request.url).pathname.startsWith(`${site.base}/api/`)) return null;
  return errorAnswer(site, request, error);
}
