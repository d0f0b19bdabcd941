import { type Static, Type } from "@sinclair/typebox";
import { HttpUrl, notBlank, shape } from "../schema.ts";

/** A text that is not blank. */
export const textOf = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, ...notBlank, description });

/** The name of an environment variable. */
export const variable = shape(
  "^[A-Za-z_][A-Za-z0-9_]{0,99}$",
  "1 to 100 letters, digits and _, starting with a letter or _",
);
const serverName = shape(
  "^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$",
  "1 to 40 letters, digits and _ -, starting with a letter or digit",
);
const ref = shape(
  "^[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}$",
  "1 to 200 letters, digits and . _ / + -, starting with a letter or digit",
);

const McpServer = Type.Object(
  {
    url: Type.Optional(HttpUrl("URL of a remote server that speaks Streamable HTTP and needs no sign-in")),
    command: Type.Optional(textOf(1000, "Program that speaks MCP over stdio, started in the workspace")),
    args: Type.Optional(Type.Array(Type.String({ maxLength: 2000 }), { maxItems: 50 })),
    env: Type.Optional(
      Type.Record(Type.String(variable), Type.String({ maxLength: 2000 }), {
        maxProperties: 50,
        additionalProperties: false,
        description: "Environment variables of the program; not secret",
      }),
    ),
  },
  { additionalProperties: false, description: "Set exactly one of url and command" },
);

export const WorkspaceSetup = Type.Object(
  {
    archive: Type.Optional(
      Type.String({ format: "uuid", description: "ID of an uploaded archive whose files are unpacked" }),
    ),
    repository: Type.Optional(
      Type.Object(
        {
          url: HttpUrl("URL to clone from"),
          ref: Type.String({ ...ref, description: "Branch, tag or commit" }),
        },
        { description: "Public Git repository whose files are checked out. Not together with archive" },
      ),
    ),
    setup: Type.Optional(textOf(4000, "Shell command that runs in the workspace before the agent")),
    env: Type.Optional(
      Type.Record(Type.String(variable), Type.String({ maxLength: 2000 }), {
        maxProperties: 50,
        additionalProperties: false,
        description: "Environment variables of commands. They are stored and shown: do not put secrets here",
      }),
    ),
    instructions: Type.Optional(textOf(50_000, "Content of AGENTS.md, which agents read when they start")),
    skills: Type.Optional(
      Type.Object(
        {
          archive: Type.Optional(Type.String({ format: "uuid", description: "ID of an uploaded archive" })),
          folder: Type.Optional(textOf(500, "Path in the workspace, read after the setup command")),
        },
        {
          additionalProperties: false,
          description:
            "A skill (a folder with a SKILL.md), or a folder of skills. Set exactly one of archive and folder",
        },
      ),
    ),
    mcpServers: Type.Optional(
      Type.Record(Type.String(serverName), McpServer, {
        maxProperties: 20,
        additionalProperties: false,
        description: "MCP servers by name",
      }),
    ),
  },
  {
    title: "WorkspaceSetup",
    additionalProperties: false,
    description: "Content of the workspace when the agent starts. Requires an agent with a workspace",
  },
);
export type WorkspaceSetup = Static<typeof WorkspaceSetup>;
