import { type Static, Type } from "@sinclair/typebox";
import { Nullable, OneOf, Time } from "../schema.ts";

/** `unreadable`: EVALD_SECRET_KEY is missing or has changed. */
const loginStates = ["usable", "expired", "unreadable"] as const;

export const AgentLogin = Type.Object(
  {
    agent: Type.String(),
    state: OneOf(loginStates, "unreadable: EVALD_SECRET_KEY is missing or has changed"),
    expiresAt: Nullable(Type.String({ format: "date-time", description: "null: the file does not say" })),
    createdAt: Time,
  },
  { title: "AgentLogin" },
);
export type AgentLogin = Static<typeof AgentLogin>;

export const AgentLoginInput = Type.Object(
  { file: Type.String({ description: "Text of the file that the login of the agent writes" }) },
  { title: "AgentLoginInput" },
);
