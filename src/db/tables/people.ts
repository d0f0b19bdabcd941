import { sql } from "drizzle-orm";
import { check, index, integer, primaryKey, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import { boolean, dateTimestamp, oneOf, timestamp } from "./columns.ts";
import { orgIdColumn, orgs } from "./orgs.ts";

/** Roles of people in an organization, highest first. */
export const roles = ["owner", "admin", "member", "viewer"] as const;
const invitationStatuses = ["pending", "accepted", "rejected", "canceled"] as const;
/** How the person of a session proved who they are: `password_and_code` is two factors, as is a passkey. */
const signInMethods = ["password", "password_and_code", "passkey", "sso"] as const;
export type Role = (typeof roles)[number];
export type SignInMethod = (typeof signInMethods)[number];

/** People can be members of several organizations. `email` is in lower case. */
export const people = sqliteTable(
  "people",
  {
    id: text().primaryKey(),
    name: text().notNull(),
    email: text().notNull().unique(),
    emailVerified: boolean("email_verified").notNull(),
    image: text(),
    /** Operates the whole service: sees its queue and its health over all organizations. Only the command line on the machine grants it. */
    isOperator: boolean("is_operator").notNull().default(false),
    /** Whether a code of an authenticator app is needed after the password. */
    twoFactorEnabled: boolean("two_factor_enabled").notNull().default(false),
    createdAt: dateTimestamp("created_at").notNull(),
    updatedAt: dateTimestamp("updated_at").notNull(),
  },
  (table) => [check("people_email", sql`${table.email} = lower(${table.email})`)],
);

const personId = () =>
  text("person_id")
    .notNull()
    .references(() => people.id, { onDelete: "cascade" });

/** How a person signs in: by password (argon2id), or through the identity provider, whose tokens are not stored. */
export const accounts = sqliteTable(
  "accounts",
  {
    id: text().primaryKey(),
    personId: personId(),
    providerId: text("provider_id").notNull(),
    accountId: text("account_id").notNull(),
    password: text(),
    createdAt: dateTimestamp("created_at").notNull(),
    updatedAt: dateTimestamp("updated_at").notNull(),
  },
  (table) => [
    unique("accounts_of_provider").on(table.providerId, table.accountId),
    index("accounts_of_person").on(table.personId),
  ],
);

/** A browser in which a person is signed in. The token alone grants no access: the cookie contains a signature that is not stored. */
export const signIns = sqliteTable(
  "sign_ins",
  {
    id: text().primaryKey(),
    token: text().notNull().unique(),
    personId: personId(),
    /** The organization that the person selected. */
    orgId: text("org_id").references(() => orgs.id),
    ipAddress: text("ip_address"),
    userAgent: text("user_agent"),
    method: text({ enum: signInMethods }).notNull(),
    createdAt: dateTimestamp("created_at").notNull(),
    updatedAt: dateTimestamp("updated_at").notNull(),
    expiresAt: dateTimestamp("expires_at").notNull(),
  },
  (table) => [
    index("sign_ins_of_person").on(table.personId),
    check("sign_ins_method", oneOf(table.method, signInMethods)),
  ],
);

/** The authenticator app of a person. Secret and backup codes are sealed with the secret of the service, which is not in the database. */
export const twoFactors = sqliteTable("two_factors", {
  id: text().primaryKey(),
  personId: personId().unique(),
  secret: text().notNull(),
  backupCodes: text("backup_codes").notNull(),
  /** Whether a code has confirmed it. Until then, signing in needs none. */
  verified: boolean("verified").notNull(),
  /** The 30-second step of the newest accepted code. No code of it or of an earlier step is accepted again. */
  lastStep: integer("last_step").notNull().default(0),
});

/** A passkey of a person: its public key, with which nobody can sign in. */
export const passkeys = sqliteTable(
  "passkeys",
  {
    id: text().primaryKey(),
    personId: personId(),
    name: text().notNull(),
    credentialId: text("credential_id").notNull().unique(),
    publicKey: text("public_key").notNull(),
    counter: integer().notNull(),
    deviceType: text("device_type").notNull(),
    backedUp: boolean("backed_up").notNull(),
    transports: text(),
    aaguid: text(),
    createdAt: dateTimestamp("created_at").notNull(),
  },
  (table) => [index("passkeys_of_person").on(table.personId)],
);

/** A challenge of a few minutes: the second step of a sign-in, or one for a passkey. `value` names the person. */
export const verifications = sqliteTable("verifications", {
  id: text().primaryKey(),
  identifier: text().notNull().unique(),
  value: text().notNull(),
  createdAt: dateTimestamp("created_at").notNull(),
  updatedAt: dateTimestamp("updated_at").notNull(),
  expiresAt: dateTimestamp("expires_at").notNull(),
});

/** Failed sign-in attempts, counted per network and per account. */
export const signInFailures = sqliteTable("sign_in_failures", {
  key: text().primaryKey(),
  count: integer().notNull(),
  since: timestamp("since").notNull(),
});

export const members = sqliteTable(
  "members",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    personId: personId(),
    role: text({ enum: roles }).notNull(),
    createdAt: dateTimestamp("created_at").notNull(),
  },
  (table) => [
    unique("members_once").on(table.orgId, table.personId),
    index("members_of_person").on(table.personId),
    check("members_role", oneOf(table.role, roles)),
  ],
);

/**
 * People who left an organization and have not become members again. Triggers keep the rows, so that the names of these people can be removed from
 * what they made there.
 */
export const formerMembers = sqliteTable(
  "former_members",
  {
    orgId: orgIdColumn(),
    personId: text("person_id").notNull(),
    /** null until the next maintenance sets it, because triggers can't read the service's clock. */
    leftAt: timestamp("left_at"),
    /** When the organization forgot their name; null: it keeps it. */
    forgottenAt: timestamp("forgotten_at"),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.personId] }),
    index("former_members_of_person").on(table.personId),
  ],
);

export const invitations = sqliteTable(
  "invitations",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    email: text().notNull(),
    role: text({ enum: roles }).notNull(),
    status: text({ enum: invitationStatuses }).notNull(),
    inviterId: text("inviter_id")
      .notNull()
      .references(() => people.id, { onDelete: "cascade" }),
    createdAt: dateTimestamp("created_at").notNull(),
    expiresAt: dateTimestamp("expires_at").notNull(),
  },
  (table) => [
    index("invitations_newest").on(table.orgId, table.id),
    check("invitations_role", oneOf(table.role, roles)),
    check("invitations_status", oneOf(table.status, invitationStatuses)),
  ],
);
