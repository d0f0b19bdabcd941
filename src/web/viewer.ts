import { type Role, roles } from "../db/tables.ts";
import type { OrgId } from "../deps.ts";

export type { Role };

/** Who views a page: the current organization, the role and the person. */
export type Viewer = {
  org: OrgId;
  orgName: string;
  role: Role;
  /** null: the request used an API key. */
  person: { id: string; name: string; email: string } | null;
  /** All organizations of the person, for the switcher. */
  orgs: { id: OrgId; name: string }[];
};

/** Minimum role for each action, as documented in `/docs/people`. Any role may read. */
const takes = {
  write: "member",
  run: "member",
  publish: "admin",
  archive: "admin",
  providers: "admin",
  keys: "admin",
  models: "admin",
  members: "owner",
  organization: "owner",
  share: "owner",
} as const satisfies Record<string, Role>;

export type Act = keyof typeof takes;

export const roleFor = (act: Act): Role => takes[act];

/** Whether a viewer may perform an action. API keys may only read. Pages show forms only to viewers who may submit them. */
export const may = (viewer: Viewer | undefined, act: Act): boolean =>
  viewer?.person != null && roles.indexOf(viewer.role) <= roles.indexOf(takes[act]);
