import type { Deps } from "../deps.ts";
import type { Links } from "./links.ts";

const lifeMs = 30 * 24 * 3600_000;

/** Proof that a signed-in person opened a form with files, so that it is read even after they were signed out. */
export const createUploads = ({ now }: Pick<Deps, "now">, { links }: { links: Links }) => ({
  toUploadToken: (): string => links.toToken("upload", now() + lifeMs),

  isUploadToken(token: string): boolean {
    const [expiresAt = "0"] = links.readToken("upload", token) ?? [];
    return Number(expiresAt) > now();
  },
});
