import type { Passkey } from "../../auth/passkeys.ts";
import type { TwoFactor } from "../../auth/two-factor.ts";
import { count } from "../../grading/text.ts";
import { loadQrCodes } from "../../lazy-packages.ts";
import { PasswordField, TextField } from "../components/field.tsx";
import { Copyable, DangerButton, Notices, Submit } from "../components/form-parts.tsx";
import { Layout } from "../components/layout.tsx";
import { Day } from "../components/when.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

type ToUrl = (path: string) => string;

/** A form that asks for the password before its action. */
const PasswordForm = ({ action, id, label, isBad }: { action: string; id: string; label: string; isBad?: boolean }) => (
  <form method="post" action={action}>
    <PasswordField id={id} label="Current password" />
    <button type="submit" class={isBad ? "bad" : undefined}>
      {label}
    </button>
  </form>
);

type TwoFactorProps = { to: ToUrl; twoFactor: TwoFactor; hasPassword: boolean };

/** The section of the account page for two-factor sign-in. It can be turned on or off here, and has the backup codes. */
export const TwoFactorSection = ({ to, twoFactor, hasPassword }: TwoFactorProps) => (
  <section id="two-factor" class="narrow">
    <h2>Two-factor sign-in</h2>
    {hasPassword ? (
      <TwoFactorSettings {...{ to, twoFactor }} />
    ) : (
      <p>You sign in with your identity provider, which asks for a second factor itself.</p>
    )}
  </section>
);

const TwoFactorSettings = ({ to, twoFactor }: Omit<TwoFactorProps, "hasPassword">) =>
  twoFactor.isOn ? (
    <>
      <p>
        On. After your password, evald asks for a code of your authenticator app.{" "}
        {count(twoFactor.backupCodesLeft, "backup code")} left.
      </p>
      <details>
        <summary>Replace backup codes</summary>
        <p class="aside">The old codes stop working.</p>
        <PasswordForm action={to("two-factor/backup-codes")} id="codes-password" label="Replace backup codes" />
      </details>
      <details>
        <summary>Turn off two-factor sign-in</summary>
        <p class="aside">Your password alone will be enough to sign in.</p>
        <PasswordForm action={to("two-factor/disable")} id="off-password" label="Turn off two-factor sign-in" isBad />
      </details>
    </>
  ) : (
    <>
      <p>Off. When it is on, you enter a code from an authenticator app after your password.</p>
      <PasswordForm action={to("two-factor")} id="on-password" label="Turn on two-factor sign-in" />
    </>
  );

type PasskeysProps = { to: ToUrl; passkeys: Passkey[] | null; hasPassword: boolean };

/** The section of the account page for passkeys. Adding a passkey needs JavaScript. */
export const PasskeySection = ({ to, passkeys, hasPassword }: PasskeysProps) => (
  <section id="passkeys">
    <h2>Passkeys</h2>
    {passkeys === null ? (
      <p>Browsers allow passkeys only on servers with HTTPS and a host name.</p>
    ) : (
      <>
        <p>A passkey is on your device or in your password manager. It signs you in without a password or a code.</p>
        {passkeys.length > 0 && (
          <ul class="rows">
            {passkeys.map(({ id, name, createdAt }) => (
              <li key={id}>
                <span>
                  <strong>{name}</strong>{" "}
                  <span class="aside">
                    Added <Day at={createdAt} />
                  </span>
                </span>
                <DangerButton action={to("passkeys/remove")} name="passkey" value={id} label={`Remove ${name}`}>
                  Remove
                </DangerButton>
              </li>
            ))}
          </ul>
        )}
        <form
          class="narrow only-live"
          method="post"
          action={to("passkeys")}
          data-passkey="create"
          data-passkey-options={to("passkeys/options")}
        >
          <TextField id="passkey-name" name="passkeyName" label="Name of the passkey" autocomplete="off" />
          {hasPassword && <PasswordField id="passkey-password" label="Current password" />}
          <input type="hidden" name="credential" />
          <button type="submit">Add passkey</button>
        </form>
        <noscript>
          <p class="aside">Adding a passkey needs JavaScript.</p>
        </noscript>
      </>
    )}
  </section>
);

type PageProps = { site: Site; viewer: Viewer | null };

/** Shows a new authenticator secret as a QR code and as text, and asks for the first code. */
export function TwoFactorSetupPage(props: PageProps & { uri: string; errorMessage?: string }) {
  const { site, viewer, uri, errorMessage } = props;
  const secret = new URL(uri).searchParams.get("secret") ?? "";
  return (
    <Layout site={site} viewer={viewer ?? undefined} isSignedIn path="/account" title="Set up two-factor sign-in">
      <div class="narrow two-factor-setup">
        <h1>Set up two-factor sign-in</h1>
        <Notices errorMessage={errorMessage} />
        <p>Scan this code with an authenticator app, such as one of your password manager.</p>
        <QrCode text={uri} label="QR code for an authenticator app" />
        <p>If you can’t scan it, enter this key in the app:</p>
        <Copyable id="secret" value={secret.match(/.{1,4}/g)?.join(" ") ?? ""} />
        <form method="post" action={`${site.base}/account/two-factor/confirm`}>
          <input type="hidden" name="uri" value={uri} />
          <TextField
            name="code"
            label="Code"
            autocomplete="one-time-code"
            hint="The 6 digits that the app shows now. All other sessions will be signed out."
          />
          <div class="toolbar">
            <Submit>Turn on two-factor sign-in</Submit>
            <a class="button" href={`${site.base}/account`}>
              Cancel
            </a>
          </div>
        </form>
      </div>
    </Layout>
  );
}

/** Shows new backup codes, once. */
export function BackupCodesPage({ site, viewer, codes, isNew }: PageProps & { codes: string[]; isNew: boolean }) {
  const text = codes.map((code) => `${code}\n`).join("");
  return (
    <Layout site={site} viewer={viewer ?? undefined} isSignedIn path="/account" title="Backup codes">
      <div class="narrow">
        <h1>Backup codes</h1>
        <Notices
          successMessage={
            isNew ? "Two-factor sign-in is on. All other sessions were signed out." : "Backup codes replaced."
          }
        />
        <p>
          Without your device, each of these codes signs you in once, after your password. Store them in a safe place:
          they won’t be shown again.
        </p>
        <pre class="backup-codes">
          <code id="codes">{text}</code>
        </pre>
        <div class="toolbar">
          <a
            class="button"
            download="evald-backup-codes.txt"
            href={`data:text/plain;charset=utf-8,${encodeURIComponent(text)}`}
          >
            Download
          </a>
          <button type="button" data-copy="#codes" class="only-live">
            Copy
          </button>
          <a class="button main" href={`${site.base}/account`}>
            Done
          </a>
        </div>
      </div>
    </Layout>
  );
}

/** Text as a QR code. Its background is always light, because cameras need that. */
function QrCode({ text, label }: { text: string; label: string }) {
  const { size, data } = loadQrCodes().encode(text, { border: 3 });
  // Each dark module of the code is a square of 1 × 1.
  const squares = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return (
    <svg class="qr-code" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={squares.join("")} fill="#000" />
    </svg>
  );
}
