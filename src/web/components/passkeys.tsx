import type { Site } from "../site.ts";

/** A button to sign in with a passkey. It works only with JavaScript. */
export const PasskeySignIn = ({ site, next }: { site: Site; next: string }) => (
  <>
    <p class="or only-live">or</p>
    <form
      class="only-live"
      method="post"
      action={`${site.base}/sign-in/passkey`}
      data-passkey="get"
      data-passkey-options={`${site.base}/sign-in/passkey/options`}
    >
      <input type="hidden" name="next" value={next} />
      <input type="hidden" name="credential" />
      <button type="submit" class="passkey">
        Sign in with a passkey
      </button>
    </form>
    <noscript>
      <p class="aside">Signing in with a passkey needs JavaScript.</p>
    </noscript>
  </>
);
