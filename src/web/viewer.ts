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

/** The least role that each thing takes, by what is done; `/docs/people` says the same to people. Reading takes any. */
const takes = {
  write: "member",
  run: "member",
  publish: "admin",
  archive: "admin",
  providers: "admin",
  keys: "admin",
  models: "admin",
  members: "owner",
  organisation: "owner",
  share: "owner",
} as const satisfies Record<string, Role>;

export type Act = keyof typeof takes;

export const roleFor = (act: Act): Role => takes[act];

/** Whether a viewer may do something; an API key only reads. Forms stand on pages for nobody else. */
export const may = (viewer: Viewer | undefined, act: Act): boolean =>
  viewer?.person != null && roles.indexOf(viewer.role) <= roles.indexOf(takes[act]);
