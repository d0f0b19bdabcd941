import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Db } from "../db/open.ts";

/** In the data folder, next to the database. */
export const secretFile = "evald.secret";

/**
 * The secret that signs cookies and links, 32 bytes as base64url. It is stored outside of the database, so that a
 * stolen backup grants no access. Created on first use.
 */
export function readSecret(db: Db): string {
  const { filename } = db.$client;
  const made = randomBytes(32).toString("base64url");
  if (filename === ":memory:" || filename === "") return made;
  const path = join(dirname(filename), secretFile);
  try {
    writeFileSync(path, made, { mode: 0o600, flag: "wx", flush: true });
    return made;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    const kept = readFileSync(path, "utf8").trim();
    if (kept.length < 32) throw new Error(`${path} is damaged. Delete it; everyone will have to sign in again.`);
    return kept;
  }
}

type Kind = "setup" | "invite" | "reset" | "upload";

export type Links = ReturnType<typeof createLinks>;

/** Tokens for links. They are signed, so they can't be guessed or changed, and contain their purpose and expiry. */
export function createLinks(secret: () => string) {
  const sign = (kind: Kind, text: string) =>
    createHmac("sha256", secret()).update(`${kind} ${text}`).digest().subarray(0, 24);

  return {
    toToken: (kind: Kind, ...parts: (string | number)[]): string => {
      const text = parts.join(".");
      return `${Buffer.from(text).toString("base64url")}.${sign(kind, text).toString("base64url")}`;
    },

    /** The parts of a token; null unless it was created here for this purpose. */
    readToken(kind: Kind, token: string): string[] | null {
      const [body = "", signature = ""] = token.split(".");
      const text = Buffer.from(body, "base64url").toString();
      const given = Buffer.from(signature, "base64url");
      const right = sign(kind, text);
      return given.length === right.length && timingSafeEqual(given, right) ? text.split(".") : null;
    },
  };
}
