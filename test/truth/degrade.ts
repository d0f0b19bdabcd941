import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { milestonesOf } from "../../src/grading/events.ts";
import { type CorpusName, corpora, type Degrade, serveCorpus } from "./corpora.ts";
import { type Goal, pathIn, readGoals } from "./goals.ts";
import { type Explored, explore } from "./session.ts";

const samplesBroken = "samples broken";

/** The language of a sample without a label is unknown. Terminal sessions get their labels before any of them breaks. */
const labelSessions = (text: string, type: string) =>
  /html/.test(type)
    ? text.replace(/<pre>(?=(?:(?!<\/pre>)[\s\S])*^[ \t]*(?:<code>)?[ \t]*\$ \w)/gm, '<pre class="language-console">')
    : text;

/** Ways in which docs get worse. Each returns a changed page. */
const ways: Record<string, (text: string, type: string, path: string) => Response | string> = {
  [samplesBroken]: (text, type) =>
    /html/.test(type)
      ? text
          .replace(/(<pre[^>]*>[\s\S]*?)(<\/pre>)/g, "$1\n{ ( [ &quot;unclosed$2")
          .replace(/(<pre class="language-console">[\s\S]*?)\{ \( \[ (&quot;unclosed<\/pre>)/g, "$1$ echo $2")
      : text.replace(/^(\s*```\w[^\n]*\n)([\s\S]*?)(^\s*```)/gm, '$1$2{ ( [ "unclosed\n$3'),
  "headings stripped": (text, type) =>
    /html/.test(type) ? text.replace(/<(\/?)h[1-6][^>]*>/gi, "<$1p>") : text.replace(/^#+ +/gm, ""),
  "links dead": (text, type) =>
    /html/.test(type)
      ? text.replace(/href="(?!https?:|#|mailto:)([^"#]+)/g, 'href="gone-$1')
      : text.replace(/\]\((?!https?:|#)([^)#]+)/g, "]($1-gone"),
  "pages 404": () => new Response("Not found", { status: 404 }),
  "redirect loops": (_text, _type, path) => new Response(null, { status: 302, headers: { location: path } }),
  "scripts only": () =>
    new Response(
      '<!doctype html><html><head><title>Docs</title><script src="/app.js"></script></head><body><div id="root"></div></body></html>',
      { headers: { "content-type": "text/html; charset=utf-8" } },
    ),
};
const answerRemoved = "answer removed";
const doses = [0.1, 0.3, 0.6, 1];
const atOnce = 3;

/** From 0 to 1, the same for a text in every run. */
const rank = (text: string) => Number(Bun.hash(text) % 1000n) / 1000;

export type Step = { corpus: CorpusName; way: string; dose: number; before: number; after: number };

/** A session on sound docs: its goal, its score, and the order in which pages are hit. */
type Sound = { goal: Goal; score: number; ranks: Map<string, number> };

/**
 * The score of one goal on real docs that are made worse by dose. Pages are hit in a fixed order, so that a higher dose hits all that a lower
 * one did. Of those that a session on the sound docs reads, each dose hits its share.
 */
export async function measureDegradation(names: CorpusName[] = ["git", "sqlite", "flask", "bun"]): Promise<Step[]> {
  const series = names.flatMap((corpus) => [...Object.keys(ways), answerRemoved].map((way) => ({ corpus, way })));
  const sound = new Map(names.map((corpus) => [corpus, readSound(corpus)]));
  const waiting = series.entries();
  const steps: Step[][] = series.map(() => []);
  const worker = async () => {
    for (const [at, { corpus, way }] of waiting) {
      const { goal, score, ranks } = await sound.get(corpus)!;
      const scoreOf = async (dose: number) =>
        (await exploreWith(goal, degradeBy(goal, way, dose, ranks))).grade.score ?? 0;
      let before = way === samplesBroken ? await scoreOf(0) : score;
      for (const dose of doses) {
        const after = await scoreOf(dose);
        steps[at]!.push({ corpus, way, dose, before, after });
        before = after;
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return steps.flat();
}

async function exploreWith({ corpus, goal }: Goal, degrade: Degrade): Promise<Explored> {
  const site = serveCorpus(corpus, degrade);
  try {
    return await explore(site.start, goal);
  } finally {
    site.stop();
  }
}

/** The first goal of a corpus whose answer the explorer finds. Removing an answer that it doesn't find would change nothing. */
async function readSound(corpus: CorpusName): Promise<Sound> {
  for (const goal of readGoals("tuning")) {
    if (goal.corpus !== corpus || goal.kind !== "words") continue;
    const { grade, events } = await exploreWith(goal, () => null);
    const pathOf = ({ url }: { url: string }) => new URL(url).pathname;
    const nearest = milestonesOf(events, "goal_answer").flatMap(({ detail }) => detail.nearest.map(pathOf))[0];
    if (!goal.answers.some(({ page }) => pathIn(corpus, page) === nearest)) continue;
    const read = new Set(milestonesOf(events, "page_read").map(({ detail }) => pathOf(detail)));
    const paths = [...read].filter((path) => path !== corpora[corpus].start).sort((a, b) => rank(a) - rank(b));
    return {
      goal,
      score: grade.score ?? 0,
      ranks: new Map(paths.map((path, at) => [path, (at + 0.5) / paths.length])),
    };
  }
  throw new Error(`The explorer finds no answer in ${corpus}`);
}

function degradeBy({ corpus, answers }: Goal, way: string, dose: number, ranks: Sound["ranks"]): Degrade {
  const proofs = new Map(answers.map(({ page, proof }) => [pathIn(corpus, page), proof]));
  return (path, text, type) => {
    const proof = proofs.get(path);
    if (way === answerRemoved) return proof === undefined ? null : withoutText(text, type, proof, dose);
    const sound = way === samplesBroken ? labelSessions(text, type) : text;
    // The start page stays, because a site without one is not evaluated at all.
    return path !== corpora[corpus].start && (ranks.get(path) ?? rank(path)) < dose
      ? ways[way]!(sound, type, path)
      : sound;
  };
}

/** A page with different text around its answer, of the same length. At a dose of 1, everything differs. */
function withoutText(text: string, type: string, proof: string, dose: number): string {
  const center = Math.max(0, text.search(new RegExp(proof.split(" ").map(RegExp.escape).join("(?:\\s|<[^>]*>)+"))));
  const reach = Math.max(center, text.length - center) * dose;
  const other = (part: string, at: number) => (Math.abs(at - center) <= reach ? part.replace(/\w+/g, "lorem") : part);
  if (/html/.test(type)) return text.replace(/(?<=>)[^<]+(?=<)/g, other);
  return text.replace(/^(?!\s*(```|~~~)).+$/gm, (part, _fence, at: number) => other(part, at));
}

/** The score of each goal once the docs say nothing about its answer. */
export async function measureRemoval(goals: Goal[]): Promise<{ goal: Goal; after: number }[]> {
  const waiting = goals.entries();
  const removals: { goal: Goal; after: number }[] = [];
  const worker = async () => {
    for (const [at, goal] of waiting) {
      const { grade } = await exploreWith(goal, withoutAnswer(goal));
      removals[at] = { goal, after: grade.score ?? 0 };
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return removals;
}

/**
 * Docs from which a subject is taken away, as if nobody had written about it: pages named after it, all links to them, and every other section
 * that mentions it. To take away only the section that answers would leave others that answer too.
 */
function withoutAnswer({ corpus, subject, answers }: Goal): Degrade {
  const words = (subject ?? answers.map(({ proof }) => proof)).map((word) => word.toLowerCase());
  const mentions = (markup: string) => words.some((word) => plainText(markup).includes(word));
  const { folder, start }: { folder: string; start: string } = corpora[corpus];
  const isAbout = (text: string, type: string) => mentions(headingsOf(text, type)[0]?.words ?? "");
  const goneNames = new Set(
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(html|mdx?)$/.test(name))
      .filter((name) => isAbout(readFileSync(join(folder, name), "utf8"), name))
      .map(pageName),
  );
  const isGone = (target: string, linkText: string) => goneNames.has(pageName(target)) || mentions(linkText);
  return (path, text, type) => {
    if (path !== start && isAbout(text, type)) return new Response("Not found", { status: 404 });
    return withoutSections(withoutLinks(text, type, isGone), type, mentions);
  };
}

/** The name of a page in its path, without its extension. An index is named like its folder. */
const pageName = (path: string): string =>
  path
    .replace(/(\/index)?\.\w+$|\/$/, "")
    .split("/")
    .at(-1) ?? "";

function withoutLinks(text: string, type: string, isGone: (target: string, linkText: string) => boolean): string {
  if (/html/.test(type))
    return text.replace(
      /<a\b[^>]*?href="([^"#]*)[^"]*"[^>]*>([\s\S]*?)<\/a>/gi,
      (link, target: string, words: string) => (isGone(target, words) ? "" : link),
    );
  return text.replace(/\[([^\]]*)\]\(([^)#\s]*)[^)]*\)/g, (link, words: string, target: string) =>
    isGone(target, words) ? "" : link,
  );
}

/** A page without its sections that mention something: each from its heading to the next, or to the next of its level if the heading does. */
function withoutSections(text: string, type: string, mentions: (markup: string) => boolean): string {
  let kept = "";
  let end = 0;
  const headings = headingsOf(text, type);
  for (const [at, { index, level, words }] of headings.entries()) {
    if (index < end) continue;
    const later = headings.slice(at + 1);
    const next = (mentions(words) ? later.find((heading) => heading.level <= level) : later[0])?.index ?? text.length;
    kept += text.slice(end, index);
    if (!mentions(text.slice(index, next))) kept += text.slice(index, next);
    end = next;
  }
  return kept + text.slice(end);
}

function headingsOf(text: string, type: string): { index: number; level: number; words: string }[] {
  if (/html/.test(type))
    return [...text.matchAll(/<h([1-6])\b[^>]*>([\s\S]*?)<\/h\1\s*>/gi)].map(({ index, 1: level, 2: words }) => ({
      index,
      level: Number(level),
      words: plainText(words!),
    }));
  // A line of a code sample that starts with # is no heading.
  const withoutCode = text.replace(/^ *```[\s\S]*?^ *```/gm, (code) => code.replaceAll("#", " "));
  return [...withoutCode.matchAll(/^(#{1,6}) (.*)$/gm)].map(({ index, 1: marks, 2: words }) => ({
    index,
    level: marks!.length,
    words: plainText(words!),
  }));
}

/** Lowercase words without markup. */
const plainText = (text: string) =>
  text
    .replace(/<[^>]+>/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replace(/&quot;|&#8220;/g, '"')
    .replaceAll("&amp;", "&")
    .replace(/\s+/g, " ")
    .trim()
    .toLowerCase();

export function printDegradation(steps: Step[]): void {
  for (const [series, of] of Map.groupBy(steps, ({ corpus, way }) => `${corpus}, ${way}`))
    console.log(`${series.padEnd(28)} ${[of[0]!.before, ...of.map(({ after }) => after)].join(" → ")}`);
  const count = (is: (step: Step) => boolean) => steps.filter(is).length;
  const [rose, flat] = [count(({ before, after }) => after > before), count(({ before, after }) => after === before)];
  console.log(`Steps: ${steps.length}, fell ${steps.length - rose - flat}, flat ${flat}, rose ${rose}`);
}
