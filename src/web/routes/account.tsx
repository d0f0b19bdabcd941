import { Elysia } from "elysia";
import { changePassword, endSignIn, hasPassword, listSignIns, renamePerson } from "../../auth/account.ts";
import { listReceivedInvitations } from "../../auth/invitations.ts";
import { listKeys } from "../../auth/keys.ts";
import { isLastOwner, leaveOrg, refuseLastOwner } from "../../auth/members.ts";
import { createOrgAsPerson } from "../../auth/orgs.ts";
import { allowsPasskeys, listPasskeys } from "../../auth/passkeys.ts";
import { chooseOrg, listMemberships } from "../../auth/people.ts";
import { addOwner } from "../../auth/setup.ts";
import { getTwoFactor, type TwoFactor } from "../../auth/two-factor.ts";
import type { Context } from "../../context.ts";
import { AppError } from "../../errors.ts";
import { type AccountPageInput, showAccount } from "../page-requests.tsx";
import { formErrorResponse, type PageOrResponse, seeOther, withCookies } from "../page-responses.ts";
import { AccountPage } from "../pages/account.tsx";
import { confirmKeys, requireConfirmation, revokesKeysField } from "../pages/confirm.tsx";
import { clientOf } from "../visitors.ts";

/** What the page says after each form, by the value of `done` in its URL. */
const messages = new Map(
  Object.entries({
    name: "Name saved.",
    password: "Password changed. All other sessions were signed out.",
    ended: "Session signed out.",
    left: "You left the organization.",
    twoFactorOff: "Two-factor sign-in is off.",
    passkeyAdded: "Passkey added.",
    passkeyRemoved: "Passkey removed.",
  }),
);

const accountPage = (
  ctx: Context,
  { signedIn, viewer, site }: AccountPageInput,
  twoFactor: TwoFactor,
  message: { successMessage?: string; errorMessage?: string },
) => (
  <AccountPage
    {...{ site, viewer, ...message }}
    person={signedIn.person}
    hasPassword={hasPassword(ctx, signedIn)}
    signIns={listSignIns(ctx, signedIn)}
    memberships={listMemberships(ctx, signedIn.person.id).map((membership) => ({
      ...membership,
      isLastOwner: isLastOwner(ctx, membership.org, membership.role),
    }))}
    invitations={listReceivedInvitations(ctx, signedIn.person.id)}
    mayCreateOrgs={ctx.config.people.canCreateOrgs}
    twoFactor={twoFactor}
    passkeys={allowsPasskeys(ctx) ? listPasskeys(ctx, signedIn.person) : null}
  />
);

/** Handles a form. When that fails, the account page shows the error. */
export const submitAccount = (
  ctx: Context,
  request: Request,
  handle: (account: AccountPageInput) => PageOrResponse | Promise<PageOrResponse>,
) =>
  showAccount(ctx, request, async (account) => {
    try {
      return await handle(account);
    } catch (error) {
      const twoFactor = await getTwoFactor(ctx, account.signedIn.person);
      return formErrorResponse(error, (errorMessage) => accountPage(ctx, account, twoFactor, { errorMessage }));
    }
  });

export const redirectAfter = (ctx: Context, done: string) => seeOther(ctx, `/account?done=${done}`);

/** Account page and its forms. */
export const accountPages = (ctx: Context) =>
  new Elysia({ name: "account pages" })
    .get("/account", ({ request }) =>
      showAccount(ctx, request, async (account) =>
        accountPage(ctx, account, await getTwoFactor(ctx, account.signedIn.person), {
          successMessage: messages.get(new URL(request.url).searchParams.get("done") ?? ""),
        }),
      ),
    )
    .post("/account/name", ({ request }) =>
      submitAccount(ctx, request, ({ signedIn, form }) => {
        renamePerson(ctx, signedIn, form.get("name") ?? "");
        return redirectAfter(ctx, "name");
      }),
    )
    .post("/account/password", ({ request }) =>
      submitAccount(ctx, request, async ({ signedIn, form }) => {
        const [current, next] = [form.get("currentPassword") ?? "", form.get("newPassword") ?? ""];
        return withCookies(
          redirectAfter(ctx, "password"),
          await changePassword(ctx, signedIn, current, next, clientOf(request)),
        );
      }),
    )
    .post("/account/end", ({ request }) =>
      submitAccount(ctx, request, ({ signedIn, form }) => {
        endSignIn(ctx, signedIn, form.get("signIn") ?? undefined);
        return redirectAfter(ctx, "ended");
      }),
    )
    .post("/account/organization", ({ request }) =>
      submitAccount(ctx, request, ({ signedIn, form }) => {
        chooseOrg(ctx, signedIn, form.get("org") ?? "");
        return seeOther(ctx, "/");
      }),
    )
    .post("/account/leave", ({ request }) =>
      submitAccount(ctx, request, async ({ signedIn, form }) => {
        const membership = listMemberships(ctx, signedIn.person.id).find((each) => each.org === form.get("org"));
        if (!membership) throw new AppError("not_found", "You are not a member of this organization.");
        refuseLastOwner(ctx, membership.org, membership);
        requireConfirmation(form, {
          title: `Leave ${membership.orgName}?`,
          consequences: ["You lose access immediately. Only an owner can invite you back."],
          ...confirmKeys(listKeys(ctx, membership.org, { createdBy: signedIn.person.id, isActive: true })),
          buttonText: "Leave organization",
          back: "/account",
        });
        await leaveOrg(ctx, membership.org, signedIn, clientOf(request), { revokesKeys: form.has(revokesKeysField) });
        return redirectAfter(ctx, "left");
      }),
    )
    .post("/account/create-organization", ({ request }) =>
      submitAccount(ctx, request, async ({ signedIn, form }) => {
        if (!ctx.config.people.canCreateOrgs)
          throw new AppError(
            "forbidden",
            "Only the operator of this server can create organizations (evald org create).",
          );
        const { id } = createOrgAsPerson(ctx, form.get("orgName") ?? "");
        await addOwner(ctx, id, signedIn);
        return seeOther(ctx, "/");
      }),
    );
