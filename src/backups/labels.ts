import { count, list } from "../grading/text.ts";
import type { Backup } from "./schema.ts";

/** The status of a backup. */
export function backupStatusLabel({ status, removedAt }: Backup): string {
  if (removedAt !== null) return "Deleted";
  return { queued: "Waiting", running: "Running", completed: "Checked", failed: "Failed" }[status];
}

/** `2 organizations and 14 runs`: what was deleted after a backup that still has it; empty if nothing was. */
export function deletedSinceText({ deletedSince }: Backup): string {
  if (deletedSince === null) return "";
  const { organizations, prompts, runs } = deletedSince;
  const parts: string[] = [];
  if (organizations > 0) parts.push(count(organizations, "organization"));
  if (prompts > 0) parts.push(count(prompts, "prompt"));
  if (runs > 0) parts.push(count(runs, "run"));
  return parts.length === 0 ? "" : list(parts);
}
