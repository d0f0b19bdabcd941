import { drizzleAdapter } from "better-auth/adapters/drizzle";
import { APIError } from "better-auth/api";
import { type BetterAuthOptions, betterAuth } from "better-auth/minimal";
import { createAccessControl } from "better-auth/plugins/access";
import { organization } from "better-auth/plugins/organization";
import { defaultStatements } from "better-auth/plugins/organization/access";
import { twoFactor } from "better-auth/plugins/two-factor";
import type { Context } from "../context.ts";
import type { Db } from "../db/open.ts";
import type { ProvenTime } from "../db/proven-time.ts";
import { orgs } from "../db/tables/orgs.ts";
import {
  accounts,
  invitations,
  members,
  passkeys,
  people,
  type SignInMethod,
  signIns,
  twoFactors,
  verifications,
} from "../db/tables/people.ts";
import { type OidcConfig, oidcPlugin } from "./oidc.ts";
import type { PasskeyPlugin } from "./passkey-plugin.ts";
import { newBackupCodes } from "./totp.ts";

const daySeconds = 24 * 3600;

const accessControl = createAccessControl(defaultStatements);
const noPermissions = accessControl.newRole({});
const owner = accessControl.newRole({ member: ["create", "update", "delete"], invitation: ["create", "cancel"] });

/** The identity provider, who may sign in with it without an existing account, and what to do when a sign-in has proven an email address. */
type Sso = {
  oidc: OidcConfig;
  mayJoin: (email: string) => boolean;
  proveAddress: (personId: string) => void;
};

export type BetterAuth = ReturnType<typeof createBetterAuth>;

/**
 * Creates better-auth with our settings and tables. It manages people, sessions and memberships. `sso`: for sign-ins with an identity provider.
 * `passkey`: the passkey plugin, which few processes need.
 */
export function createBetterAuth(
  { db, config, log, now, provenTime, newId, baseUrl }: Context,
  secret: string,
  { sso, passkey }: { sso?: Sso; passkey?: PasskeyPlugin } = {},
) {
  const { origin, protocol, hostname } = new URL(baseUrl());
  const isSecure = protocol === "https:";
  const personField = { userId: "personId" };
  return betterAuth({
    appName: "evald",
    baseURL: origin,
    basePath: `${config.basePath}/sign-in`,
    secret,
    database: (options: BetterAuthOptions) => withProvenExpiry(openAdapter(db)(options), provenTime),
    telemetry: { enabled: false },
    rateLimit: { enabled: false },
    logger: { log: (level, message) => log.debug({ level }, message) },
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: 12,
      maxPasswordLength: 256,
      password: {
        hash: (password) => Bun.password.hash(password.normalize("NFKC")),
        verify: ({ hash, password }) => Bun.password.verify(password.normalize("NFKC"), hash),
      },
    },
    session: {
      fields: personField,
      expiresIn: 30 * daySeconds,
      updateAge: 300,
      deferSessionRefresh: true,
      // We ask for the password again instead of checking the age of the session.
      freshAge: 0,
      additionalFields: { method: { type: "string", required: true, input: false } },
    },
    account: {
      fields: personField,
      storeStateStrategy: "cookie",
      updateAccountOnSignIn: false,
      // This is safe only because `proveAddress` removes every password and session that somebody else may have.
      accountLinking: { requireLocalEmailVerified: false },
    },
    onAPIError: { errorURL: `${baseUrl()}/sign-in` },
    databaseHooks: hooksOf(sso),
    plugins: [
      oidcPlugin(sso?.oidc),
      // In a list of another length, the other plugins would lose their types.
      passkey ?? ({ id: "no-passkey" } as unknown as PasskeyPlugin),
      twoFactorPlugin(`evald ${hostname}`),
      organizationPlugin(),
    ],
    advanced: {
      database: { generateId: () => newId(now()), validateSchema: false },
      cookiePrefix: `${cookiePrefixOf(isSecure, config.basePath)}evald`,
      useSecureCookies: false,
      defaultCookieAttributes: { path: config.basePath || "/", secure: isSecure, sameSite: "lax", httpOnly: true },
      // Only `toHeaders` sets this header. If a request contains it, it is not passed on.
      ipAddress: { ipAddressHeaders: ["x-evald-address"], ipv6Subnet: 128 },
    },
  });
}

/** With these prefixes, browsers reject a cookie that was set over plain HTTP or by another subdomain. */
function cookiePrefixOf(isSecure: boolean, basePath: string): string {
  if (!isSecure) return "";
  // A cookie with `__Host-` must be valid for all paths.
  return basePath === "" ? "__Host-" : "__Secure-";
}

/** Hooks that better-auth calls before it stores a row. A hook can return `data` to replace the row, or false to store nothing. */
const hooksOf = (sso: Sso | undefined): NonNullable<BetterAuthOptions["databaseHooks"]> => ({
  user: {
    create: {
      async before({ email, emailVerified }) {
        if (sso && !(emailVerified && sso.mayJoin(email)))
          throw new APIError("FORBIDDEN", { code: "not_invited", message: "not invited" });
      },
    },
    // Only `proveAddress` marks an address as verified. It does so in the same transaction as the removals.
    update: { before: async () => (sso ? false : undefined) },
  },
  session: {
    create: {
      before: async (session, endpoint) => {
        sso?.proveAddress(session.userId);
        const method = methodOf(endpoint?.path, endpoint?.context.session?.session.method);
        return { data: { ...session, method } };
      },
    },
  },
  // We don't need the provider's access tokens.
  account: {
    create: {
      before: async ({ id, userId, accountId, providerId, password, createdAt, updatedAt }) => ({
        data: { ...withoutTokens, id, userId, accountId, providerId, password, createdAt, updatedAt },
      }),
    },
  },
});

/** Manages members and invitations. We create organizations ourselves. */
const organizationPlugin = () =>
  organization({
    ac: accessControl,
    roles: { owner, admin: noPermissions, member: noPermissions, viewer: noPermissions },
    allowUserToCreateOrganization: false,
    membershipLimit: 100_000,
    invitationLimit: 1000,
    invitationExpiresIn: 7 * daySeconds,
    cancelPendingInvitationsOnReInvite: true,
    // Our links are signed, so the ID of an invitation alone isn't enough to accept it.
    requireEmailVerificationOnInvitation: false,
    schema: {
      // Organizations have no slug, so the ID is used. It never changes.
      organization: { fields: { slug: "id" } },
      member: { fields: { organizationId: "orgId", userId: "personId" } },
      invitation: { fields: { organizationId: "orgId" } },
      session: { fields: { activeOrganizationId: "orgId" } },
    },
  });

const openAdapter = (db: Db) =>
  drizzleAdapter(db, {
    provider: "sqlite",
    schema: {
      user: people,
      session: signIns,
      account: accounts,
      organization: orgs,
      member: members,
      invitation: invitations,
      twoFactor: twoFactors,
      passkey: passkeys,
      verification: verifications,
    },
  });

/**
 * The second step of a sign-in. `issuer`: the name of this service in authenticator apps. We count attempts ourselves, in proven time, and reject
 * codes that were already used.
 */
function twoFactorPlugin(issuer: string) {
  const plugin = twoFactor({
    issuer,
    accountLockout: { enabled: false },
    backupCodeOptions: { customBackupCodesGenerate: newBackupCodes },
  });
  // The plugin's own count of attempts is removed, because our table has no columns for it.
  const { failedVerificationCount, lockedUntil, ...fields } = plugin.schema.twoFactor.fields;
  const schema = {
    ...plugin.schema,
    twoFactor: { fields: { ...fields, userId: { ...fields.userId, fieldName: "personId" } } },
  };
  return { ...plugin, schema: schema as unknown as typeof plugin.schema };
}

/**
 * How the person proved their identity for a new session. `path`: the path of better-auth's endpoint. `current`: the session that the new one
 * replaces.
 */
function methodOf(path: string | undefined, current: unknown): SignInMethod {
  if (path?.startsWith("/callback/")) return "sso";
  if (path === "/passkey/verify-authentication") return "passkey";
  if (current === "sso" || current === "passkey") return current;
  if (path?.startsWith("/two-factor/verify-")) return "password_and_code";
  // Turning the second factor on or off also replaces the session, without asking for a code.
  return path === "/change-password" && current === "password_and_code" ? current : "password";
}

type HookValues = Record<string, unknown> | null;

/** The values of a session, with an end that is `ms` later. Rows of other models are returned unchanged. */
const withLaterEnd = (model: string, values: HookValues, ms: number): HookValues =>
  model === "session" && values?.expiresAt instanceof Date
    ? { ...values, expiresAt: new Date(values.expiresAt.getTime() + ms) }
    : values;

/**
 * Stores the ends of sessions in proven time. better-auth compares them with the system clock. While that clock is ahead, each session would seem to
 * have ended, and browsers would be told to delete its cookie.
 */
function withProvenExpiry(adapter: ReturnType<ReturnType<typeof drizzleAdapter>>, provenTime: ProvenTime) {
  const { create, findOne, update } = adapter;
  const toProven = (model: string, values: HookValues) => withLaterEnd(model, values, -provenTime.aheadMs()) as never;
  const toClock = (model: string, values: HookValues) => withLaterEnd(model, values, provenTime.aheadMs()) as never;
  return {
    ...adapter,
    create: async (args: Parameters<typeof create>[0]) =>
      toClock(args.model, await create({ ...args, data: toProven(args.model, args.data) })),
    findOne: async (args: Parameters<typeof findOne>[0]) => toClock(args.model, await findOne(args)),
    update: async (args: Parameters<typeof update>[0]) =>
      toClock(args.model, await update({ ...args, update: toProven(args.model, args.update) })),
  };
}

const withoutTokens = {
  accessToken: undefined,
  refreshToken: undefined,
  idToken: undefined,
  accessTokenExpiresAt: undefined,
  refreshTokenExpiresAt: undefined,
  scope: undefined,
};
