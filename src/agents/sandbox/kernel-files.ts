import { readdirSync, readFileSync } from "node:fs";

/** The text of a file, as in /proc and /sys; empty if it can't be read. */
export function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** The names in a folder; none if it can't be read. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
