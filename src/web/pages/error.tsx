import type { AppError } from "../../errors.ts";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

const titles: Partial<Record<AppError["code"], string>> = {
  not_found: "Nothing is here",
  bad_request: "That cannot be shown",
  internal: "Something went wrong",
  forbidden: "That is not allowed",
};

/** An error for a person: what it is and where to go. */
export function ErrorPage({
  site,
  viewer,
  path,
  status,
  error,
}: {
  site: Site;
  viewer?: Viewer;
  path: string;
  status: number;
  error: AppError;
}) {
  const title = titles[error.code] ?? "That did not work";
  return (
    <Layout site={site} viewer={viewer} path={path} title={title}>
      <div class="notice-page">
        <p class="status">{status}</p>
        <h1>{title}</h1>
        <p>{sentenceOf(error.detail)}</p>
        <p>
          <a href={`${site.base}/docs`}>Documentation</a> · <a href={`${site.base}/`}>Start page</a>
        </p>
      </div>
    </Layout>
  );
}

/** What stands behind the browser's question for a name and a password. */
export function SignInPage({ site, path }: { site: Site; path: string }) {
  return (
    <Layout site={site} path={path} title="An API key is needed">
      <div class="notice-page">
        <p class="status">401</p>
        <h1>An API key is needed</h1>
        <p>
          This page belongs to an organisation. Load it again and give the browser any user name, and an API key of the
          organisation as the password. If it does not ask again, the key it remembers is not valid: close all windows
          of the browser, or use a private one.
        </p>
        <p>
          No key? Whoever runs this service makes one with <code>evald key create</code>:{" "}
          <a href={`${site.base}/docs/keys`}>API keys</a>.
        </p>
      </div>
    </Layout>
  );
}

const sentenceOf = (detail: string) =>
  `${detail.charAt(0).toUpperCase()}${detail.slice(1)}${/[.!?]$/.test(detail) ? "" : "."}`;
