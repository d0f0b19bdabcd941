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

/** What a program without a valid key gets in the place of a page. */
export const KeyNeededPage = ({ site, path }: { site: Site; path: string }) => (
  <Layout site={site} path={path} title="Sign in first">
    <div class="notice-page">
      <p class="status">401</p>
      <h1>Sign in first</h1>
      <p>
        This page belongs to an organisation. People <a href={`${site.base}/sign-in`}>sign in</a>; a program sends the
        header <code>Authorization: Bearer</code> with an API key, which is unknown, expired or revoked if it was sent:{" "}
        <a href={`${site.base}/docs/keys`}>API keys</a>.
      </p>
    </div>
  </Layout>
);

/** What came from a form of somebody who was signed out while they wrote, to be sent again when they are back. */
export const UnsentPage = ({ site, path, form }: { site: Site; path: string; form: URLSearchParams }) => (
  <Layout site={site} path={path} title="You are signed out">
    <div class="notice-page">
      <p class="status">401</p>
      <h1>You are signed out</h1>
      <p>
        Nothing was done yet, and nothing that you wrote is lost.{" "}
        <a href={`${site.base}/sign-in`} target="_blank" rel="noopener">
          Sign in in another tab
        </a>
        , then send it from here.
      </p>
      <form method="post" action={path}>
        {[...form].map(([name, value], i) => (
          <input key={`${i} ${name}`} type="hidden" name={name} value={value} />
        ))}
        <button type="submit" class="main">
          Send it again
        </button>
      </form>
    </div>
  </Layout>
);

/** In the place of a part of a page. */
export const SignedOutNote = ({ site }: { site: Site }) => (
  <p class="notice bad" role="alert">
    You are signed out.{" "}
    <a href={`${site.base}/sign-in`} target="_blank" rel="noopener">
      Sign in in another tab
    </a>
    , then go on here.
  </p>
);

/** A detail as a sentence. */
export const sentenceOf = (detail: string) =>
  `${detail.charAt(0).toUpperCase()}${detail.slice(1)}${/[.!?]$/.test(detail) ? "" : "."}`;
