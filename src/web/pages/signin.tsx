import type { ComponentChildren } from "preact";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";

/** A narrow page with one form: signing in, being invited, setting up. */
export function DoorPage({
  site,
  path,
  title,
  lead,
  wrong,
  children,
}: {
  site: Site;
  path: string;
  title: string;
  lead?: ComponentChildren;
  /** What was refused, and what to do. */
  wrong?: string;
  children: ComponentChildren;
}) {
  return (
    <Layout site={site} path={path} title={title}>
      <div class="door">
        <h1>{title}</h1>
        {lead && <p class="lead">{lead}</p>}
        {wrong && (
          <p class="notice bad" role="alert">
            {wrong}
          </p>
        )}
        {children}
      </div>
    </Layout>
  );
}

type FieldProps = {
  name: string;
  label: string;
  type?: "text" | "email" | "password";
  value?: string;
  autocomplete: string;
  hint?: string;
  readonly?: boolean;
};

export const Field = ({ name, label, type = "text", value, autocomplete, hint, readonly }: FieldProps) => (
  <div class="field">
    <label for={name}>{label}</label>
    <input
      id={name}
      // The types of Preact have one shape for each type of input.
      {...({ name, type, value, autocomplete } as { name: string; type: "text" })}
      readOnly={readonly}
      required
      aria-describedby={hint && `${name}-hint`}
    />
    {hint && (
      <span class="hint" id={`${name}-hint`}>
        {hint}
      </span>
    )}
  </div>
);

export const passwordHint = "At least 12 characters. A few words that only you would put together are best.";

type Props = {
  site: Site;
  next: string;
  email?: string;
  wrong?: string;
  /** What the button to the identity provider says; null: there is none. */
  ssoName: string | null;
  sendsMail: boolean;
};

export const SignInPage = ({ site, next, email, wrong, ssoName, sendsMail }: Props) => (
  <DoorPage site={site} path="/sign-in" title="Sign in" wrong={wrong}>
    {ssoName !== null && (
      <p>
        <a class="button" href={`${site.base}/sign-in/oidc?next=${encodeURIComponent(next)}`}>
          Continue with {ssoName}
        </a>
      </p>
    )}
    <form method="post" action={`${site.base}/sign-in`}>
      <input type="hidden" name="next" value={next} />
      <Field name="email" label="Address of mail" type="email" autocomplete="username" value={email} />
      <Field name="password" label="Password" type="password" autocomplete="current-password" />
      <button class="main" type="submit">
        Sign in
      </button>
    </form>
    {sendsMail ? (
      <p class="aside">
        <a href={`${site.base}/sign-in/forgotten`}>No password any more?</a> No account? An owner of your organisation
        can invite you.
      </p>
    ) : (
      <p class="aside">
        No account? An owner of your organisation can invite you. No password any more? An owner can give you a link
        that sets a new one.
      </p>
    )}
  </DoorPage>
);

/** Asks for a mail with a link that sets a new password; says not whether the address is known. */
export const ForgottenPage = ({ site, asked, wrong }: { site: Site; asked?: string; wrong?: string }) => (
  <DoorPage site={site} path="/sign-in/forgotten" title="New password" wrong={wrong}>
    {asked !== undefined ? (
      <p>If {asked} has an account here, a mail is on its way to it. Its link is good once, for a day.</p>
    ) : (
      <form method="post" action={`${site.base}/sign-in/forgotten`}>
        <Field name="email" label="Address of mail" type="email" autocomplete="username" />
        <button class="main" type="submit">
          Send me a link
        </button>
      </form>
    )}
    <p class="aside">
      <a href={`${site.base}/sign-in`}>Back to sign in</a>
    </p>
  </DoorPage>
);
