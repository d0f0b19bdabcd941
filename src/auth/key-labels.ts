import type { ApiKey, Creator } from "./key-schema.ts";

/** `Olga`, `Olga (left)`, or `Deleted account`. */
export const creatorLabel = ({ name, isMember }: Creator): string =>
  name === null ? "Deleted account" : `${name}${isMember ? "" : " (left)"}`;

/** Who created a key. */
export const keyCreatorLabel = ({ createdBy, trustId }: Pick<ApiKey, "createdBy" | "trustId">): string =>
  createdBy !== null ? creatorLabel(createdBy) : trustId === null ? "Operator" : "CI job";
