import type { OrgId } from "../context.ts";
import type { createOrgs } from "./orgs.ts";
import type { createPeople } from "./people.ts";

const maxTitle = 80;

type Parts = {
  orgs: Pick<ReturnType<typeof createOrgs>, "getOrg">;
  people: Pick<ReturnType<typeof createPeople>, "listMembers" | "mailPause">;
  prompts: { getPrompt(org: OrgId, id: string): { title: string | null; text: string } };
};

/** Emails the owners of an organization that a prompt was paused, because its scheduled evaluations failed. */
export const createPauseNotice =
  ({ orgs, people, prompts }: Parts) =>
  (org: OrgId, promptId: string): void => {
    const { title, text } = prompts.getPrompt(org, promptId);
    const named = (title ?? text).replace(/\s+/g, " ").slice(0, maxTitle);
    const owners = people.listMembers(org).filter(({ role }) => role === "owner");
    const { name } = orgs.getOrg(org);
    for (const { email } of owners) void people.mailPause(email, name, named, `/prompts/${promptId}`);
  };
