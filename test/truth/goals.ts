import { readFileSync } from "node:fs";
import { join } from "node:path";
import { wilson } from "../../src/stats/estimates.ts";
import { type CorpusName, fileOf, serveCorpus } from "./corpora.ts";
import { explore } from "./session.ts";

/** A goal with the pages that answer it, each with words on that page. Without pages, the corpus has no answer. */
export type Goal = {
  corpus: CorpusName;
  kind: "words" | "synonyms" | "none";
  goal: string;
  answers: Answer[];
  /** Lowercase words of which every text about the answer has at least one. If left out, the proofs of the answers. */
  subject?: string[];
};
/** `heading` is that of the answering section, or the name of an entry on the page. */
type Answer = { page: string; proof: string; heading?: string };
/** Goals about docs that test/support/setup.sh installs, and about docs that fetch-corpora.ts fetches. No rule is ever tuned on the sealed ones. */
export const goalFiles = ["tuning", "held-out"] as const;
export const fetchedGoalFiles = ["field", "unseen", "third", "fourth", "sealed", "fifth", "sealed-second"] as const;
type GoalFile = (typeof goalFiles | typeof fetchedGoalFiles)[number];

export const readGoals = (name: GoalFile): Goal[] =>
  JSON.parse(readFileSync(join(import.meta.dir, "goals", `${name}.json`), "utf8"));

/** Expected answers whose file is missing or doesn't contain the words that prove it. */
export function listUnproven(goals: Goal[]): string[] {
  return goals.flatMap(({ corpus, goal, answers }) =>
    answers.flatMap(({ page, proof }) => {
      const file = fileOf(corpus, pathIn(corpus, page));
      const text =
        file === null
          ? ""
          : readFileSync(file, "utf8")
              .replace(/<[^>]+>/g, "")
              .replace(/\s+/g, " ");
      return text.includes(proof) ? [] : [`${corpus} “${goal}”: ${page} does not hold “${proof}”`];
    }),
  );
}

/** The path under which a page of a goal file is served. */
export const pathIn = (corpus: CorpusName, page: string) => (corpus === "bun" ? `/docs/${page}` : `/${page}`);

/** A finding about a corpus, independent of a goal, as `findings.json` lists it with a reviewer's verdict. */
type Finding = { corpus: CorpusName; title: string; place: string };
type Verdict = Finding & { is: "true" | "false"; why: string };

const keyOf = ({ corpus, title, place }: Finding) => `${corpus}\n${title}\n${place}`;

/** Findings, each once, by the reviewer's verdict; `unknown` ones are not reviewed yet. */
export function judgeFindings(all: Located[]): Record<Verdict["is"] | "unknown", Finding[]> {
  const verdicts: Verdict[] = JSON.parse(readFileSync(join(import.meta.dir, "goals", "findings.json"), "utf8"));
  const known = new Map(verdicts.map((verdict) => [keyOf(verdict), verdict.is]));
  const found = new Map(all.flatMap(({ findings }) => findings).map((finding) => [keyOf(finding), finding]));
  const of = (is: Verdict["is"] | undefined) =>
    [...found].flatMap(([key, finding]) => (known.get(key) === is ? [finding] : []));
  return { true: of("true"), false: of("false"), unknown: of(undefined) };
}

export type Located = Goal & {
  state: string;
  score: number;
  nearest: string[];
  /** The heading of the best section of each page in `nearest`. */
  headings: string[];
  /** Whether the `likely` page, or the first of the nearest pages, is correct. */
  first: boolean;
  amongThree: boolean;
  /** Words reported as missing although an answering page that was read contains them. */
  falselyMissing: string[];
  /** Findings of medium or higher severity, without the host of the corpus. */
  findings: Finding[];
  detail: string;
};

/** Runs the explorer on every goal, and compares its answers with the expected ones. */
export async function locate(goals: Goal[]): Promise<Located[]> {
  const waiting = goals.map((goal, at) => ({ goal, at }));
  const results: Located[] = [];
  const worker = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) results[next.at] = await locateOne(next.goal);
  };
  await Promise.all(Array.from({ length: 3 }, worker));
  return results;
}

async function locateOne(goal: Goal): Promise<Located> {
  const { start, url, stop } = serveCorpus(goal.corpus);
  try {
    const { events, grade } = await explore(start, goal.goal);
    const answer = events.find((event) => event.type === "milestone" && event.name === "goal_answer");
    if (answer === undefined) throw new Error("the explorer reported no answer");
    const { detail } = answer;
    const plain = (address: string) => address.slice(url.length).replace(/\/$/, "");
    const right = new Set(goal.answers.map(({ page }) => pathIn(goal.corpus, page)));
    const nearest = detail.nearest.map((each) => plain(each.url));
    const read = new Set(
      events.flatMap((event) =>
        event.type === "milestone" && event.name === "page_read" ? [plain(event.detail.url)] : [],
      ),
    );
    const seen = goal.answers
      .filter(({ page }) => read.has(pathIn(goal.corpus, page)))
      .map(({ page }) => readFileSync(fileOf(goal.corpus, pathIn(goal.corpus, page))!, "utf8").toLowerCase());
    return {
      ...goal,
      state: detail.state,
      score: grade.score ?? 0,
      nearest,
      headings: detail.nearest.map(({ heading }) => heading),
      first: right.has(nearest[0] ?? ""),
      amongThree: nearest.slice(0, 3).some((page) => right.has(page)),
      falselyMissing: detail.unseen.filter((word) =>
        seen.some((text) => new RegExp(`\\b${RegExp.escape(word)}\\b`).test(text)),
      ),
      findings: grade.frictions
        // A goal without an answer is measured by its expectations.
        .filter(({ severity, category }) => severity !== "low" && category !== "missing_docs")
        .map(({ title, url: address }) => ({
          corpus: goal.corpus,
          title: title.replaceAll(url, ""),
          place: plain(address ?? url),
        })),
      detail: `${detail.nearest.map((each) => `${plain(each.url)} “${each.heading.split(" > ").at(-1)}” ${each.share}/${each.headingShare}`).join("; ")} unseen: ${detail.unseen} ${read.size} read, answer ${seen.length > 0 ? "read" : "not read"}`,
    };
  } finally {
    stop();
  }
}

const percent = (share: number) => Math.round(1000 * share) / 10;

/** A share in percent, with its 95 % Wilson interval. */
function share(part: number, of: number): string {
  if (of === 0) return "–";
  const [estimate, low, high] = Object.values(wilson(part, of)).map((each) => percent(each ?? 0));
  return `${estimate} % (${part} of ${of}, ${low}–${high})`;
}

/** Whether the nearest section is one that answers the goal. Null if the goal doesn't state the heading of its first page. */
function isSectionRight({ corpus, answers, nearest, headings }: Located): boolean | null {
  const answer = answers.find(({ page }) => pathIn(corpus, page) === nearest[0]);
  if (answer?.heading === undefined) return null;
  return headings[0]!.toLowerCase().includes(answer.heading.toLowerCase());
}

/** The figures of a set of goals. Held-out goals are never listed one by one, so that nobody tunes against them. */
export function printLocated(name: string, all: Located[], listed: boolean): void {
  const likely = all.filter(({ state }) => state === "likely");
  const answered = all.filter(({ answers }) => answers.length > 0);
  const synonyms = answered.filter(({ kind }) => kind === "synonyms");
  const count = (of: Located[], is: (one: Located) => boolean) => share(of.filter(is).length, of.length);
  console.log(`${name}: ${all.length} goals`);
  console.log(`  “likely” is right: ${count(likely, ({ first }) => first)}`);
  console.log(`  answered goals found likely: ${count(answered, ({ state, first }) => state === "likely" && first)}`);
  console.log(
    `  answer first: ${count(answered, ({ first }) => first)}, among the nearest three: ${count(answered, ({ amongThree }) => amongThree)}`,
  );
  const sections = answered.map(isSectionRight).filter((right) => right !== null);
  console.log(`  of the right pages, the right section: ${share(sections.filter(Boolean).length, sections.length)}`);
  console.log(
    `  synonyms: likely ${count(synonyms, ({ state, first }) => state === "likely" && first)}, among the nearest three ${count(synonyms, ({ amongThree }) => amongThree)}`,
  );
  console.log(
    `  goals without an answer called likely: ${count(
      all.filter(({ kind }) => kind === "none"),
      ({ state }) => state === "likely",
    )}`,
  );
  console.log(
    `  goals with words falsely called missing: ${all.filter(({ falselyMissing }) => falselyMissing.length > 0).length}`,
  );
  const { true: right, false: wrong, unknown } = judgeFindings(all);
  console.log(
    `  findings of medium or higher: ${right.length + wrong.length + unknown.length}, false: ${share(wrong.length, right.length + wrong.length)}, not reviewed yet: ${unknown.length}`,
  );
  for (const { corpus, title, place } of [...wrong, ...unknown]) console.log(`    ${corpus}${place}: ${title}`);
  if (!listed) return;
  for (const one of all) {
    const mark =
      one.kind === "none"
        ? one.state === "likely"
          ? "BAD "
          : "    "
        : one.first
          ? "1st "
          : one.amongThree
            ? "top3"
            : "MISS";
    console.log(
      `${mark} ${one.state.padEnd(7)} ${one.kind.padEnd(8)} ${one.corpus}: ${one.goal}\n       ${one.detail}`,
    );
  }
}

/** Points that a loss must reach to be noticed by whoever reads the score. */
const noticedPoints = 20;

/** How much the score falls once the answer is removed, for goals whose answer the explorer found and for all of them. */
export function printRemoval(all: Located[], removals: { goal: Goal; after: number }[]): void {
  const losses = removals.flatMap(({ goal, after }) => {
    const before = all.find((one) => one.corpus === goal.corpus && one.goal === goal.goal);
    return before ? [{ lost: before.score - after, first: before.first }] : [];
  });
  for (const [name, of] of [
    ["found answers", losses.filter(({ first }) => first)],
    ["all answers", losses],
  ] as const)
    console.log(
      `  at least ${noticedPoints} points lost without the answering section, ${name}: ${share(of.filter(({ lost }) => lost >= noticedPoints).length, of.length)}`,
    );
}
