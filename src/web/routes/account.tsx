import { Elysia } from "elysia";
import { changePassword, endOtherSignIns, hasPassword, listSignIns, renamePerson } from "../../auth/account.ts";
import { changeEmail, readEmailChange, requestEmailChange } from "../../auth/email-change.ts";
import { listReceivedInvitations } from "../../auth/invitations.ts";
import { listKeys } from "../../auth/keys.ts";
import { sendsMail } from "../../auth/mail.ts";
import { isLastOwner, leaveOrg, refuseLastOwner } from "../../auth/members.ts";
import { createOrgAsPerson } from "../../auth/orgs.ts";
import { allowsPasskeys, listPasskeys } from "../../auth/passkeys.ts";
import { chooseOrg, listMemberships, signOut } from "../../auth/people.ts";
import { addOwner } from "../../auth/setup.ts";
import { getTwoFactor, type TwoFactor } from "../../auth/two-factor.ts";
import type { Context } from "../../context.ts";
import { listDeletedOrgsOf, restore } from "../../deletions/deletions.ts";
import { deletePerson, exportPerson, refuseOnlyOwner } from "../../deletions/people.ts";
import { AppError } from "../../errors.ts";
import { type AccountPageInput, showAccount } from "../page-requests.tsx";
import { formErrorResponse, type PageOrResponse, seeOther, withCookies } from "../page-responses.ts";
import { AccountPage } from "../pages/account.tsx";
import { keyConsequences, requireConfirmation, revokesKeysField, UnconfirmedError } from "../pages/confirm.tsx";
import { clientOf } from "../visitors.ts";

/** The messages that the page shows after each form, by the value of `done` in its URL. */
const messages = new Map(
  Object.entries({
    name: "Name saved.",
    password: "Password changed. All other sessions were signed out.",
    ended: "Session signed out.",
    left: "You left the organization.",
    twoFactorOff: "Two-factor sign-in is off.",
    passkeyAdded: "Passkey added.",
    passkeyRemoved: "Passkey removed.",
    deletedOrg: "Organization deleted. You can restore it for 7 days.",
    restored: "Organization restored.",
    mailed: "We emailed a link to the new address. Open it to change your address.",
    email: "Email address changed.",
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
    deletedOrgs={listDeletedOrgsOf(ctx, signedIn.person.id)}
    sendsMail={sendsMail(ctx)}
  />
);

/** Handles a form. If that fails, the account page shows the error. */
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
const emailConfirmation = (email: string) => ({
  title: `Change your email address to ${email}?`,
  consequences: ["You sign in with the new address from then on."],
  buttonText: "Change email address",
  back: "/account",
  isDestructive: false,
});

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
        endOtherSignIns(ctx, signedIn, form.get("signIn") ?? undefined);
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
          ...keyConsequences(listKeys(ctx, membership.org, { createdBy: signedIn.person.id, isActive: true })),
          buttonText: "Leave organization",
          back: "/account",
        });
        await leaveOrg(ctx, membership.org, signedIn, clientOf(request), { revokesKeys: form.has(revokesKeysField) });
        return redirectAfter(ctx, "left");
      }),
    )
    .post("/account/email", ({ request }) =>
      submitAccount(ctx, request, async ({ signedIn: { person }, form }) => {
        await requestEmailChange(ctx, person, form.get("email") ?? "");
        return redirectAfter(ctx, "mailed");
      }),
    )
    .get("/account/email/:token", ({ request, params }) =>
      showAccount(ctx, request, ({ signedIn: { person } }) => {
        // Shows the confirmation, which the POST below handles.
        throw new UnconfirmedError(emailConfirmation(readEmailChange(ctx, person, params.token)));
      }),
    )
    .post("/account/email/:token", ({ request, params }) =>
      showAccount(ctx, request, ({ signedIn: { person }, form }) => {
        const email = readEmailChange(ctx, person, params.token);
        requireConfirmation(form, emailConfirmation(email));
        // Opening the link has proven that the address belongs to the person.
        changeEmail(ctx, person, email, { isProven: true });
        return redirectAfter(ctx, "email");
      }),
    )
    .get("/account/data.json", ({ request }) =>
      showAccount(ctx, request, ({ signedIn }) =>
        Response.json(exportPerson(ctx, signedIn.person.id), {
          headers: {
            "content-disposition": 'attachment; filename="evald-account.json"',
            "cache-control": "private, no-store",
          },
        }),
      ),
    )
    .post("/account/restore", ({ request }) =>
      submitAccount(ctx, request, async ({ signedIn: { person }, form }) => {
        const deletion = listDeletedOrgsOf(ctx, person.id).find(({ id }) => id === form.get("deletion"));
        if (!deletion) throw new AppError("not_found", "The organization was not found.");
        await restore(ctx, deletion.org, deletion.id);
        return redirectAfter(ctx, "restored");
      }),
    )
    .post("/account/delete", ({ request }) =>
      submitAccount(ctx, request, async ({ signedIn: { person }, form }) => {
        refuseOnlyOwner(ctx, person.id);
        requireConfirmation(form, {
          title: "Delete your account?",
          consequences: [
            "You’re signed out everywhere and leave all organizations. This can’t be undone.",
            "What you made stays, with “deleted person” in place of your name. API keys that you created keep working: revoke them first if they should not.",
          ],
          typed: person.email,
          link: { text: "Download your data first", path: "/account/data.json" },
          buttonText: "Delete account",
          back: "/account",
        });
        await deletePerson(ctx, person.id);
        return withCookies(seeOther(ctx, "/sign-in"), await signOut(ctx, clientOf(request)));
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
