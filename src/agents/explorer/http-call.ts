import { type Literal, markUnknownParts, unknownPart } from "./literals.ts";

/**
 * The HTTP request that a sample sends, as far as the sample shows it. `headers` and `query`: the names of headers (in lower case) and query
 * parameters; null if unknown. `body`: undefined if there is none. `line`: 0-based in the sample.
 */
export type HttpCall = {
  method: string;
  url: URL;
  query: Set<string> | null;
  headers: Set<string> | null;
  /** Whether the client adds credentials of its own. */
  hasCredentials: boolean;
  body: Literal | undefined;
  /** Whether the body is certainly a form. */
  isForm?: true;
  line: number;
};

/** The URL of a call, with unknown parts; null if its host isn't known. */
export function toUrl(address: string): URL | null {
  const url = URL.parse(markUnknownParts(address).replace(/(?<=\/):\w+(?=\/|\?|$)/g, unknownPart));
  return url !== null && /^https?:$/.test(url.protocol) ? url : null;
}

/** The host of a call if only the reader knows the real one. */
export const unknownHost = "host.unknown";

/** A host that consists of a placeholder, such as `$HOST:8080`, `{{base_url}}` or `SERVER_URL`. */
const placeholderHost = new RegExp(`^(?:https?://)?(?:${unknownPart}|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)(?::\\d+)?(?=/)`);

/** The URL of a call. A host that the reader fills in becomes `unknownHost`. */
export const toUrlOfAnyHost = (address: string): URL | null =>
  toUrl(markUnknownParts(address).replace(placeholderHost, `http://${unknownHost}`));

/** The names of the query parameters of a URL; null if an unknown part may hold others. */
export function queryOf(url: URL): Set<string> | null {
  const names = [...url.searchParams.keys()];
  return names.some((name) => name.includes(unknownPart)) ? null : new Set(names);
}
