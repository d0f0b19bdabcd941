import { provenances } from "../agent.ts";
import type { Source } from "../reader.ts";

/**
 * Set by the browser for a request that was https. The proxy can only see an https URL through a tunnel, so the browser
 * sends it as http.
 */
export const schemeHeader = "evald-scheme";

/** Set by a relay for the record of a request: how the agent found its URL, and the page that it was found on. */
export const sourceHeader = "evald-source";

export const toSourceHeader = ({ provenance, foundOn }: Source): string =>
  foundOn === null ? provenance : `${provenance} ${foundOn}`;

/** The source of a request; URLs of requests without one were given. */
export function toSource(header: string | string[] | undefined): Source {
  const [name, foundOn = null] = String(header ?? "").split(" ");
  const provenance = provenances.find((each) => each === name);
  return provenance ? { provenance, foundOn } : { provenance: "given", foundOn: null };
}
