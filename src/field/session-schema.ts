import { type Static, Type } from "@sinclair/typebox";
import { Id, Nullable, notBlank, OneOf } from "../schema.ts";

const FieldSessionCall = Type.Object(
  {
    tool: OneOf(["run_command", "fetch_page", "mcp"] as const),
    input: Type.String({ minLength: 1, maxLength: 1000, ...notBlank, description: "Command, URL or name of the tool" }),
    ok: Nullable(Type.Boolean({ description: "null: unknown" })),
    exitCode: Nullable(Type.Integer()),
    text: Nullable(Type.String({ maxLength: 2000, description: "Start of the result of a failed call" })),
  },
  { title: "FieldSessionCall" },
);
export type FieldSessionCall = Static<typeof FieldSessionCall>;

/** What is sent about a session of an agent in the field. */
export const FieldSessionInput = Type.Object(
  {
    agent: Type.String({ minLength: 1, maxLength: 100, ...notBlank, description: "Name and version" }),
    calls: Type.Array(FieldSessionCall, { minItems: 1, maxItems: 500, description: "Calls that used the product" }),
  },
  {
    title: "FieldSessionInput",
    examples: [
      {
        agent: "Claude Code 2.1",
        calls: [
          {
            tool: "fetch_page",
            input: "https://docs.example.com/sdk/upload",
            ok: false,
            exitCode: null,
            text: "Request failed with status code 404",
          },
        ],
      },
    ],
  },
);
export type FieldSessionInput = Static<typeof FieldSessionInput>;

export const ReceivedFieldSession = Type.Object(
  { reports: Type.Array(Id, { description: "IDs of the reports that its failed calls became" }) },
  { title: "ReceivedFieldSession" },
);
export type ReceivedFieldSession = Static<typeof ReceivedFieldSession>;
