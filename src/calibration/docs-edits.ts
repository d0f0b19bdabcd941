import { and, desc, eq } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { PlantedDefect } from "../db/tables/calibrations.ts";
import { isLiveRun, runs } from "../db/tables/runs.ts";
import { badRequest } from "../errors.ts";
import { toReplacements } from "../experiments/page-edit.ts";
import { type Edits, listFetchedUrls } from "../net/edits.ts";
import { createGuard, GuardError } from "../net/guarded.ts";
import { pageKey } from "../net/page-key.ts";
import { readerAccept } from "../net/user-agent.ts";
import { readSession } from "../reports/session-events.ts";
import type { CalibrationRow } from "./figures.ts";

type Replacement = Edits["replacements"][number];
/** A page as its site sends it to agents. */
type Source = { url: string; text: string; isHtml: boolean };
/** A defect that can be planted into a page. */
type Candidate = Omit<PlantedDefect, "edits"> & { replacements: Replacement[] };

/** How many pages are searched for places. */
const maxPages = 12;

/**
 * Plants up to four defects of different kinds into the docs of a prompt. They are edits of pages that its newest run read, made on the way to the
 * agent. `number`: the number of the site. Other numbers use other places. Throws bad_request if there is no place.
 */
export async function plantInDocs(
  ctx: Context,
  row: CalibrationRow,
  number: number,
): Promise<{ edits: Edits; planted: PlantedDefect[] }> {
  const urls = listReadPages(ctx, row);
  if (urls.length === 0)
    throw badRequest("No run of the prompt on its live docs has read a page yet. Run it first, then calibrate.");
  const sources = await readSources(ctx, urls.slice(0, maxPages));
  const planted: PlantedDefect[] = [];
  const replacements: Replacement[] = [];
  for (const placesOf of [placesOfLinks, placesOfSamples, placesOfFences, placesOfPackages]) {
    const candidates = sources.flatMap((source) => placesOf(source, number));
    const candidate = candidates[number % Math.max(1, candidates.length)];
    if (!candidate) continue;
    const { replacements: ownReplacements, ...defect } = candidate;
    planted.push({ ...defect, edits: ownReplacements.map((_, i) => replacements.length + i) });
    replacements.push(...ownReplacements);
  }
  if (planted.length === 0)
    throw badRequest(
      `None of the ${urls.length} pages that the newest run read has a link, a code sample or an install command that can be broken.`,
    );
  return { edits: { hidden: [], replacements }, planted };
}

/** The pages that the newest completed run of the prompt on its live docs read. */
function listReadPages(ctx: Context, { orgId, promptId }: CalibrationRow): string[] {
  const run = ctx.db
    .select({ runId: runs.id, attempt: runs.attempt })
    .from(runs)
    .where(and(eq(runs.orgId, orgId), eq(runs.promptId, promptId), eq(runs.status, "completed"), isLiveRun))
    .orderBy(desc(runs.id))
    .limit(1)
    .get();
  if (!run) return [];
  const fetched = listFetchedUrls(readSession(ctx.db, { orgId, ...run })).filter(({ status }) => status === 200);
  const pages = new Map(fetched.map(({ url }) => [pageKey(url), url]));
  return [...pages.values()].filter(
    (url) => !/\/(robots\.txt|llms[\w-]*\.txt|sitemap[^/]*)$|\.(json|ya?ml|xml)$/.test(url),
  );
}

/** The pages that respond with text. */
async function readSources({ allow, now }: Context, urls: string[]): Promise<Source[]> {
  const guard = createGuard({ allow: allow(), now, keepsAlive: false });
  const sources = await Promise.all(
    urls.map(async (url): Promise<Source[]> => {
      try {
        const response = await guard.request(url, { headers: { accept: readerAccept } });
        const type = response.headers.get("content-type") ?? "";
        if (response.status !== 200 || !/^text\//.test(type)) return [];
        return [{ url, text: guard.text(response), isHtml: type.startsWith("text/html") }];
      } catch (error) {
        if (error instanceof GuardError) return [];
        throw error;
      }
    }),
  );
  return sources.flat();
}

const occursOnce = (text: string, part: string): boolean =>
  text.includes(part) && text.indexOf(part) === text.lastIndexOf(part);

/** Links to other pages of the docs. The target of each occurs only once on the page, because links in menus repeat. */
function placesOfLinks({ url, text, isHtml }: Source, number: number): Candidate[] {
  const pattern = isHtml ? /<a\s[^>]*?href=(["'])(?<target>[^"'#?]+)\1/g : /\]\((?<target>[^)\s#?]+)\)/g;
  const targets = [...text.matchAll(pattern)].map(({ groups }) => groups?.target ?? "");
  return targets
    .filter((target) => occursOnce(targets.join("\n"), target) && URL.parse(target, url)?.host === new URL(url).host)
    .map((target) => {
      const suffix = `gone-${number}`;
      const deadTarget = `${target.replace(/\/$/, "")}-${suffix}`;
      const replacements = toReplacements(url, target, deadTarget);
      return { kind: "dead_link", categories: ["dead_link"], url, named: suffix, replacements };
    });
}

const codePattern = /<pre\b[\s\S]*?<\/pre>|^```[\s\S]*?^```/gim;
const labelStart = /(?:language-|lang-|highlight-|"|```)/.source;
const bracketLanguages = /(?:json|js|javascript|ts|typescript|python|py|go|java)/.source;
/** The start of a sample whose label names a language in which a parser notices a missing bracket. */
const bracketSample = new RegExp(`^[\\s\\S]{0,200}?${labelStart}${bracketLanguages}\\b`);

/** Code samples that lose their last bracket. */
function placesOfSamples({ url, text }: Source): Candidate[] {
  return [...text.matchAll(codePattern)].flatMap(([block]) => {
    const at = Math.max(block.lastIndexOf("}"), block.lastIndexOf(")"));
    if (at < 0 || !bracketSample.test(block)) return [];
    // The end of the block, with enough text before it that it occurs only once on the page.
    for (let length = 40; length <= 400; length *= 2) {
      const from = Math.max(0, at - length);
      const find = block.slice(from);
      if (!occursOnce(text, find)) continue;
      const replacement = block.slice(from, at) + block.slice(at + 1);
      const defect = { kind: "broken_sample", categories: ["broken_sample"], url, named: new URL(url).pathname };
      return [{ ...defect, replacements: [{ url, find, replacement }] }];
    }
    return [];
  });
}

/** Code fences in Markdown that lose their end. */
function placesOfFences({ url, text, isHtml }: Source): Candidate[] {
  if (isHtml) return [];
  const last = [...text.matchAll(/^.+\n```\n/gm)].map(([end]) => end).findLast((end) => occursOnce(text, end));
  if (last === undefined) return [];
  const replacements = [{ url, find: last, replacement: last.replace(/```\n$/, "") }];
  const categories = ["broken_sample", "unreadable_page"];
  return [{ kind: "open_fence", categories, url, named: new URL(url).pathname, replacements }];
}

/** A command that installs a package. The group is the name of the package. */
const installCommand =
  /\b(?:npm install|npm i|pnpm add|yarn add|pip install|cargo add|gem install) ([@\w][\w@/.-]*\w)/g;

/** Commands that install another package than the samples import. */
function placesOfPackages({ url, text }: Source): Candidate[] {
  return [...text.matchAll(installCommand)]
    .filter(([command]) => occursOnce(text, command))
    .map(([command, name = ""]) => ({
      kind: "wrong_package",
      categories: ["missing_docs", "broken_sample", "wrong_contract"],
      url,
      named: name,
      replacements: [{ url, find: command, replacement: `${command}-v0` }],
    }));
}
