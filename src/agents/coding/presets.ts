import { type Preset, toPresets } from "./preset.ts";
import claude from "./presets/claude.jsonc";
import cline from "./presets/cline.jsonc";
import codex from "./presets/codex.jsonc";
import continueCli from "./presets/continue.jsonc";
import copilot from "./presets/copilot.jsonc";
import gemini from "./presets/gemini.jsonc";
import grok from "./presets/grok.jsonc";
import grokBuild from "./presets/grok-build.jsonc";
import kimi from "./presets/kimi.jsonc";
import opencode from "./presets/opencode.jsonc";
import pi from "./presets/pi.jsonc";
import qwen from "./presets/qwen.jsonc";

/** The entries of the supported coding agents, in list order. An operator's entries have the same fields. */
export const presetEntries = [
  ...[claude, codex, gemini, opencode, qwen, copilot, pi],
  ...[cline, continueCli, grok, grokBuild, kimi],
];

/** The supported coding agents, in list order. */
export const presets: readonly Preset[] = presetEntries.flatMap((entry) => toPresets(entry, "preset"));
