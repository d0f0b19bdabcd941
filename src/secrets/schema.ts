import { type Static, Type } from "@sinclair/typebox";
import { OneOf, shape, Time } from "../schema.ts";

/** Shorter texts can't be told from others in what a run stores. */
export const minSecretChars = 8;
export const maxSecretChars = 4096;
export const maxSecrets = 100;

export const secretName = shape(
  "^[A-Za-z_][A-Za-z0-9_]{0,99}$",
  "1 to 100 letters, digits and _, starting with a letter or _",
);

export const CheckSecret = Type.Object(
  {
    name: Type.String(),
    state: OneOf(["usable", "unreadable"], "unreadable: EVALD_SECRET_KEY is missing or has changed"),
    updatedAt: Time,
  },
  { title: "CheckSecret", examples: [{ name: "ACME_TOKEN", state: "usable", updatedAt: "2026-11-21T09:30:00.000Z" }] },
);
export type CheckSecret = Static<typeof CheckSecret>;

export const CheckSecretInput = Type.Object(
  {
    value: Type.String({
      minLength: minSecretChars,
      maxLength: maxSecretChars,
      ...shape("^[\\x20-\\x7e]*$", "one line of printable ASCII characters"),
      description: "One line of printable ASCII characters. It is never returned",
    }),
  },
  { title: "CheckSecretInput", examples: [{ value: "a-token-of-the-product" }] },
);
