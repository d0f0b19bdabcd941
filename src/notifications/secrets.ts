import { eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { destinations } from "../db/tables/notifications.ts";
import { badRequest, conflict } from "../errors.ts";
import { countUnreadableKeys } from "../models/models.ts";
import { seal, unseal } from "../models/seal.ts";

type DestinationRow = typeof destinations.$inferSelect;
type RowKey = { orgId: string; id: string };
/** The content that is stored encrypted. `previous`: the signing secret before the last rotation. */
type SecretContent = { secret?: string; previous?: string; headers?: Record<string, string>; url?: string };

/** The key that encrypts secrets. Throws bad_request without EVALD_SECRET_KEY. */
export function requireSecretKey({ config }: Context): Uint8Array {
  if (config.secretKey) return config.secretKey;
  throw badRequest(
    "Set EVALD_SECRET_KEY before adding a destination with a secret. Generate one with: openssl rand -base64 32",
  );
}

/** Encrypts the secrets of a destination. Throws bad_request without EVALD_SECRET_KEY. */
export const sealContent = (ctx: Context, row: RowKey, content: SecretContent): Buffer =>
  seal(JSON.stringify(content), requireSecretKey(ctx), sealContextOf(row));

/** Decrypts the secrets of a destination. Empty if it has none; null if EVALD_SECRET_KEY is missing or has changed. */
export function unsealContent(ctx: Context, row: DestinationRow): SecretContent | null {
  if (row.sealed === null) return {};
  const text = ctx.config.secretKey ? unseal(row.sealed, ctx.config.secretKey, sealContextOf(row)) : null;
  return text === null ? null : JSON.parse(text);
}

/** The number of secrets that EVALD_SECRET_KEY doesn't decrypt, in one organization or in all. */
export const countUnreadableSecrets = (ctx: Context, org?: OrgId) => ({
  modelKeys: countUnreadableKeys(ctx, org),
  destinations: countUnreadableDestinations(ctx, org),
});

/** The number of destinations whose secrets EVALD_SECRET_KEY doesn't decrypt, in one organization or in all. */
const countUnreadableDestinations = (ctx: Context, org?: OrgId): number =>
  ctx.db
    .select()
    .from(destinations)
    .where(org === undefined ? undefined : eq(destinations.orgId, org))
    .all()
    .filter((row) => unsealContent(ctx, row) === null).length;

/** Like `unsealContent`, but throws conflict if the secrets can't be decrypted. */
export function unsealContentOrThrow(ctx: Context, row: DestinationRow): SecretContent {
  const content = unsealContent(ctx, row);
  if (content) return content;
  throw conflict(
    "The secrets of this destination can't be decrypted. Restore EVALD_SECRET_KEY, or delete the destination and add it again.",
  );
}

const sealContextOf = ({ orgId, id }: RowKey) => `${orgId} destination ${id}`;
