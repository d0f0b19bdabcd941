import type { OrgId } from "../context.ts";
import { type Role, roles } from "../db/tables/people.ts";
import { AppError } from "../errors.ts";
import { list } from "../grading/text.ts";
import type { EvalSource } from "../runs/requests.ts";
import type { Site } from "./site.ts";
import type { Toast } from "./toasts.ts";

export type { Role };

/** The viewer of a page: the current organization, the role and the person. */
export type Viewer = {
  org: OrgId;
  orgName: string;
  timeZone: string;
  role: Role;
  /** null: the request used an API key. */
  person: { id: string; name: string; email: string } | null;
  /** The message of the last submitted form. */
  toast?: Toast;
  /** All organizations of the person, for the switcher. */
  orgs: { id: OrgId; name: string }[];
  /** Whether the person operates the whole service. */
  isOperator: boolean;
  /** Whether agents run on workers that the organization can see. */
  hasWorkers: boolean;
};

/** The input of every page of an organization. */
export type PageProps = { site: Site; viewer: Viewer };

/**
 * The minimum role for each action, as documented in `/docs/people`, and what the action allows. Every role may read, and a viewer may do nothing
 * else.
 */
const actions = {
  write: ["member", "create and change prompts"],
  run: ["member", "start and cancel runs"],
  publish: ["admin", "publish and archive reports"],
  archive: ["admin", "archive prompts and reports"],
  delete: ["admin", "delete prompts, runs and reports"],
  providers: ["admin", "manage providers"],
  keys: ["admin", "manage API keys"],
  models: ["admin", "manage models"],
  secrets: ["admin", "manage secrets"],
  notifications: ["admin", "manage notifications"],
  audit: ["admin", "read the audit log"],
  members: ["owner", "manage members"],
  organization: ["owner", "change the organization"],
  share: ["owner", "share reports"],
  // Allowed in any role, because an operator of the service need not belong to the organization that they look at.
  operate: ["viewer", "operate the service"],
} as const satisfies Record<string, readonly [minimum: Role, allows: string]>;

export type Action = keyof typeof actions;

/** "an admin" */
export const withArticle = (role: Role): string => `${/^[aeiou]/.test(role) ? "an" : "a"} ${role}`;

/** Why a person may not perform an action. It names the roles that may, and the role of the viewer. */
export function refusalOf({ role }: Viewer, action: Action): string {
  const [minimum, allows] = actions[action];
  // Roles are ordered from the highest to the lowest.
  const allowedRoles = roles.slice(0, roles.indexOf(minimum) + 1).map((each) => `${each}s`);
  return `Only ${list(allowedRoles.reverse())} can ${allows}. You’re ${withArticle(role)}. Owners can change roles in Settings > Members.`;
}

/** Whether a viewer may perform an action. API keys may only read. Pages show a form only to viewers who may submit it. */
export const may = (viewer: Viewer | undefined, action: Action): boolean =>
  viewer?.person != null && roles.indexOf(viewer.role) <= roles.indexOf(actions[action][0]);

/** Throws forbidden unless the viewer operates the service. */
export function requireOperator({ isOperator }: Viewer): void {
  if (!isOperator)
    throw new AppError("forbidden", "Only operators of this server can see this. They are made with evald person set.");
}

/** The source of runs that a person requests on a page. */
export const webSourceOf = ({ person }: { person: { id: string } }): EvalSource => ({
  trigger: "web",
  requester: { personId: person.id },
});
