import type { ApiKey, Creator } from "./key-schema.ts";

/** `Olga`, `Olga (left)`, or `Former member`. */
export const creatorLabel = ({ name, isMember }: Creator): string =>
  name === null ? "Former member" : `${name}${isMember ? "" : " (left)"}`;

/** Who created a key. */
export const keyCreatorLabel = ({ createdBy, trustId }: ApiKey): string =>
  createdBy !== null ? creatorLabel(createdBy) : trustId === null ? "Operator" : "CI job";
