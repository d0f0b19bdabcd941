import type { Trigger } from "../db/tables/runs.ts";

/** Who made a REST request: the command line names itself as its user agent. */
export const triggerOf = ({ headers }: Request): Extract<Trigger, "api" | "cli"> =>
  headers.get("user-agent")?.startsWith("evald-cli/") ? "cli" : "api";
