import type { AppError } from "../errors.ts";

/** Which field of a form an error belongs to, and what to show there. `field` empty: the whole form. */
export function toFault(error: AppError, fields: readonly string[]): { field: string; message: string } {
  const [field = "", ...place] = error.field?.split(".") ?? [];
  if (!fields.includes(field) || error.problem === undefined) return { field: "", message: capital(error.detail) };
  const row = /^\d+$/.test(place[0] ?? "") ? `Row ${Number(place[0]) + 1}` : place.join(".");
  return { field, message: `${row && `${row}: `}${capital(error.problem)}.` };
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
