import { type Role, roles } from "../db/tables.ts";
import type { OrgId } from "../deps.ts";

export type { Role };

/** Who looks at a page: the organisation that is shown, and as whom. */
export type Viewer = {
  org: OrgId;
  orgName: string;
  role: Role;
  /** null: an API key opened the page. */
  person: { id: string; name: string; email: string } | null;
  /** Every organisation of the person, for the switcher. */
  orgs: { id: OrgId; name: string }[];
};

/** Whether a viewer has a role, or one above it. */
export const mayActAs = (viewer: Viewer, role: Role): boolean => roles.indexOf(viewer.role) <= roles.indexOf(role);
