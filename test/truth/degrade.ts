import { milestonesOf } from "../../src/grading/events.ts";
import { type CorpusName, corpora, type Degrade, serveCorpus } from "./corpora.ts";
import { type Answer, type Goal, pathIn, readGoals } from "./goals.ts";
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

/** The score of each goal once its answering sections are removed from their pages. */
export async function measureRemoval(goals: Goal[]): Promise<{ goal: Goal; after: number }[]> {
  const waiting = goals.entries();
  const removals: { goal: Goal; after: number }[] = [];
  const worker = async () => {
    for (const [at, goal] of waiting) {
      const answers = new Map(goal.answers.map((answer) => [pathIn(goal.corpus, answer.page), answer]));
      const { grade } = await exploreWith(goal, (path, text, type) => {
        const answer = answers.get(path);
        return answer === undefined ? null : withoutSection(text, type, answer);
      });
      removals[at] = { goal, after: grade.score ?? 0 };
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return removals;
}

/** A page without the section of an answer: its heading and all that follows up to the next one of the same or a higher level. */
function withoutSection(text: string, type: string, answer: Answer): string {
  // A line of a code sample that starts with # is no heading.
  const searched = /html/.test(type)
    ? text
    : text.replace(/^ *```[\s\S]*?^ *```/gm, (code) => code.replaceAll("#", " "));
  const headings = [
    ...searched.matchAll(/html/.test(type) ? /<h([1-6])\b[^>]*>([\s\S]*?)<\/h\1\s*>/gi : /^(#{1,6}) (.*)$/gm),
  ].map(({ index, 1: mark, 2: words }) => ({
    index,
    level: /html/.test(type) ? Number(mark) : mark!.length,
    words: plainText(words!),
  }));
  const sections = headings.map(({ index, level, words }, at) => {
    const end = headings.slice(at + 1).find((next) => next.level <= level)?.index ?? text.length;
    return { index, end, words, holdsProof: plainText(text.slice(index, end)).includes(plainText(answer.proof)) };
  });
  const named = sections.filter(({ words }) => words.includes(plainText(answer.heading ?? "")));
  const found = named.find(({ holdsProof }) => holdsProof) ?? sections.findLast(({ holdsProof }) => holdsProof);
  return found ? text.slice(0, found.index) + text.slice(found.end) : withoutText(text, type, answer.proof, 1);
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
