import { ConfigError } from "../errors.ts";

const syntax = "a comma-separated list of http or https origins, such as https://app.acme.example";

function toOrigin(value: string): string {
  const origin = URL.parse(value)?.origin;
  if (!/^https?:/.test(origin ?? "") || (value !== origin && value !== `${origin}/`)) throw new ConfigError(syntax);
  // It would be an origin that no page has.
  if (origin?.includes("*")) throw new ConfigError(`${syntax}; a * matches nothing, so list each origin`);
  return origin as string;
}

/** Default, description and parser of the origins whose pages may use the API. */
export const corsSetting = [
  "",
  "Comma-separated list of origins whose pages may use the API with an API key, such as https://app.acme.example; default: none",
  (value: string): string[] => value.split(",").flatMap((item) => (item.trim() ? [toOrigin(item.trim())] : [])),
] as const;
