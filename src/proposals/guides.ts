import { familyOf } from "../agents/languages.ts";
import { plainText } from "../agents/markdown-links.ts";
import { type Candidate, type Drop, toProposal } from "./candidate.ts";
import { contentStems, hasSecondOrder, isClear, nameTest, type Phrase, toPhrase } from "./phrases.ts";
import type { DropReason, ProposalPage, ProposalReason, ProposalSource } from "./proposal.ts";

/** Pages that are about the project rather than about its use, by path or title. */
const aboutProject =
  /\b(change-?logs?|changes|history|release-?(notes?|process)?s?|releasing|what-?s-?new|news|blog|posts|upgrad\w+|updating|migrat\w+|deprecat\w+|contribut\w+|develop(ers?|ment)?|hacking|internals?|architecture|roadmap|comparisons?|alternatives|benchmarks?|licen[cs]es?|code-of-conduct|governance|community|support|sponsors?|credits|authors|translations?|glossary|about|rfcs?|style-?guides?|best-?practices?|versioned|archived|design|philosophy|policy|policies|issues?|pull-?requests?|bugs|security)\b/i;
/** Pages that explain how to do things. */
const guide =
  /\b(guides?|tutorials?|how-?tos?|quick-?starts?|start(ed)?|usage|use|using|cookbook|recipes?|examples?|learn|intro|introduction|topics|patterns?|readme|tasks?|features?|working|concepts?)\b/i;
const reference = /\b(reference|api|config|configuration|options|settings|rules|cli|commands?|schema)\b/i;
const tutorial = /\b(tutorials?|quick-?start|getting-?started|first-steps|walkthrough)\b/i;
const symptom =
  /^(why |i (get|can't|cannot)|.{3,60} (does not|doesn't|fails?|not working|is not|isn't|cannot|can't)\b)/i;
const troubleshooting = /\b(troubleshoot\w*|faq|common-?(errors|problems|issues))\b/i;

/** What is kept for those who use it already. */
const outdated = /\b(legacy|deprecated|obsolete|removed)\b/i;

/** What a reader has to fill in. */
const placeholder = /<[A-Z_a-z -]+>|\bYOUR[_-]|\{\{/;

/** A folder whose pages are one tutorial, whereas each page of `tutorials/` is one of its own. */
const tutorialFolder = /^.*\/(tutorial|quick-?start|getting-?started|first-steps|walkthrough)\//i;
const minTutorialPages = 3;
/** A page is a tutorial if this share of its sections are steps. */
const minStepShare = 0.4;
const maxLevel = 4;

/** How a page is addressed, as words. */
const pathOf = (url: string): string =>
  (URL.parse(url)?.pathname ?? url).replace(/\.\w+$/, "").replaceAll(/[/_.\d]+/g, " ");

/** Number of links to each page, by address without its fragment. */
function countLinks(pages: ProposalPage[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { links } of pages)
    for (const url of new Set(links.map((link) => addressOf(link.url)))) counts.set(url, (counts.get(url) ?? 0) + 1);
  return counts;
}

const addressOf = (url: string) => url.replace(/#.*$/, "").replace(/(\/index)?(\.(html?|mdx?))?\/?$/, "");

type Heading = ProposalPage["headings"][number];

/** A part of a page under one heading, with what is nested below it. */
type Part = {
  page: ProposalPage;
  heading: Heading;
  /** The headings that it is below, from the title of the page on. */
  above: string[];
  text: string;
  samples: ProposalPage["samples"];
};

/** Candidates from headings and sentences of guides that say what to do and show how in a sample. */
export function candidatesOfGuides(source: ProposalSource, drop: Drop): Candidate[] {
  const pages = source.readme ? [source.readme, ...source.pages] : source.pages;
  const isName = nameTest(pages.map(({ markdown }) => markdown));
  const links = countLinks(pages);
  const tutorialFolders = pages.flatMap(({ url }) => tutorialFolder.exec(url)?.[0] ?? []);
  return pages.flatMap((page, position) => {
    const path = pathOf(page.url);
    if (aboutProject.test(path.replaceAll(" ", "-")) || aboutProject.test(page.title)) {
      drop("page_kind");
      return [];
    }
    const isGuide = guide.test(path) || page === source.readme;
    const linksToPage = links.get(addressOf(page.url)) ?? 0;
    const linkScore = Math.min(2, Math.log2(linksToPage + 1) / 2);
    // Pages that are read first are more important.
    const orderPenalty = position / pages.length;
    const score = (isGuide ? 2 : 0) - (reference.test(path) ? 2 : 0) + linkScore - orderPenalty;
    const folder = tutorialFolder.exec(page.url)?.[0];
    const isOfTutorial = tutorialFolders.filter((each) => each === folder).length >= minTutorialPages;
    return candidatesOfPage(page, source, { isName, score, isOfTutorial, drop });
  });
}

/** `isOfTutorial`: the page is one of several that follow each other. */
type PageFacts = {
  isName: (word: string) => boolean;
  score: number;
  isOfTutorial: boolean;
  drop: Drop;
};

function candidatesOfPage(page: ProposalPage, source: ProposalSource, facts: PageFacts): Candidate[] {
  const parts = partsOf(page);
  const isTutorial = facts.isOfTutorial || hasSteps(page, parts, facts.isName);
  return parts.flatMap((part, index): Candidate[] => {
    const task = taskOf(part, facts.isName);
    if (task === null) {
      facts.drop("no_action");
      return [];
    }
    const objection = isTutorial && index > 0 ? "step" : objectionTo(task, part, source.product);
    if (objection !== null) {
      facts.drop(objection);
      return [];
    }
    const { phrase, why, line, quote } = task;
    const basis = { source: { url: page.url, line, quote: quote.slice(0, 1000) }, why, text: part.text };
    const proposal = toProposal(phrase, source, basis);
    const isWeak = why === "sentence" || (why !== "symptom" && saysLittle(phrase, part, source.product));
    return [{ proposal, score: facts.score + scoreOf(part, phrase, why), isWeak }];
  });
}

/** Why the task of a part is not proposed; null if it is. */
function objectionTo({ phrase, why }: Task, part: Part, product: string): DropReason | null {
  if (part.samples.length === 0 || isOfAnotherProduct(part, product)) return "no_action";
  if ([...part.above, part.heading.text].some((each) => outdated.test(each))) return "page_kind";
  return why !== "symptom" && needsPage(phrase, part, product) ? "needs_page" : null;
}

/** Whether a part shows only commands, and none of them names the product, such as what a cloud provider needs before. */
function isOfAnotherProduct({ samples }: Part, product: string): boolean {
  const hasOnlyCommands = samples.every(({ language }) => /^(shell|session)$/.test(familyOf(language ?? "") ?? ""));
  const lettersOf = (text: string) => text.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, "");
  const code = samples.map((sample) => sample.code).join("\n");
  return hasOnlyCommands && !lettersOf(code).includes(lettersOf(product));
}

type Task = { phrase: Phrase; why: ProposalReason; line: number; quote: string };

function taskOf(part: Part, isName: (word: string) => boolean): Task | null {
  const { heading, page } = part;
  const text = plainText(heading.text).trim();
  const isCode = /^`[^`]*`$/.test(heading.text.trim());
  if (isCode) return null;
  const quote = page.markdown.split("\n")[heading.line - 1]?.replace(/^#+\s*/, "") || text;
  if (troubleshooting.test(pathOf(page.url)) && symptom.test(text)) {
    if (placeholder.test(quote) || /\bXX/.test(text)) return null;
    const phrase = { verb: "find", rest: `the cause of this problem and a fix: “${text.replace(/[?.]$/, "")}”` };
    return { phrase, why: "symptom", line: heading.line, quote };
  }
  const phrase = toPhrase(text, isName);
  if (phrase !== null) return { phrase, why: "heading", line: heading.line, quote };
  return sentenceTask(part, isName);
}

/** What leaves little behind that shows whether it succeeded. */
const intangible = /^(avoid|discover|display|find|manage|prevent|read|reduce|view)$/;

const needsPage = (phrase: Phrase, part: Part, product: string): boolean =>
  !isClear(phrase) || presupposed.test(phrase.rest) || isOfAnExample(phrase, part, product);

const saysLittle = (phrase: Phrase, part: Part, product: string): boolean =>
  intangible.test(phrase.verb) ||
  wordsOf(phrase.rest, product).length < minWords ||
  hasOtherTopic(phrase, part, product);

/** What somebody must provide in a certain state before the task can begin. */
const presupposed = /\b(existing|current|broken|failing)\b/i;

/** What the reader has already, such as the one that the page sets up: "Test the cluster". */
const definiteObject = /^(?:the|your) ([\p{L}-]+(?: [\p{L}-]+){0,2})$/u;
/** What follows something else rather than being done for itself. */
const trial = /^(test|verify|check|try)$/;
/** An identifier, such as `toMatchScreenshot`, is a thing of the product. */
const identifier = /[a-z][A-Z]|[_\d]/;

/** Whether a task acts on something that only the example of its page has. It is none if the page itself is about it. */
function isOfAnExample({ verb, rest }: Phrase, { above }: Part, product: string): boolean {
  const [, object] = definiteObject.exec(rest) ?? [];
  if (object === undefined || identifier.test(object)) return false;
  if (trial.test(verb)) return true;
  const stemsOfTopic = contentStems(`${product} ${above.join(" ")}`);
  return !contentStems(object).some((stem) => stemsOfTopic.includes(stem));
}

/** Words that say what kind of page it is, not what it is about. */
const genericTitle =
  /\b(docs?|documentation|home|welcome|introduction|overview|getting started|quick ?start|how[- ]to|guides?|manual|reference|tutorials?|recipes?|examples?|usage|basics?|advanced|basic|common|best|practices?|patterns?|tips|errors?|faqs?|features?|concepts?|index|readme|installation|configuration|settings|options|commands?|api|the|and|of|to|for|a|an|in|with|your|using|use|v?\d+(\.\d+)*)\b/gi;
/** Words that an object needs to say what is acted on. */
const minWords = 2;

/**
 * Whether a task leaves out what it is about: the title of its page or a heading above it, the first that says more than the task and the
 * product do. Headings that the text below the task doesn't mention don't count: they only group sections.
 */
function hasOtherTopic({ verb, rest }: Phrase, { above, text }: Part, product: string): boolean {
  const ofTask = new Set(contentStems(`${verb} ${rest} ${product}`));
  const ofText = new Set(contentStems(text.slice(text.indexOf("\n"))));
  const letters = `${verb}${rest}`.toLowerCase().replaceAll(/\P{L}/gu, "");
  for (const heading of above) {
    const topic = plainText(heading)
      .split(/\s+[|–—·\\]\s+|\s+-\s+|:\s/)
      .find((piece) => wordsOf(piece, product).length > 0);
    const stems = wordsOf(topic ?? "", product);
    if (placeholder.test(heading) || !stems.some((stem) => ofText.has(stem))) continue;
    // “Backups” is named by “back up a folder”.
    return !stems.some((stem) => ofTask.has(stem) || letters.includes(stem));
  }
  return false;
}

/** The words of a topic that say something about it. */
function wordsOf(topic: string, product: string): string[] {
  const ofProduct = contentStems(product);
  return contentStems(topic.replace(genericTitle, " ")).filter((stem) => !ofProduct.includes(stem));
}

const purpose =
  /^(?:(?:if|when) you (?:want|need|wish|would like) to|to|in order to|you can also|you can) ([a-z]+ [^.:;,()`]{12,70}?)(?=[,:.(]|\s+you (?:can|need|must|should)\b|\s+(?:use|run|call)\s)/i;
const subject =
  /(?:this (?:tutorial|guide|page|section|chapter|recipe)[^.]{0,40}?|you(?:'ll| will) learn|we(?:'ll| will) show(?: you)?) how to ([a-z][^.;:,()\n]{12,80})/i;

/** The first sentence of a part that names a purpose. */
function sentenceTask({ heading, text }: Part, isName: (word: string) => boolean): Task | null {
  for (const [index, line] of text.split("\n").entries()) {
    const isProse = !/^\s*(```|~~~|\||#|>|:::|<)/.test(line);
    if (!isProse) continue;
    for (const sentence of line.split(/(?<=[.!?:])\s+(?=[A-Z])/)) {
      const plain = plainText(sentence)
        .replace(/[*_]/g, "")
        .replace(/^\s*[-+]\s+/, "");
      const ofSubject = subject.exec(plain);
      const [, order = ""] = ofSubject ?? purpose.exec(plain) ?? [];
      const phrase = toPhrase(order, isName);
      if (phrase === null || !isClear(phrase) || hasSecondOrder(phrase) || phrase.rest.split(" ").length < 3) continue;
      return {
        phrase,
        why: ofSubject ? "tutorial" : "sentence",
        line: heading.line + index,
        quote: sentence.trim(),
      };
    }
  }
  return null;
}

function scoreOf({ heading, text }: Part, { rest }: Phrase, why: ProposalReason): number {
  const words = rest.split(" ").length;
  const reasonScore = why === "sentence" ? 0 : 1.5;
  const levelScore = heading.level <= 2 ? 0.8 : 0;
  const lengthScore = Math.min(1, text.length / 1500);
  return reasonScore + levelScore + lengthScore + (words >= 2 && words <= 7 ? 1 : 0);
}

/** The parts of a page; the first is what stands above the first heading or below the title. */
function partsOf(page: ProposalPage): Part[] {
  const lines = page.markdown.split("\n");
  const headings = [
    { level: 1, text: titleOf(page), line: 1 },
    ...page.headings.filter(({ level }) => level <= maxLevel),
  ];
  return headings.map((heading, index) => {
    const lineOf = (end: Heading | undefined) => end?.line ?? lines.length + 1;
    const next = headings[index + 1];
    const text = lines.slice(heading.line - 1, lineOf(next) - 1).join("\n");
    // A part shows the samples of the parts in it too, except for the title, in which all others are.
    const sectionEnd = headings.slice(index + 1).find(({ level }) => level <= heading.level);
    const samplesEnd = lineOf(index === 0 ? next : sectionEnd);
    const samples = page.samples.filter(({ line }) => line >= heading.line && line < samplesEnd);
    return { page, heading, text, above: textsAbove(headings, index), samples };
  });
}

/** The title of a page; without one, its address in words, because then `title` is the first of its sections. */
function titleOf({ title, headings, url }: ProposalPage): string {
  const [first] = headings;
  if (first === undefined || first.level === 1 || first.text !== title) return title;
  return (URL.parse(url)?.pathname ?? url)
    .replace(/\.\w+$/, "")
    .split("/")
    .at(-1)!
    .replaceAll(/[-_]+/g, " ");
}

/** The title of the page, and the headings that one of them is below; empty for the title. */
function textsAbove(headings: Heading[], index: number): string[] {
  if (index === 0) return [];
  const above: string[] = [];
  let { level } = headings[index]!;
  for (const heading of headings.slice(1, index).reverse()) {
    if (heading.level >= level) continue;
    above.unshift(heading.text);
    level = heading.level;
  }
  return [headings[0]!.text, ...above];
}

/** Whether the sections of a page are the steps of one task: they are numbered, or it is a tutorial of actions. */
function hasSteps(page: ProposalPage, parts: Part[], isName: (word: string) => boolean): boolean {
  const sections = parts.slice(1).filter(({ heading }) => heading.level > 1);
  if (sections.length < 3) return false;
  const areMany = (test: (part: Part) => boolean) => sections.filter(test).length / sections.length >= minStepShare;
  if (areMany(({ heading }) => /^(step )?\d+[.:)]/i.test(heading.text))) return true;
  const isTutorial = tutorial.test(`${pathOf(page.url).replaceAll(" ", "-")} ${page.title}`);
  return isTutorial && areMany(({ heading }) => toPhrase(heading.text, isName) !== null);
}
