import { Type } from "@sinclair/typebox";
import { OneOf } from "../schema.ts";

/** A column to sort a list by: `score` ascending, `-score` descending. */
export type Sort<C extends string> = C | `-${C}`;

/** The parameter `sort` of a list with these columns. */
export const sortBy = <const C extends string>(columns: readonly C[]) =>
  Type.Optional(
    OneOf(
      columns.flatMap((each): Sort<C>[] => [each, `-${each}`]),
      "Column to sort by. Add a leading minus for descending order",
    ),
  );

/** Whether a sort such as `-created` is descending. */
export const isDescending = (sort: string): boolean => sort.startsWith("-");

/** The column of a sort. */
export const columnOf = <C extends string>(sort: Sort<C>): C => (isDescending(sort) ? sort.slice(1) : sort) as C;

/** Sorts rows by one of their values. Rows without the value are last. */
export function sorted<T>(rows: T[], toValue: (row: T) => string | number | null, descending: boolean): T[] {
  const sign = descending ? -1 : 1;
  const compare = (a: string | number, b: string | number) =>
    typeof a === "string" && typeof b === "string" ? a.localeCompare(b, "en") : Number(a) - Number(b);
  return rows
    .map((row) => ({ row, value: toValue(row) }))
    .sort((a, b) => {
      if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null);
      return sign * compare(a.value, b.value);
    })
    .map(({ row }) => row);
}
