import { provenances } from "../agent.ts";
import type { Source } from "../reader.ts";

/**
 * Set by the browser for a request that was https. The proxy can only see an https URL through a tunnel, so the browser
 * sends it as http.
 */
export const schemeHeader = "evald-scheme";

/** Set for the record of a request by the relay in front of a sandbox (agents/relay): how the agent found its URL, and on which page. */
export const sourceHeader = "evald-source";

export const toSourceHeader = ({ provenance, foundOn }: Source): string =>
  foundOn === null ? provenance : `${provenance} ${foundOn}`;

/** The source of a request by its header. Without one, the agent was given the URL. */
export function toSource(header: string | string[] | undefined): Source {
  const [name, foundOn = null] = String(header ?? "").split(" ");
  const provenance = provenances.find((each) => each === name);
  return provenance ? { provenance, foundOn } : { provenance: "given", foundOn: null };
}
