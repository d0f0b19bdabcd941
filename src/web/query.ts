import { type TProperties, Type } from "@sinclair/typebox";
import type { Context } from "../context.ts";
import { listAgents } from "../prompts/prompts.ts";
import { toIso } from "../schema.ts";

/** A UUID of version 7: its third part begins with the version. */
const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The id that a form reserves for the row it creates, so that submitting it twice creates one row. */
export function idIn(form: URLSearchParams): string | undefined {
  const id = form.get("id") ?? "";
  return uuid7.test(id) ? id : undefined;
}

/** Removes blank fields from a query in place, because browsers send empty fields too. */
function removeBlanks({ query }: { query: Record<string, unknown> }): void {
  for (const [name, value] of Object.entries(query))
    if (typeof value === "string" && value.trim() === "") delete query[name];
}

/** Options of the route of a page with a filter form: its query, of which blank fields are ignored. */
export const queryOptions = <T extends TProperties>(properties: T) => ({
  transform: removeBlanks,
  query: Type.Object(properties),
});

const dayMs = 86_400_000;
const dayLength = "2026-11-21".length;

/** The end of the last day to show: people expect it to be included. Any other time, valid or not, as it is. */
export function dayAfter(until: string | undefined): string | undefined {
  if (until?.length !== dayLength || Number.isNaN(Date.parse(until))) return until;
  return toIso(Date.parse(until) + dayMs).slice(0, dayLength);
}

/** The IDs of the agents that can be used. */
export const availableAgents = (ctx: Context): string[] =>
  listAgents(ctx).flatMap(({ id, objection }) => (objection === null ? [id] : []));

/** The IDs of agents to filter by. `selected`: one that may no longer exist. */
export const agentChoices = (ctx: Context, selected: string | undefined): string[] => [
  ...new Set([...listAgents(ctx).map(({ id }) => id), ...(selected ? [selected] : [])]),
];
