import { type Static, Type } from "@sinclair/typebox";
import { keyScopes } from "../http/operation.ts";
import { Id, Nullable, OneOf, Time } from "../schema.ts";

const Creator = Type.Object({
  id: Type.String({ description: "ID of the person" }),
  name: Nullable(Type.String({ description: "null: the person was forgotten" })),
  isMember: Type.Boolean({ description: "false: the person left the organization" }),
});
export type Creator = Static<typeof Creator>;

/** An API key in lists, without the key itself. */
export const ApiKey = Type.Object(
  {
    id: Id,
    name: Type.String(),
    display: Type.String({ description: "Its first and last characters" }),
    scopes: Nullable(Type.Array(OneOf(keyScopes), { description: "null: all except operate and audit" })),
    usesCompatibilityMode: Type.Boolean({
      description: "For clients that were not written for evald, see the page /docs/keys",
    }),
    createdBy: Nullable(Creator),
    trustId: Nullable(Type.String({ description: "Trust whose CI job exchanged an ID token for it" })),
    createdAt: Time,
    expiresAt: Nullable(Time),
    revokedAt: Nullable(Time),
    lastUsedAt: Nullable(Time),
  },
  { title: "ApiKey" },
);
export type ApiKey = Static<typeof ApiKey>;

export const Whoami = Type.Object(
  {
    organization: Type.Object({ id: Type.String({ format: "uuid" }), name: Type.String(), timeZone: Type.String() }),
    key: Type.Object({
      id: Type.String({ format: "uuid" }),
      name: Type.String(),
      scopes: Nullable(
        Type.Array(OneOf(keyScopes), { description: "Scopes of the key; null: all except operate and audit" }),
      ),
    }),
  },
  { title: "Whoami" },
);
export type Whoami = Static<typeof Whoami>;
