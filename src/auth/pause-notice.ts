import type { Context, OrgId } from "../context.ts";
import { mailPause } from "./mail.ts";
import { listMembers } from "./members.ts";
import { getOrg } from "./orgs.ts";

const maxTitle = 80;

/** Emails the owners of an organization that a prompt was paused, because its scheduled evaluations failed. */
export function announcePause(
  ctx: Context,
  org: OrgId,
  prompt: { id: string; title: string | null; text: string },
): void {
  const title = (prompt.title ?? prompt.text).replace(/\s+/g, " ").slice(0, maxTitle);
  const owners = listMembers(ctx, org).filter(({ role }) => role === "owner");
  const { name } = getOrg(ctx, org);
  for (const { email } of owners) void mailPause(ctx, email, name, title, `/prompts/${prompt.id}`);
}
