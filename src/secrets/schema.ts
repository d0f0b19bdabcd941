import { type Static, Type } from "@sinclair/typebox";
import { Nullable, OneOf, shape, Time } from "../schema.ts";

/** A shorter text can't be told from other texts in what a run stores. */
export const minSecretChars = 8;
export const maxSecretChars = 4096;
export const maxSecrets = 100;

export const secretName = shape(
  "^[A-Za-z_][A-Za-z0-9_]{0,99}$",
  "1 to 100 letters, digits and _, starting with a letter or _",
);

/** Maximum number of hosts to which a secret may be sent. */
const maxSecretHosts = 20;
const Hosts = Type.Array(
  Type.String({
    maxLength: 260,
    ...shape("^[a-zA-Z0-9.:\\[\\]_-]+$", "a host, such as api.acme.example or localhost:8080"),
  }),
  {
    minItems: 1,
    maxItems: maxSecretHosts,
    title: "SecretHosts",
    description: "The only hosts that may get it",
  },
);

export const CheckSecret = Type.Object(
  {
    name: Type.String(),
    hosts: Nullable(Hosts),
    state: OneOf(["usable", "unreadable"], "unreadable: EVALD_SECRET_KEY is missing or has changed"),
    updatedAt: Time,
  },
  {
    title: "CheckSecret",
    examples: [
      { name: "ACME_TOKEN", hosts: ["api.acme.example"], state: "usable", updatedAt: "2026-11-21T09:30:00.000Z" },
    ],
  },
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
    hosts: Type.Optional(Nullable(Hosts)),
  },
  { title: "CheckSecretInput", examples: [{ value: "a-token-of-the-product", hosts: ["api.acme.example"] }] },
);
export type CheckSecretInput = Static<typeof CheckSecretInput>;
