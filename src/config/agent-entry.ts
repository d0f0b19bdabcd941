import { type Static, Type } from "@sinclair/typebox";
import { mapOf, Nullable, OneOf, shape } from "../schema.ts";
import { modelProviders } from "./model-settings.ts";

/** Output formats of coding agents. `acp`: the Agent Client Protocol over stdio. `none`: plain text. The end of the text is the answer. */
const streamFormats = ["claude", "codex", "gemini", "opencode", "copilot", "pi", "acp", "none"] as const;
export type StreamFormat = (typeof streamFormats)[number];

/** Formats of the files in which agents read their MCP servers. */
export const mcpFormats = ["claude", "codex", "gemini", "qwen", "opencode", "copilot"] as const;

/** evald's names for tools. Grading knows these names. */
const toolNames = ["run_command", "fetch_page", "write_file", "read_file", "list_files"] as const;
export type ToolName = (typeof toolNames)[number];

const id = shape(
  "^[a-z0-9][a-z0-9-]{0,62}$",
  "1 to 63 lowercase letters, digits and -, starting with a letter or digit",
);
export const variableName = shape("^[A-Za-z_][A-Za-z0-9_]*$", "letters, digits and _, starting with a letter or _");
const relativePath = shape(
  "^(?!/)(?!(?:.*/)?\\.\\.(?:/|$))[^\\0]+$",
  "a relative path without .., such as .config/agent.json",
);
const absolutePath = shape("^/[^/\\0]", "an absolute path of a file or folder, such as /opt/agent");
const hostName = shape("^[a-z0-9.-]+\\.[a-z0-9-]+$", "a host name in lowercase, such as api.example.com");
const prefix = shape("\\{server\\}", "text with {server} in it, such as mcp__{server}__");

const Args = Type.Array(Type.String());
const Env = Type.Record(Type.String(variableName), Type.Unknown(), { additionalProperties: false });
/** Text, lines of text, or an object that is written as JSON. */
const FileContent = Type.Union([Type.String(), Type.Array(Type.String()), Type.Record(Type.String(), Type.Unknown())]);
const Files = Type.Record(Type.String(relativePath), FileContent, { additionalProperties: false });

/** What an agent setting adds to the command line, the variables and the files of the agent. */
const Addition = Type.Object(
  { args: Type.Optional(Args), env: Type.Optional(Env), files: Type.Optional(Files) },
  { additionalProperties: false },
);
export type Addition = Static<typeof Addition>;

const choiceOf = <const T extends string>(values: readonly T[]) =>
  Type.Partial(
    Type.Object(Object.fromEntries(values.map((value) => [value, Addition])) as Record<T, typeof Addition>),
    { additionalProperties: false },
  );

/** How hard a model thinks. */
export const effortLevels = ["low", "medium", "high"] as const;
/** Whether an agent may do everything, or must ask first. */
export const permissionModes = ["allow", "ask"] as const;

/** The prompt settings that an agent supports, each with what it adds. */
const Options = Type.Object(
  {
    effort: Type.Optional(choiceOf(effortLevels)),
    /** `allow` applies unless a prompt chooses another mode. */
    permissions: Type.Optional(choiceOf(permissionModes)),
    /** `{systemPrompt}` is replaced by the text. */
    systemPrompt: Type.Optional(Addition),
    /** `off` applies unless a prompt chooses `on`. */
    webSearch: Type.Optional(choiceOf(["on", "off"])),
  },
  { additionalProperties: false },
);

const fieldPath = shape(
  "^[\\w-]+(\\.[\\w-]+)*$",
  "names of fields with dots between them, such as tokens.access_token",
);

/** How an agent works with a person's login instead of an API key. It then calls its vendor itself. */
const Login = Type.Object(
  {
    /** Path of the file with the login, in the agent's home directory. The agent's own login command writes this file. */
    file: Type.String(relativePath),
    /** Additional hosts of its vendor that it needs. */
    hosts: Type.Optional(Type.Array(Type.String(hostName))),
    /** The field of the file that contains when the login expires: a time, or a token that contains a time. */
    expiry: Type.Optional(Type.String(fieldPath)),
    /** Fields that are emptied. They contain tokens that work only once. A session that used such a token would end the person's login. */
    emptied: Type.Optional(Type.Array(Type.String(fieldPath))),
    /** Whether the agent must be able to change the file. It then gets a copy, whose changes are lost at the end of the session. */
    copied: Type.Optional(Type.Boolean()),
    args: Type.Optional(Args),
    /** null removes a variable. */
    env: Type.Optional(Env),
    files: Type.Optional(Files),
  },
  { additionalProperties: false },
);
export type LoginEntry = Static<typeof Login>;

const Mcp = Type.Object(
  {
    file: Type.String(relativePath),
    format: OneOf(mcpFormats),
    args: Type.Optional(Args),
    env: Type.Optional(Env),
    toolPrefix: Type.String(prefix),
  },
  { additionalProperties: false },
);

/** Several providers, each with the values of the agent's placeholders. */
const ProviderValues = Type.Partial(
  Type.Object(
    Object.fromEntries(modelProviders.map((provider) => [provider, mapOf(Type.String())])) as Record<
      (typeof modelProviders)[number],
      ReturnType<typeof mapOf<ReturnType<typeof Type.String>>>
    >,
  ),
  { additionalProperties: false, minProperties: 1 },
);

/**
 * A coding agent: how to find it, start it, and read what it does. The built-in agents of evald and the agents that the operator adds have the same
 * fields. docs/agents.md explains each field and the placeholders in `args`, `env` and `files`.
 */
export const AgentEntry = Type.Object(
  {
    id: Type.String(id),
    name: Type.Optional(Type.String({ minLength: 1 })),
    /** Name of the program on PATH, or its absolute path. */
    command: Type.String({ minLength: 1 }),
    /** The npm package that contains the program. */
    package: Type.Optional(Type.String({ minLength: 1 })),
    /** Glob of the native program in the installed packages, for agents whose program on PATH is only a launcher. */
    native: Type.Optional(Type.String({ minLength: 1 })),
    /** The oldest major version of Node.js that the agent runs on. */
    minNode: Type.Optional(Type.Integer({ minimum: 1 })),
    /** The command line that installs the agent. */
    install: Type.Optional(Type.String({ minLength: 1 })),
    /** Versions that were tested with a full session, newest first. */
    testedVersions: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
    /** Incremented with each change that may affect what the agent does. */
    revision: Type.Optional(Type.Integer({ minimum: 1 })),
    /** The provider of the agent's models. If there are several, each has values for additional placeholders. */
    provider: Type.Union([OneOf(modelProviders), ProviderValues]),
    stream: OneOf(streamFormats),
    args: Type.Optional(Args),
    env: Type.Optional(Env),
    /** Files in its home directory by path. */
    files: Type.Optional(Files),
    /** Additional files and folders of the machine that the agent can read. */
    mounts: Type.Optional(Type.Array(Type.String(absolutePath))),
    /** The agent's names for its tools, each with evald's name for the tool. */
    tools: Type.Optional(mapOf(OneOf(toolNames))),
    /** Pattern of the line that the agent writes at the end of the output of a command. Its group is the exit code. */
    exitCode: Type.Optional(Type.String({ minLength: 1 })),
    /** Pattern of the result of a failed call. Only needed if the agent's output doesn't mark failed calls otherwise. */
    failure: Type.Optional(Type.String({ minLength: 1 })),
    /** The file in the workspace from which it reads instructions. */
    contextFile: Type.Optional(Type.String(relativePath)),
    /** The directory in the workspace from which it reads skills. */
    skillsFolder: Type.Optional(Type.String(relativePath)),
    mcp: Type.Optional(Nullable(Mcp)),
    /** Memory that a typical session needs, in MiB. */
    memoryMb: Type.Optional(Type.Integer({ minimum: 64, maximum: 65_536 })),
    /** Size of the agent's own instructions and tools in the first request to a model, in tokens. */
    firstRequestTokens: Type.Optional(Type.Integer({ minimum: 0 })),
    /** Hosts of the agent's vendor that the agent needs. Requests to them aren't part of the session. */
    hosts: Type.Optional(Type.Array(Type.String(hostName))),
    /** Hosts of the agent's vendor that the agent doesn't need. Requests to them are refused, and aren't part of the session. */
    blockedHosts: Type.Optional(Type.Array(Type.String(hostName))),
    options: Type.Optional(Options),
    login: Type.Optional(Login),
    /** Only for the Agent Client Protocol: whether the agent may use evald's files and terminals instead of its own. Default: true. */
    clientMethods: Type.Optional(Type.Boolean()),
    /** How to start the agent with the Agent Client Protocol, as the agent `ID-acp`: its arguments, and additions to `env` and `files`. */
    acp: Type.Optional(
      Type.Object(
        {
          args: Args,
          env: Type.Optional(Env),
          files: Type.Optional(Files),
          clientMethods: Type.Optional(Type.Boolean()),
        },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
);
export type AgentEntry = Static<typeof AgentEntry>;
