import { Elysia } from "elysia";
import { acceptInvitation, readInvitation } from "../../auth/invitations.ts";
import { createFirstOwner, readSetup } from "../../auth/setup.ts";
import { ssoNameOf } from "../../auth/sso.ts";
import type { Context } from "../../context.ts";
import { showPublic, submitPublic } from "../page-requests.tsx";
import { formErrorResponse, seeOther, withCookies } from "../page-responses.ts";
import { InvitePage } from "../pages/invite.tsx";
import { SetupPage } from "../pages/setup.tsx";
import { clientOf } from "../visitors.ts";
import { TokenParams } from "./sign-in.tsx";

/** The setup of an organization without people, and invitations. */
export const onboardingPages = (ctx: Context) =>
  new Elysia({ name: "onboarding pages" })
    .get(
      "/setup/:token",
      ({ request, params }) =>
        showPublic(ctx, request, ({ signedIn }, site) => {
          const { orgName } = readSetup(ctx, params.token);
          const person = signedIn?.person ?? null;
          return <SetupPage {...{ site, path: `/setup/${params.token}`, orgName, person }} />;
        }),
      { params: TokenParams },
    )
    .post(
      "/setup/:token",
      ({ request, params }) =>
        submitPublic(ctx, request, async ({ signedIn }, form, site) => {
          const { orgName } = readSetup(ctx, params.token);
          const values = {
            orgName: form.get("orgName") ?? orgName,
            name: form.get("name") ?? "",
            email: form.get("email") ?? "",
          };
          const owner = { ...values, password: form.get("password") ?? "" };
          try {
            return withCookies(
              seeOther(ctx, "/"),
              await createFirstOwner(ctx, params.token, signedIn, owner, clientOf(request)),
            );
          } catch (error) {
            const path = `/setup/${params.token}`;
            return formErrorResponse(error, (errorMessage) => (
              <SetupPage {...{ site, path, orgName, person: signedIn?.person ?? null, values, errorMessage }} />
            ));
          }
        }),
      { params: TokenParams },
    )
    .get(
      "/invite/:token",
      ({ request, params }) =>
        showPublic(ctx, request, ({ signedIn }, site) => {
          const invitation = readInvitation(ctx, params.token);
          const path = `/invite/${params.token}`;
          return (
            <InvitePage {...{ site, path, invitation, person: signedIn?.person ?? null, ssoName: ssoNameOf(ctx) }} />
          );
        }),
      { params: TokenParams },
    )
    .post(
      "/invite/:token",
      ({ request, params }) =>
        submitPublic(ctx, request, async ({ signedIn }, form, site) => {
          const invitation = readInvitation(ctx, params.token);
          const name = form.get("name") ?? "";
          const account = { name, password: form.get("password") ?? "" };
          try {
            const cookies = await acceptInvitation(ctx, params.token, signedIn, account, clientOf(request));
            return withCookies(seeOther(ctx, "/"), cookies);
          } catch (error) {
            const path = `/invite/${params.token}`;
            const person = signedIn?.person ?? null;
            return formErrorResponse(error, (errorMessage) => (
              <InvitePage {...{ site, path, invitation, person, name, errorMessage, ssoName: ssoNameOf(ctx) }} />
            ));
          }
        }),
      { params: TokenParams },
    );
