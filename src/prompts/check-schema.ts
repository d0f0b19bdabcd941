import { type Static, Type } from "@sinclair/typebox";
import { checkMethods } from "../agents/task.ts";
import { http, OneOf, shape } from "../schema.ts";
import { textOf, variable } from "./workspace-schema.ts";

const headerName = shape(
  "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$",
  "a header: 1 to 100 letters, digits and characters such as - and _",
);
const headerValue = shape("^[\\t\\x20-\\x7e]*$", "printable ASCII characters on one line");
const pointer = shape("^(/([^~/]|~[01])*)*$", "a JSON Pointer (RFC 6901), such as /data/0/id");

/** The format `uri` is not used, because it allows no braces. */
const CheckUrl = Type.String({
  ...http,
  maxLength: 2000,
  description: "URL to request. For a secret in its query, write {{secret.NAME}}",
});

const JsonValue = Type.Object(
  {
    pointer: Type.String({
      ...pointer,
      maxLength: 500,
      description: "JSON Pointer (RFC 6901) of the value, such as /data/0/id",
    }),
    equals: Type.Optional(
      Type.Union([Type.String({ maxLength: 1000 }), Type.Number(), Type.Boolean(), Type.Null()], {
        description: "What the value must be. Default: anything",
      }),
    ),
    exists: Type.Optional(Type.Boolean({ description: "false: there must be no such value. Default: true" })),
  },
  { additionalProperties: false, description: "A value in the JSON of the response" },
);

export const DeclaredCheck = Type.Object(
  {
    url: Type.Optional(CheckUrl),
    command: Type.Optional(
      textOf(4000, "Shell command to run in a new sandbox over the workspace. Requires an agent with a model"),
    ),
    file: Type.Optional(
      textOf(1000, "Path of a file that must exist, relative to the workspace. Requires an agent with a model"),
    ),
    method: Type.Optional(OneOf(checkMethods, "Method of the request; default GET")),
    headers: Type.Optional(
      Type.Record(Type.String(headerName), Type.String({ ...headerValue, maxLength: 2000 }), {
        maxProperties: 20,
        additionalProperties: false,
        description: "Headers of the request. They are stored and shown; for a secret, write {{secret.NAME}}",
      }),
    ),
    body: Type.Optional(textOf(10_000, "Body of the request. For a secret, write {{secret.NAME}}")),
    status: Type.Optional(
      Type.Integer({ minimum: 100, maximum: 599, description: "Expected status of the response; default 200" }),
    ),
    json: Type.Optional(JsonValue),
    env: Type.Optional(
      Type.Record(Type.String(variable), Type.String({ maxLength: 2000 }), {
        maxProperties: 20,
        additionalProperties: false,
        description:
          "Environment variables of the command, besides those of the workspace. They are stored and shown; for a secret, write {{secret.NAME}}",
      }),
    ),
    exitCode: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 255, description: "Expected exit code of the command; default 0" }),
    ),
    contains: Type.Optional(textOf(1000, "Text that the response, the output or the file must contain")),
    invariant: Type.Optional(
      Type.Boolean({ description: "Counts even if it already passes before the run; others must fail before the run" }),
    ),
  },
  {
    title: "DeclaredCheck",
    description: "Verifies a part of the end goal before and after the run. Set exactly one of url, command and file",
  },
);
export type DeclaredCheck = Static<typeof DeclaredCheck>;
