import type { ApiKey, Creator } from "./key-schema.ts";

/** `Olga`, `Olga (left)`, or `Former member`. */
export const creatorLabel = ({ name, isMember }: Creator): string =>
  name === null ? "Former member" : `${name}${isMember ? "" : " (left)"}`;

/** Who created a key. */
export function keyCreatorLabel({ createdBy, trustId }: ApiKey): string {
  if (createdBy !== null) return creatorLabel(createdBy);
  return trustId === null ? "Operator" : "CI job";
}
