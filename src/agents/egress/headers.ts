import { provenances } from "../agent.ts";
import type { Source } from "../reader.ts";

/** The browser sets it for a request that was https. The proxy sees only a tunnel of an https request, so the browser sends it as http. */
export const schemeHeader = "evald-scheme";

/** How the agent found the URL of a request, and on which page. The relay in front of a sandbox (agents/relay) sets it. The proxy records it. */
export const sourceHeader = "evald-source";

/** The value of `sourceHeader`: how the agent found the URL and, after a space, the page that it was on. */
export const toSourceHeader = ({ provenance, foundOn }: Source): string =>
  foundOn === null ? provenance : `${provenance} ${foundOn}`;

/** Parses the source of a request from its header. Without a header, the agent was given the URL. */
export function toSource(header: string | string[] | undefined): Source {
  const [name, foundOn = null] = String(header ?? "").split(" ");
  const provenance = provenances.find((each) => each === name);
  return provenance ? { provenance, foundOn } : { provenance: "given", foundOn: null };
}
