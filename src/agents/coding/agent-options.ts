import { AgentFailure, type SupportedOptions } from "../agent.ts";
import type { AgentOptions } from "../task.ts";
import { addTo, type Preset } from "./preset.ts";

const onOrOff = (isOn: boolean | undefined): "on" | "off" => (isOn ? "on" : "off");

/** The options that an agent has, each with its values; null: any value. */
export function supportedOptions({ options, stream, login }: Preset): SupportedOptions {
  const { effort, permissions, systemPrompt, webSearch } = options;
  return {
    args: null,
    env: null,
    ...(effort && { effort: Object.keys(effort) }),
    // Over ACP, every agent asks.
    ...((permissions || stream === "acp") && { permissions: Object.keys(permissions ?? { allow: {}, ask: {} }) }),
    ...(systemPrompt && { systemPrompt: null }),
    ...(webSearch && { webSearch: Object.keys(webSearch) }),
    ...(login && { login: ["off", "on"] }),
  };
}

/** The first option that an agent doesn't have, with the values that it has; null: it has all of them. */
export function findUnsupportedOption(
  supported: SupportedOptions,
  { webSearch, login, ...options }: AgentOptions,
): { name: string; values: readonly string[] } | null {
  const requestedOptions = {
    ...options,
    ...(webSearch !== undefined && { webSearch: onOrOff(webSearch) }),
    ...(login !== undefined && { login: onOrOff(login) }),
  };
  for (const [name, value] of Object.entries(requestedOptions)) {
    if (value === undefined) continue;
    const values = supported[name as keyof AgentOptions];
    if (values === undefined) return { name, values: [] };
    if (values !== null && !values.includes(String(value))) return { name, values };
  }
  return null;
}

/**
 * A preset with the options of a task. Throws an AgentFailure if its agent lacks an option, because the agent may have changed since the prompt was
 * saved.
 */
export function applyOptions(preset: Preset, options: AgentOptions = {}): Preset {
  const unsupported = findUnsupportedOption(supportedOptions(preset), options);
  if (unsupported)
    throw new AgentFailure(
      "agent_unsuitable",
      `${preset.name} does not support the option ${unsupported.name} as it is set`,
    );
  const { args, env, effort, permissions = "allow", systemPrompt, webSearch } = options;
  const entry = preset.options;
  const login = options.login ? preset.login : null;
  const additions = [
    login,
    entry.permissions?.[permissions],
    entry.webSearch?.[onOrOff(webSearch)],
    effort && entry.effort?.[effort],
    systemPrompt === undefined ? undefined : entry.systemPrompt,
    { ...(args && { args }), ...(env && { env }) },
  ];
  return additions.reduce<Preset>((sum, addition) => (addition ? addTo(sum, addition) : sum), { ...preset, login });
}
