import { type AppError, toSentence } from "../../errors.ts";
import { Submit } from "../components/form-parts.tsx";
import { Layout } from "../components/layout.tsx";
import type { Site } from "../site.ts";
import type { Visitor } from "../visitors.ts";

const titles: Partial<Record<AppError["code"], string>> = {
  not_found: "Not found",
  bad_request: "Bad request",
  internal: "Something went wrong",
  forbidden: "Access denied",
};

type Props = { site: Site; visitor?: Visitor; path: string; status: number; error: AppError };

/** An error page with links to other pages. */
export function ErrorPage({ site, visitor, path, status, error }: Props) {
  const title = titles[error.code] ?? "Request failed";
  return (
    <Layout {...{ site, path, title }} viewer={visitor?.viewer ?? undefined} isSignedIn={visitor?.signedIn != null}>
      <div class="notice-page" data-error={error.code}>
        <p class="status">{status}</p>
        <h1>{title}</h1>
        <p>{toSentence(error.detail)}</p>
        <p>
          <a href={`${site.base}/docs`}>Documentation</a> · <a href={`${site.base}/`}>Home</a>
        </p>
      </div>
    </Layout>
  );
}

/** The 401 page for requests without valid credentials. */
export const SignInNeededPage = ({ site, path }: { site: Site; path: string }) => (
  <Layout site={site} path={path} title="Sign in to continue">
    <div class="notice-page" data-error="unauthorized">
      <p class="status">401</p>
      <h1>Sign in to continue</h1>
      <p>
        This page belongs to an organization. <a href={`${site.base}/sign-in`}>Sign in</a> to view it. Scripts need a
        valid API key in the <code>Authorization: Bearer</code> header; if you sent one, it is unknown, expired or
        revoked. See <a href={`${site.base}/docs/keys`}>API keys</a>.
      </p>
    </div>
  </Layout>
);

/** Keeps the values of a form whose sender has been signed out in the meantime, so that they can submit it again. */
export const UnsentPage = ({ site, path, form }: { site: Site; path: string; form: URLSearchParams }) => (
  <Layout site={site} path={path} title="Session expired">
    <div class="notice-page" data-error="session_expired">
      <p class="status">401</p>
      <h1>Session expired</h1>
      <p>
        Your changes haven’t been saved yet.{" "}
        <a href={`${site.base}/sign-in`} target="_blank" rel="noopener">
          Sign in in a new tab
        </a>
        , then submit the form again here.
      </p>
      <form method="post" action={path} enctype="multipart/form-data">
        {[...form].map(([name, value], i) => (
          <input key={`${i} ${name}`} type="hidden" name={name} value={value} />
        ))}
        <Submit>Submit again</Submit>
      </form>
    </div>
  </Layout>
);

/** Replaces a fragment of a page if the session has expired. */
export const SignedOutNote = ({ site }: { site: Site }) => (
  <p class="notice bad" role="alert">
    You’re signed out.{" "}
    <a href={`${site.base}/sign-in`} target="_blank" rel="noopener">
      Sign in in a new tab
    </a>
    , then continue here.
  </p>
);
