import { type TProperties, Type } from "@sinclair/typebox";
import type { Context } from "../context.ts";
import { listAgents } from "../prompts/prompts.ts";
import { toIso } from "../schema.ts";

/** A UUID of version 7. The first digit of its third group is the version. */
const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The ID that a form reserves for the row that it creates. So a form that is submitted twice creates only one row. */
export function idIn(form: URLSearchParams): string | undefined {
  const id = form.get("id") ?? "";
  return uuid7.test(id) ? id : undefined;
}

/** Removes blank fields from a query in place, because browsers send empty fields too. */
function removeBlanks({ query }: { query: Record<string, unknown> }): void {
  for (const [name, value] of Object.entries(query))
    if (typeof value === "string" && value.trim() === "") delete query[name];
}

/** Options for the route of a page with a filter form. Blank fields of its query are ignored. */
export const queryOptions = <T extends TProperties>(properties: T) => ({
  transform: removeBlanks,
  query: Type.Object(properties),
});

const dayMs = 86_400_000;
const dayLength = "2026-11-21".length;

/**
 * The end of the last day to show, because people expect that day to be included. Other texts are returned unchanged, even if they aren't valid
 * times.
 */
export function dayAfter(until: string | undefined): string | undefined {
  if (until?.length !== dayLength || Number.isNaN(Date.parse(until))) return until;
  return toIso(Date.parse(until) + dayMs).slice(0, dayLength);
}

/** The IDs of the agents that can be used. */
export const availableAgents = (ctx: Context): string[] =>
  listAgents(ctx).flatMap(({ id, objection }) => (objection === null ? [id] : []));

/** The IDs of the agents to filter by. `selected`: the selected agent, which may no longer exist. */
export const agentChoices = (ctx: Context, selected: string | undefined): string[] => [
  ...new Set([...listAgents(ctx).map(({ id }) => id), ...(selected ? [selected] : [])]),
];
