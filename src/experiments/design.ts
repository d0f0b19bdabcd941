import type { Arm, ArmChanges } from "../db/tables/experiments.ts";
import { shortUrl } from "../grading/text.ts";
import type { Edits } from "../net/edits.ts";
import { seeded, shuffled } from "../stats/random.ts";
import { toReplacements } from "./page-edit.ts";

/** A run to request: a prompt in an arm. */
export type Cell = { promptId: string; arm: string };

/**
 * The order of the runs of one repeat. The prompts' blocks are in random order, and so are the arms within each block, so that neither the time of
 * day nor a predecessor favors an arm. The same seed gives the same order.
 */
export function orderOfRepeat(promptIds: string[], arms: string[], seed: number, repeat: number): Cell[] {
  // An experiment has fewer than 1,000 repeats, so each seed and repeat has random numbers of its own.
  const random = seeded(seed * 1_000 + repeat);
  return shuffled(promptIds, random).flatMap((promptId) => shuffled(arms, random).map((arm) => ({ promptId, arm })));
}

/** The arms that compare the base with itself. */
export const equalArms: [Arm, Arm] = [{ name: "baseline" }, { name: "baseline again" }];

/** The position of the first arm that makes the same changes as an earlier arm; -1: there is none. */
export function findEqualArm(arms: readonly Arm[]): number {
  const contents = arms.map(({ name: _, ...changes }) => JSON.stringify(changes));
  return contents.findIndex((each, i) => contents.indexOf(each) !== i);
}

/** The input of presets. Each field adds arms. */
export type PresetInput = {
  /** The prompt's skills and MCP servers are left out of the base. */
  bare?: boolean;
  skills?: NonNullable<ArmChanges["workspace"]>["skills"];
  mcpUrl?: string;
  /** The URL of the docs, whose llms.txt is hidden. */
  withoutLlmsTxt?: string;
  /** URLs to hide, exact or with `*` at the end. */
  hidden?: string[];
  /** Texts of pages with their replacements, as a person sees them. */
  replacements?: Edits["replacements"];
  otherAgent?: string;
  otherModel?: string;
  competitorId?: string;
};

/** The arms that teams ask for by name; the base is first. */
export function presetArms(input: PresetInput): Arm[] {
  const { bare, skills, mcpUrl, withoutLlmsTxt, hidden, replacements, otherAgent, otherModel, competitorId } = input;
  const without: ArmChanges["without"] = bare || skills || mcpUrl ? ["skills", "mcpServers"] : undefined;
  const base: Arm = { name: "baseline", ...(without && { without }) };
  const mcpServers = mcpUrl === undefined ? undefined : { product: { url: mcpUrl } };
  const arms: (Arm | false | undefined)[] = [
    base,
    skills && { name: "+skill", without, workspace: { skills } },
    mcpServers && { name: "+MCP", without, workspace: { mcpServers } },
    skills && mcpServers && { name: "+both", without, workspace: { skills, mcpServers } },
    withoutLlmsTxt !== undefined && {
      ...base,
      name: "no llms.txt",
      edits: { hidden: llmsTxtUrls(withoutLlmsTxt), replacements: [] },
    },
    hidden && { ...base, name: "hidden", edits: { hidden, replacements: [] } },
    replacements && {
      ...base,
      name: "edited",
      edits: {
        hidden: [],
        replacements: replacements.flatMap(({ url, find, replacement }) => toReplacements(url, find, replacement)),
      },
    },
    otherAgent !== undefined && { ...base, name: otherAgent, agent: otherAgent },
    otherModel !== undefined && { ...base, name: otherModel, model: otherModel },
    competitorId !== undefined && { ...base, name: "competitor", providerId: competitorId },
  ];
  return arms.filter((arm) => arm !== false && arm !== undefined);
}

/**
 * Arms that each withhold one of the pages that runs of a prompt read most, with its Markdown version. They show which pages matter for success. The
 * pages where runs start are not withheld, because nothing works without them. `pages`: as in the docs map, most read first.
 */
export function withholdingArms(
  pages: readonly { url: string; found: Record<string, number> }[],
  max: number,
): [Arm, ...Arm[]] {
  const withheldPages = pages.filter(({ found }) => (found.given ?? 0) === 0).slice(0, max);
  const arms = withheldPages.map(({ url }) => ({
    name: `without ${shortUrl(url)}`.slice(0, 60),
    edits: { hidden: [url, `${url.replace(/(\/|\.html?)$/, "")}.md`], replacements: [] },
  }));
  return [{ name: "baseline" }, ...arms];
}

/** Where agents look for the llms.txt and llms-full.txt of docs: at the root and below the path of the docs. */
function llmsTxtUrls(docsUrl: string): string[] {
  const folders = [new URL("/", docsUrl).href, new URL("./", docsUrl).href];
  return [...new Set(folders)].flatMap((folder) => [`${folder}llms.txt`, `${folder}llms-full.txt`]);
}
