import { and, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { members } from "../db/tables.ts";
import type { Links } from "./links.ts";

/** A form that was left open overnight is kept. */
const lifeMs = 24 * 3600_000;

/** Proof that a member opened a form with files, so that it is read even after they were signed out. */
export const createUploads = ({ db, now }: Pick<Context, "db" | "now">, { links }: { links: Links }) => ({
  toUploadToken: (org: OrgId, personId: string): string => links.toToken("upload", org, personId, now() + lifeMs),

  /** Whether the token is valid, and its holder still a member of the organization. */
  isUploadToken(token: string): boolean {
    const [org = "", personId = "", expiresAt = "0"] = links.readToken("upload", token) ?? [];
    if (Number(expiresAt) <= now()) return false;
    const own = and(eq(members.orgId, org), eq(members.personId, personId));
    return db.select({ id: members.id }).from(members).where(own).get() !== undefined;
  },
});
