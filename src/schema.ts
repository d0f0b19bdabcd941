import { type TSchema, Type } from "@sinclair/typebox";

export const Id = Type.String({ format: "uuid" });
export const Time = Type.String({ format: "date-time" });
export const Url = Type.String({ format: "uri" });

/** A value or null; the key is always there. */
export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** One of a closed list of words. */
export const OneOf = <const T extends string>(values: readonly T[], description?: string) =>
  Type.Unsafe<T>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      description === undefined ? {} : { description },
    ),
  );
