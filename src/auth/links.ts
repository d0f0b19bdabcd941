import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { and, eq } from "drizzle-orm";
import { type Context, type OrgId, perContext } from "../context.ts";
import type { Db } from "../db/open.ts";
import { members } from "../db/tables/people.ts";

/** The name of the file. It is in the data directory, next to the database. */
export const secretFile = "evald.secret";

/**
 * The secret that signs cookies and links: 32 bytes as base64url. It is created on first use. It is stored outside of the database, so that a stolen
 * backup grants no access.
 */
function readSecret(db: Db): string {
  const { filename } = db.$client;
  const newSecret = randomBytes(32).toString("base64url");
  // A database in memory or in a temporary file has no folder. It exists only as long as this process.
  if (filename === ":memory:" || filename === "") return newSecret;
  const path = join(dirname(filename), secretFile);
  try {
    writeFileSync(path, newSecret, { mode: 0o600, flag: "wx", flush: true });
    return newSecret;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    const stored = readFileSync(path, "utf8").trim();
    if (stored.length < 32) throw new Error(`${path} is damaged. Delete it; everyone will have to sign in again.`);
    return stored;
  }
}

const secrets = perContext((ctx) => ({ secret: readSecret(ctx.db) }));

/** The secret of this service, read when it is first needed. */
export const secretOf = (ctx: Context): string => secrets(ctx).secret;

type LinkKind = "setup" | "invite" | "reset" | "upload" | "email";

/** A signed token for a link. The parts must not contain a period. */
export function toLinkToken(ctx: Context, kind: LinkKind, ...parts: (string | number)[]): string {
  const text = parts.join(".");
  return `${Buffer.from(text).toString("base64url")}.${sign(ctx, kind, text).toString("base64url")}`;
}

/** The parts of a token; null unless this service created the token for the same kind of link. */
export function readLinkToken(ctx: Context, kind: LinkKind, token: string): string[] | null {
  const [body = "", signature = ""] = token.split(".");
  const text = Buffer.from(body, "base64url").toString();
  const sent = Buffer.from(signature, "base64url");
  const expected = sign(ctx, kind, text);
  return sent.length === expected.length && timingSafeEqual(sent, expected) ? text.split(".") : null;
}

/** 192 bits are enough, and make links shorter than the whole digest would. */
const signatureBytes = 24;

const sign = (ctx: Context, kind: LinkKind, text: string) =>
  createHmac("sha256", secretOf(ctx)).update(`${kind} ${text}`).digest().subarray(0, signatureBytes);

/** Long enough for a form that stayed open overnight. */
const uploadLifeMs = 24 * 3600_000;

/** A token that lets a member upload a file without signing in, for 24 hours. */
export const toUploadToken = (ctx: Context, org: OrgId, personId: string): string =>
  toLinkToken(ctx, "upload", org, personId, ctx.now() + uploadLifeMs);

/** Whether the token is valid and its holder is still a member of the organization. */
export function isUploadToken(ctx: Context, token: string): boolean {
  const [org = "", personId = "", expiresAt = "0"] = readLinkToken(ctx, "upload", token) ?? [];
  if (Number(expiresAt) <= ctx.now()) return false;
  const where = and(eq(members.orgId, org), eq(members.personId, personId));
  return ctx.db.select({ id: members.id }).from(members).where(where).get() !== undefined;
}
