import { type CorpusName, corpora, type Degrade, serveCorpus } from "./corpora.ts";
import { readGoals } from "./goals.ts";
import { explore } from "./session.ts";

/** Ways in which docs get worse; each takes a page for what it makes of it. */
const ways: Record<string, (text: string, type: string, path: string) => Response | string> = {
  "samples broken": (text, type) =>
    /html/.test(type)
      ? text.replace(/(<pre[^>]*>[\s\S]*?)(<\/pre>)/g, "$1\n{ ( [ &quot;unclosed$2")
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

/** From 0 to 1, the same for a path in every run. */
const rank = (path: string) => Number(Bun.hash(path) % 1000n) / 1000;

export type Step = { corpus: CorpusName; way: string; dose: number; before: number; after: number };

/** The score of one goal on real docs that are made worse by dose. Pages are hit in a fixed order, so that a higher dose hits all that a lower one did. */
export async function measureDegradation(names: CorpusName[] = ["git", "sqlite", "flask", "bun"]): Promise<Step[]> {
  const steps: Step[] = [];
  for (const corpus of names) {
    const goal = readGoals("tuning").find((each) => each.corpus === corpus && each.kind === "words")!;
    const answers = new Set(
      goal.answers.map(({ page }) => `${corpora[corpus].start === "/docs" ? "/docs" : ""}/${page}`),
    );
    const scoreOf = async (degrade: Degrade) => {
      const site = serveCorpus(corpus, degrade);
      try {
        return (await explore(site.start, goal.goal)).grade.score ?? 0;
      } finally {
        site.stop();
      }
    };
    const clean = await scoreOf(() => null);
    for (const way of [...Object.keys(ways), answerRemoved]) {
      let before = clean;
      for (const dose of doses) {
        const after = await scoreOf((path, text, type) => {
          if (way === answerRemoved)
            return answers.has(path) ? text.slice(0, Math.round(text.length * (1 - dose))) : null;
          // The start page stays: a site without one is not evaluated at all.
          return path !== corpora[corpus].start && rank(path) < dose ? ways[way]!(text, type, path) : null;
        });
        steps.push({ corpus, way, dose, before, after });
        before = after;
      }
    }
  }
  return steps;
}

export function printDegradation(steps: Step[]): void {
  for (const [series, of] of Map.groupBy(steps, ({ corpus, way }) => `${corpus}, ${way}`))
    console.log(`${series.padEnd(28)} ${[of[0]!.before, ...of.map(({ after }) => after)].join(" → ")}`);
  const count = (is: (step: Step) => boolean) => steps.filter(is).length;
  const [rose, flat] = [count(({ before, after }) => after > before), count(({ before, after }) => after === before)];
  console.log(`Steps: ${steps.length}, fell ${steps.length - rose - flat}, flat ${flat}, rose ${rose}`);
}
