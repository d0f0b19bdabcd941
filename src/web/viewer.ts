import type { OrgId } from "../context.ts";
import { type Role, roles } from "../db/tables/people.ts";
import type { Site } from "./site.ts";
import type { Toast } from "./toasts.ts";

export type { Role };

/** Who views a page: the current organization, the role and the person. */
export type Viewer = {
  org: OrgId;
  orgName: string;
  timeZone: string;
  role: Role;
  /** null: the request used an API key. */
  person: { id: string; name: string; email: string } | null;
  /** The message of the last form. */
  toast?: Toast;
  /** All organizations of the person, for the switcher. */
  orgs: { id: OrgId; name: string }[];
  /** Whether agents run on workers that the organization can see. */
  hasWorkers: boolean;
};

/** What every page of an organization is rendered from. */
export type PageProps = { site: Site; viewer: Viewer };

/** Minimum role for each action, as documented in `/docs/people`. Every role may read; a viewer may do nothing else. */
const minimumRoles = {
  write: "member",
  run: "member",
  publish: "admin",
  archive: "admin",
  providers: "admin",
  keys: "admin",
  models: "admin",
  notifications: "admin",
  members: "owner",
  organization: "owner",
  share: "owner",
} as const satisfies Record<string, Role>;

export type Action = keyof typeof minimumRoles;

export const minimumRoleFor = (action: Action): Role => minimumRoles[action];

/** Whether a viewer may perform an action. API keys may only read. Pages show forms only to viewers who may submit them. */
export const may = (viewer: Viewer | undefined, action: Action): boolean =>
  viewer?.person != null && roles.indexOf(viewer.role) <= roles.indexOf(minimumRoles[action]);
