import { isTried, type Preset } from "./preset.ts";
import { findProgram } from "./program.ts";

/** A coding agent on this machine. `detail` says why it is missing, and how to install it. */
export type InstalledAgent = { id: string; name: string } & (
  | { isHere: true; version: string; path: string; isTried: boolean }
  | { isHere: false; detail: string }
);

export const lookUp = (preset: Preset, path: string): InstalledAgent => {
  const { id, name } = preset;
  const found = findProgram(preset, path);
  if ("missing" in found) return { id, name, isHere: false, detail: found.missing };
  const { version, path: at } = found;
  return { id, name, isHere: true, version, path: at, isTried: isTried(preset, version) };
};
