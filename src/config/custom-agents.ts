import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { ConfigError } from "../errors.ts";
import { invalidInput, shape } from "../schema.ts";
import { modelProviders } from "./model-settings.ts";
import { readJsonSetting } from "./setting.ts";

/** Output formats of coding agents. `acp`: the Agent Client Protocol over stdio. `none`: plain text, whose end is the answer. */
const streamFormats = ["claude", "codex", "gemini", "opencode", "copilot", "pi", "acp", "none"] as const;
export type StreamFormat = (typeof streamFormats)[number];

const variable = shape("^[A-Za-z_][A-Za-z0-9_]*$", "letters, digits and _, starting with a letter or _");

/** A coding agent that the operator adds. `{gateway}`, `{token}`, `{model}`, `{provider}` and `{home}` in args and env are replaced for each run. */
const CustomAgent = Type.Object(
  {
    id: Type.String(
      shape("^[a-z0-9][a-z0-9-]{0,62}$", "1 to 63 lowercase letters, digits and -, starting with a letter or digit"),
    ),
    command: Type.String({ minLength: 1 }),
    args: Type.Optional(Type.Array(Type.String())),
    env: Type.Optional(Type.Record(Type.String(variable), Type.String(), { additionalProperties: false })),
    stream: Type.Union(streamFormats.map((format) => Type.Literal(format))),
    provider: Type.Union(modelProviders.map((provider) => Type.Literal(provider))),
  },
  { additionalProperties: false },
);
export type CustomAgent = Static<typeof CustomAgent>;

const syntax =
  'a JSON list of agents, or the path of a file with one, such as [{"id": "aider", "command": "aider", "args": ["--model", "{model}"], "env": {"OPENAI_API_BASE": "{gateway}/openai/v1", "OPENAI_API_KEY": "{token}"}, "stream": "none", "provider": "openai"}]';

/** Parses EVALD_AGENTS; empty: none. Throws ConfigError. */
export function parseCustomAgents(value: string): CustomAgent[] {
  if (value === "") return [];
  const agents = readJsonSetting(value, "[", syntax);
  const list = Type.Array(CustomAgent);
  if (Value.Check(list, agents)) {
    const ids = agents.map(({ id }) => id);
    const duplicate = ids.find((id, i) => ids.indexOf(id) !== i);
    if (duplicate !== undefined) throw new ConfigError(`${syntax}: the id ${duplicate} is used twice`);
    return agents;
  }
  const error = Value.Errors(list, agents).First();
  const { field, problem } = error ? invalidInput(error, "list") : {};
  throw new ConfigError(`${syntax}: ${field} ${problem}`);
}
