import { Elysia } from "elysia";
import {
  addPasskey,
  allowsPasskeys,
  beginPasskey,
  beginPasskeySignIn,
  getPasskey,
  removePasskey,
  signInWithPasskey,
} from "../../auth/passkeys.ts";
import {
  beginTwoFactor,
  confirmTwoFactor,
  disableTwoFactor,
  isCodeNeeded,
  renewBackupCodes,
  signInWithCode,
} from "../../auth/two-factor.ts";
import type { Context } from "../../context.ts";
import { AppError } from "../../errors.ts";
import { toPathAfterSignIn } from "../credential.ts";
import { showPublic, submitPublic } from "../page-requests.tsx";
import { formErrorResponse, pageResponse, seeOther, withCookies } from "../page-responses.ts";
import { requireConfirmation } from "../pages/confirm.tsx";
import { BackupCodesPage, TwoFactorSetupPage } from "../pages/second-factors.tsx";
import { CodePage } from "../pages/sign-in.tsx";
import { privateResponse } from "../responses.ts";
import { clientOf } from "../visitors.ts";
import { redirectAfter, submitAccount } from "./account.tsx";

/** The text that authenticator apps read from the QR code. It has only visible ASCII characters. */
const setupUriShape = /^otpauth:\/\/totp\/[\x21-\x7e]{1,1000}$/;

/** The response for a script that creates or requests a passkey. */
const optionsResponse = ({ options, cookies }: { options: unknown; cookies: string[] }): Response =>
  withCookies(privateResponse("json", JSON.stringify(options)), cookies);

/** Two-factor sign-in on the account page. */
export const twoFactorPages = (ctx: Context) =>
  new Elysia({ name: "two-factor pages" })
    .post("/account/two-factor", ({ request }) =>
      submitAccount(ctx, request, async ({ signedIn, viewer, form, site }) => {
        const uri = await beginTwoFactor(ctx, signedIn, form.get("password") ?? "", clientOf(request));
        return <TwoFactorSetupPage {...{ site, viewer, uri }} />;
      }),
    )
    .post("/account/two-factor/confirm", ({ request }) =>
      submitAccount(ctx, request, async ({ signedIn, viewer, form, site }) => {
        const uri = form.get("uri") ?? "";
        try {
          const { cookies, backupCodes } = await confirmTwoFactor(
            ctx,
            signedIn,
            form.get("code") ?? "",
            clientOf(request),
          );
          return withCookies(
            pageResponse(<BackupCodesPage {...{ site, viewer }} codes={backupCodes} isNew />),
            cookies,
          );
        } catch (error) {
          // The secret is shown again unchanged, because only this form contains it.
          if (!setupUriShape.test(uri)) throw error;
          return formErrorResponse(error, (errorMessage) => (
            <TwoFactorSetupPage {...{ site, viewer, uri, errorMessage }} />
          ));
        }
      }),
    )
    .post("/account/two-factor/backup-codes", ({ request }) =>
      submitAccount(ctx, request, async ({ signedIn, viewer, form, site }) => {
        const codes = await renewBackupCodes(ctx, signedIn, form.get("password") ?? "", clientOf(request));
        return <BackupCodesPage {...{ site, viewer, codes }} isNew={false} />;
      }),
    )
    .post("/account/two-factor/disable", ({ request }) =>
      submitAccount(ctx, request, async ({ signedIn, form }) =>
        withCookies(
          redirectAfter(ctx, "twoFactorOff"),
          await disableTwoFactor(ctx, signedIn, form.get("password") ?? "", clientOf(request)),
        ),
      ),
    );

/** Passkeys on the account page. */
export const passkeyPages = (ctx: Context) =>
  new Elysia({ name: "passkey pages" })
    .post("/account/passkeys/options", ({ request }) =>
      submitAccount(ctx, request, async ({ signedIn, form }) =>
        optionsResponse(await beginPasskey(ctx, signedIn, form.get("password") ?? "", clientOf(request))),
      ),
    )
    .post("/account/passkeys", ({ request }) =>
      submitAccount(ctx, request, async ({ signedIn, form }) => {
        const [name, credential] = [form.get("passkeyName") ?? "", form.get("credential") ?? ""];
        await addPasskey(ctx, signedIn, name, credential, clientOf(request));
        return redirectAfter(ctx, "passkeyAdded");
      }),
    )
    .post("/account/passkeys/remove", ({ request }) =>
      submitAccount(ctx, request, ({ signedIn, form }) => {
        const { id, name } = getPasskey(ctx, signedIn.person, form.get("passkey") ?? "");
        requireConfirmation(form, {
          title: `Remove the passkey ${name}?`,
          consequences: ["You can no longer sign in with it."],
          buttonText: "Remove passkey",
          back: "/account",
        });
        removePasskey(ctx, signedIn, id);
        return redirectAfter(ctx, "passkeyRemoved");
      }),
    );

/** The second step of a sign-in, and signing in with a passkey. */
export const secondStepPages = (ctx: Context) =>
  new Elysia({ name: "second step pages" })
    .get("/sign-in/code", ({ request }) =>
      showPublic(ctx, request, (_, site) => {
        if (!isCodeNeeded(ctx, clientOf(request))) return seeOther(ctx, "/sign-in");
        const next = toPathAfterSignIn(new URL(request.url).searchParams.get("next"));
        return <CodePage {...{ site, next }} allowsPasskeys={allowsPasskeys(ctx)} />;
      }),
    )
    .post("/sign-in/code", ({ request }) =>
      submitPublic(ctx, request, async (_, form, site) => {
        const next = toPathAfterSignIn(form.get("next"));
        try {
          const cookies = await signInWithCode(ctx, form.get("code") ?? "", clientOf(request));
          return withCookies(seeOther(ctx, next), cookies);
        } catch (error) {
          return formErrorResponse(error, (errorMessage) => (
            <CodePage {...{ site, next, errorMessage }} allowsPasskeys={allowsPasskeys(ctx)} />
          ));
        }
      }),
    )
    .post("/sign-in/passkey/options", ({ request }) =>
      submitPublic(ctx, request, async () => {
        if (!allowsPasskeys(ctx)) throw new AppError("not_found", "This server can't use passkeys.");
        return optionsResponse(await beginPasskeySignIn(ctx, clientOf(request)));
      }),
    )
    .post("/sign-in/passkey", ({ request }) =>
      submitPublic(ctx, request, async (_, form) => {
        const cookies = await signInWithPasskey(ctx, form.get("credential") ?? "", clientOf(request));
        return withCookies(seeOther(ctx, toPathAfterSignIn(form.get("next"))), cookies);
      }),
    );
