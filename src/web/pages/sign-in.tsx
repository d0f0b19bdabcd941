import type { ComponentChildren } from "preact";
import { PasswordField, TextField } from "../components/field.tsx";
import { Notices, Submit } from "../components/form-parts.tsx";
import { Layout } from "../components/layout.tsx";
import { PasskeySignIn } from "../components/passkeys.tsx";
import type { Site } from "../site.ts";

type AuthProps = {
  site: Site;
  path: string;
  title: string;
  lead?: ComponentChildren;
  errorMessage?: string;
  children: ComponentChildren;
};

/** A narrow page with one form, such as sign-in, setup, invitation or password reset. */
export const AuthPage = ({ site, path, title, lead, errorMessage, children }: AuthProps) => (
  <Layout site={site} path={path} title={title}>
    <div class="auth-page">
      <h1>{title}</h1>
      {lead && <p class="lead">{lead}</p>}
      <Notices errorMessage={errorMessage} />
      {children}
    </div>
  </Layout>
);

/** Shown if nobody has an account on this server. It says where the setup link is, and which command prints the link again. */
export const SetupNote = () => (
  <div class="notice setup-note">
    <p>
      <strong>Nobody has an account here yet.</strong> Open the setup link that <code>evald serve</code> printed in its
      terminal or log. To print a new one, run this on the server, with the data directory of the service:
    </p>
    <pre>
      <code>evald org setup-link</code>
    </pre>
  </div>
);

type Props = {
  site: Site;
  next: string;
  email?: string;
  errorMessage?: string;
  /** Name of the identity provider; null: none is configured. */
  ssoName: string | null;
  sendsMail: boolean;
  /** Whether nobody has an account yet. */
  isUnused: boolean;
  /** Whether browsers allow passkeys at the URL of this service. */
  allowsPasskeys: boolean;
};

/** The page to sign in. */
export const SignInPage = (props: Props) => {
  const { site, next, email, errorMessage, ssoName, sendsMail, isUnused, allowsPasskeys } = props;
  return (
    <AuthPage site={site} path="/sign-in" title="Sign in" errorMessage={errorMessage}>
      {isUnused && <SetupNote />}
      {ssoName !== null && (
        <>
          <p class="single-sign-on">
            <a class="button" href={`${site.base}/sign-in/oidc?next=${encodeURIComponent(next)}`}>
              Continue with {ssoName}
            </a>
          </p>
          <p class="or">or</p>
        </>
      )}
      <form method="post" action={`${site.base}/sign-in`}>
        <input type="hidden" name="next" value={next} />
        <TextField name="email" label="Email" type="email" autocomplete="username" value={email} />
        <PasswordField />
        <Submit>Sign in</Submit>
      </form>
      {allowsPasskeys && !isUnused && <PasskeySignIn {...{ site, next }} />}
      {!isUnused && <HelpToSignIn base={site.base} sendsMail={sendsMail} />}
    </AuthPage>
  );
};

const HelpToSignIn = ({ base, sendsMail }: { base: string; sendsMail: boolean }) =>
  sendsMail ? (
    <p class="aside">
      <a href={`${base}/sign-in/forgotten`}>Forgot your password?</a> No account? Ask an owner of your organization to
      invite you.
    </p>
  ) : (
    <p class="aside">
      No account? Ask an owner of your organization to invite you. Forgot your password? Ask an owner for a password
      reset link.
    </p>
  );

type CodeProps = { site: Site; next: string; errorMessage?: string; allowsPasskeys: boolean };

/** The second step of a sign-in. */
export const CodePage = ({ site, next, errorMessage, allowsPasskeys }: CodeProps) => (
  <AuthPage
    {...{ site, errorMessage }}
    path="/sign-in/code"
    title="Enter your code"
    lead="Open your authenticator app, and enter the code for evald. Without your device, enter a backup code."
  >
    <form method="post" action={`${site.base}/sign-in/code`}>
      <input type="hidden" name="next" value={next} />
      <TextField name="code" label="Code" autocomplete="one-time-code" />
      <Submit>Sign in</Submit>
    </form>
    {allowsPasskeys && <PasskeySignIn {...{ site, next }} />}
    <p class="aside">
      Lost your device and your backup codes? Ask the operator of this server to reset your second factor.{" "}
      <a href={`${site.base}/sign-in`}>Sign in as someone else</a>
    </p>
  </AuthPage>
);

/** Requests an email with a password reset link. The page doesn't reveal whether the address is known. */
export const ForgottenPage = ({ site, email, errorMessage }: { site: Site; email?: string; errorMessage?: string }) => (
  <AuthPage site={site} path="/sign-in/forgotten" title="Reset password" errorMessage={errorMessage}>
    {email !== undefined ? (
      <p>If {email} has an account, we’ve emailed a reset link. It works once and expires in 24 hours.</p>
    ) : (
      <form method="post" action={`${site.base}/sign-in/forgotten`}>
        <TextField name="email" label="Email" type="email" autocomplete="username" />
        <Submit>Email me a reset link</Submit>
      </form>
    )}
    <p class="aside">
      <a href={`${site.base}/sign-in`}>Back to sign in</a>
    </p>
  </AuthPage>
);
