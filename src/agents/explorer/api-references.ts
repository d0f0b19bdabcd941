import { decodePercent } from "../../net/percent.ts";
import { object } from "../fields.ts";

/** An object of JSON. */
export type JsonObject = Record<string, unknown>;

/** A part of a description with its reference within the document resolved; null if it can't be. */
export function resolveRef(document: JsonObject, part: unknown, depth = 0): JsonObject | null {
  if (typeof part !== "object" || part === null || depth > 10) return null;
  const { $ref } = part as { $ref?: unknown };
  if (typeof $ref !== "string") return part as JsonObject;
  if (!$ref.startsWith("#/")) return null;
  const target = $ref
    .slice(2)
    .split("/")
    .reduce<unknown>(
      (at, key) => object(at)[(decodePercent(key) ?? key).replaceAll("~1", "/").replaceAll("~0", "~")],
      document,
    );
  return resolveRef(document, target, depth + 1);
}
