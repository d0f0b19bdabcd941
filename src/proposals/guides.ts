import { familyOf } from "../agents/languages.ts";
import { plainText } from "../agents/markdown-links.ts";
import { type Candidate, type Drop, toProposal } from "./candidate.ts";
import { isAboutProject, isGuide, isReference, isTroubleshooting, isTutorial, withoutKindWords } from "./page-kinds.ts";
import { type Part, partsOf } from "./parts.ts";
import { anyOf } from "./patterns.ts";
import { contentStems, hasSecondOrder, isClear, nameTest, type Phrase, toPhrase } from "./phrases.ts";
import type { DropReason, ProposalPage, ProposalReason, ProposalSource } from "./proposal.ts";

/** A folder whose pages are one tutorial. In `tutorials/`, in contrast, each page is its own tutorial. */
const tutorialFolder = /^.*\/(tutorial|quick-?start|getting-?started|first-steps|walkthrough)\//i;
/** If such a folder has at least this many pages, it is one tutorial. */
const minTutorialPages = 3;

/** Number of links to each page, by address without its fragment. */
function countLinks(pages: ProposalPage[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { links } of pages)
    for (const url of new Set(links.map((link) => addressOf(link.url)))) counts.set(url, (counts.get(url) ?? 0) + 1);
  return counts;
}

const addressOf = (url: string) => url.replace(/#.*$/, "").replace(/(\/index)?(\.(html?|mdx?))?\/?$/, "");

/** Candidates from headings and sentences of guides. They say what to do, and a sample shows how. */
export function candidatesOfGuides(source: ProposalSource, drop: Drop): Candidate[] {
  const pages = source.readme ? [source.readme, ...source.pages] : source.pages;
  const isName = nameTest(pages.map(({ markdown }) => markdown));
  const links = countLinks(pages);
  const tutorialFolders = pages.flatMap(({ url }) => tutorialFolder.exec(url)?.[0] ?? []);
  return pages.flatMap((page, position) => {
    if (isAboutProject(page)) {
      drop("page_kind");
      return [];
    }
    const guideScore = isGuide(page) || page === source.readme ? 2 : 0;
    const referencePenalty = isReference(page) ? 2 : 0;
    const linksToPage = links.get(addressOf(page.url)) ?? 0;
    const linkScore = Math.min(2, Math.log2(linksToPage + 1) / 2);
    // Pages that were read first are more important.
    const orderPenalty = position / pages.length;
    const score = guideScore - referencePenalty + linkScore - orderPenalty;
    const folder = tutorialFolder.exec(page.url)?.[0];
    const isOfTutorial = tutorialFolders.filter((each) => each === folder).length >= minTutorialPages;
    return candidatesOfPage(page, source, { isName, score, isOfTutorial, drop });
  });
}

/** `isName`: whether a capitalized word is a name. `isOfTutorial`: the page is one of several that follow each other. */
type PageFacts = {
  isName: (word: string) => boolean;
  score: number;
  isOfTutorial: boolean;
  drop: Drop;
};

function candidatesOfPage(page: ProposalPage, source: ProposalSource, facts: PageFacts): Candidate[] {
  const parts = partsOf(page);
  const partsAreSteps = facts.isOfTutorial || hasSteps(page, parts, facts.isName);
  return parts.flatMap((part, index): Candidate[] => {
    const task = taskOf(part, facts.isName);
    if (task === null) {
      facts.drop("no_action");
      return [];
    }
    const isStep = partsAreSteps && index > 0;
    const objection = isStep ? "step" : objectionTo(task, part, source.product);
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

/** Headings of features that exist only for people who already use them. */
const outdated = /\b(legacy|deprecated|obsolete|removed)\b/i;

/** Why the task of a part is not proposed; null: it is proposed. */
function objectionTo({ phrase, why }: Task, part: Part, product: string): DropReason | null {
  if (part.samples.length === 0 || isOfAnotherProduct(part, product)) return "no_action";
  if ([...part.above, part.heading.text].some((each) => outdated.test(each))) return "page_kind";
  return why !== "symptom" && needsPage(phrase, part, product) ? "needs_page" : null;
}

/** Whether a part shows only commands of another product, such as commands that prepare an account at a cloud provider. */
function isOfAnotherProduct({ samples }: Part, product: string): boolean {
  const hasOnlyCommands = samples.every(({ language }) => /^(shell|session)$/.test(familyOf(language ?? "") ?? ""));
  const lettersOf = (text: string) => text.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, "");
  const code = samples.map((sample) => sample.code).join("\n");
  return hasOnlyCommands && !lettersOf(code).includes(lettersOf(product));
}

type Task = { phrase: Phrase; why: ProposalReason; line: number; quote: string };

const symptomStart = /why |i (?:get|can't|cannot)/;
const symptomWithSubject = /.{3,60} (?:does not|doesn't|fails?|not working|is not|isn't|cannot|can't)\b/;
/** A heading that says what goes wrong: "Why does it hang", "The build fails". */
const symptom = new RegExp(`^${anyOf(symptomStart, symptomWithSubject)}`, "i");

/** Texts that a reader has to fill in. */
const placeholder = /<[A-Z_a-z -]+>|\bYOUR[_-]|\{\{/;

/** The task that a part is about. It comes from the heading, or else from the first sentence that names a purpose. */
function taskOf(part: Part, isName: (word: string) => boolean): Task | null {
  const { heading, page } = part;
  const text = plainText(heading.text).trim();
  const isCode = /^`[^`]*`$/.test(heading.text.trim());
  if (isCode) return null;
  const quote = page.markdown.split("\n")[heading.line - 1]?.replace(/^#+\s*/, "") || text;
  if (isTroubleshooting(page) && symptom.test(text)) {
    if (placeholder.test(quote) || /\bXX/.test(text)) return null;
    const phrase = { verb: "find", rest: `the cause of this problem and a fix: “${text.replace(/[?.]$/, "")}”` };
    return { phrase, why: "symptom", line: heading.line, quote };
  }
  const phrase = toPhrase(text, isName);
  if (phrase !== null) return { phrase, why: "heading", line: heading.line, quote };
  return sentenceTask(part, isName);
}

/** Words for things that must exist in a certain state before the task can begin. */
const presupposed = /\b(existing|current|broken|failing)\b/i;

/** Whether a task can't be understood or begun without its page. */
const needsPage = (phrase: Phrase, part: Part, product: string): boolean =>
  !isClear(phrase) || presupposed.test(phrase.rest) || isOfAnExample(phrase, part, product);

/** An object that the reader already has, for example because the page sets it up: "Test the cluster". */
const definiteObject = /^(?:the|your) ([\p{L}-]+(?: [\p{L}-]+){0,2})$/u;
/** Verbs of tasks that only follow another one. */
const trial = /^(test|verify|check|try)$/;
/** An identifier, such as `toMatchScreenshot`, is a thing of the product. */
const identifier = /[a-z][A-Z]|[_\d]/;

/** Whether a task acts on something that only the example of its page has: a definite object that the page itself isn't about. */
function isOfAnExample({ verb, rest }: Phrase, { above }: Part, product: string): boolean {
  const [, object] = definiteObject.exec(rest) ?? [];
  if (object === undefined || identifier.test(object)) return false;
  if (trial.test(verb)) return true;
  const stemsOfTopic = contentStems(`${product} ${above.join(" ")}`);
  return !contentStems(object).some((stem) => stemsOfTopic.includes(stem));
}

/** Verbs of tasks whose success leaves little to check. */
const intangible = /^(avoid|discover|display|find|manage|prevent|read|reduce|view)$/;
/** An object with fewer words doesn't say what is acted on. */
const minWords = 2;

/** Whether a task is worth proposing only if there are few others. */
const saysLittle = (phrase: Phrase, part: Part, product: string): boolean =>
  intangible.test(phrase.verb) ||
  wordsOf(phrase.rest, product).length < minWords ||
  hasOtherTopic(phrase, part, product);

/**
 * Whether a task leaves out its topic, as “Back up a folder” does below “Windows”. The topic is in the title of the page or a heading above the
 * task: the first one that the text below the task mentions, because the others only group sections.
 */
function hasOtherTopic({ verb, rest }: Phrase, { above, text }: Part, product: string): boolean {
  const stemsOfTask = new Set(contentStems(`${verb} ${rest} ${product}`));
  const stemsOfText = new Set(contentStems(text.slice(text.indexOf("\n"))));
  const lettersOfTask = `${verb}${rest}`.toLowerCase().replaceAll(/\P{L}/gu, "");
  for (const heading of above) {
    const topic = plainText(heading)
      .split(titleSeparator)
      .find((piece) => wordsOf(piece, product).length > 0);
    const stems = wordsOf(topic ?? "", product);
    if (placeholder.test(heading) || !stems.some((stem) => stemsOfText.has(stem))) continue;
    // “Backups” is named by “back up a folder”.
    return !stems.some((stem) => stemsOfTask.has(stem) || lettersOfTask.includes(stem));
  }
  return false;
}

/** The separators of the parts of a title, as in "Backups | Acme". */
const titleSeparator = /\s+[|–—·\\]\s+|\s+-\s+|:\s/;

/** The stems of the words of a topic that say something about it. */
function wordsOf(topic: string, product: string): string[] {
  const stemsOfProduct = contentStems(product);
  return contentStems(withoutKindWords(topic)).filter((stem) => !stemsOfProduct.includes(stem));
}

const purposeStart = /(?:if|when) you (?:want|need|wish|would like) to|to|in order to|you can also|you can/;
const purposeEnd = /[,:.(]|\s+you (?:can|need|must|should)\b|\s+(?:use|run|call)\s/;
/** A sentence that names a purpose: "To back up a folder, run acme backup." The group is the task in it, "back up a folder". */
const purpose = new RegExp(`^${anyOf(purposeStart)} ([a-z]+ [^.:;,()\`]{12,70}?)(?=${anyOf(purposeEnd)})`, "i");

const aboutPage = /this (?:tutorial|guide|page|section|chapter|recipe)[^.]{0,40}?/;
const promise = /you(?:'ll| will) learn|we(?:'ll| will) show(?: you)?/;
/** A sentence that says what a page teaches: "This guide shows how to back up a folder." The group is the task in it. */
const lesson = new RegExp(`${anyOf(aboutPage, promise)} how to ([a-z][^.;:,()\\n]{12,80})`, "i");

/** Minimum number of words in the object of a task that comes from a sentence. */
const minObjectWords = 3;

/** The task in the first sentence of a part that names a purpose. */
function sentenceTask({ heading, text }: Part, isName: (word: string) => boolean): Task | null {
  for (const [index, line] of text.split("\n").entries()) {
    const isProse = !/^\s*(```|~~~|\||#|>|:::|<)/.test(line);
    if (!isProse) continue;
    for (const sentence of line.split(/(?<=[.!?:])\s+(?=[A-Z])/)) {
      const plain = plainText(sentence)
        .replace(/[*_]/g, "")
        .replace(/^\s*[-+]\s+/, "");
      const lessonMatch = lesson.exec(plain);
      const [, order = ""] = lessonMatch ?? purpose.exec(plain) ?? [];
      const phrase = toPhrase(order, isName);
      if (phrase === null || !isClear(phrase) || hasSecondOrder(phrase)) continue;
      if (phrase.rest.split(" ").length < minObjectWords) continue;
      const why = lessonMatch ? "tutorial" : "sentence";
      return { phrase, why, line: heading.line + index, quote: sentence.trim() };
    }
  }
  return null;
}

function scoreOf({ heading, text }: Part, { rest }: Phrase, why: ProposalReason): number {
  const wordCount = rest.split(" ").length;
  const reasonScore = why === "sentence" ? 0 : 1.5;
  const levelScore = heading.level <= 2 ? 0.8 : 0;
  const lengthScore = Math.min(1, text.length / 1500);
  const brevityScore = wordCount >= 2 && wordCount <= 7 ? 1 : 0;
  return reasonScore + levelScore + lengthScore + brevityScore;
}

/** If at least this share of its sections are steps, a page is a tutorial. */
const minStepShare = 0.4;

/** Whether the sections of a page are the steps of one task. Either they are numbered, or the page is a tutorial whose sections are actions. */
function hasSteps(page: ProposalPage, parts: Part[], isName: (word: string) => boolean): boolean {
  const sections = parts.slice(1).filter(({ heading }) => heading.level > 1);
  if (sections.length < 3) return false;
  const areMany = (test: (part: Part) => boolean) => sections.filter(test).length / sections.length >= minStepShare;
  if (areMany(({ heading }) => /^(step )?\d+[.:)]/i.test(heading.text))) return true;
  return isTutorial(page) && areMany(({ heading }) => toPhrase(heading.text, isName) !== null);
}
