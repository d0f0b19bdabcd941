import { anyWordOf } from "./patterns.ts";

const news = /change-?logs?|changes|history|release-?(?:notes?|process)?s?|releasing|what-?s-?new|news|blog|posts/;
const upgrades = /upgrad\w+|updating|migrat\w+|deprecat\w+|versioned|archived/;
const development = /contribut\w+|develop(?:ers?|ment)?|hacking|internals?|issues?|pull-?requests?|bugs/;
const conventions =
  /style-?guides?|best-?practices?|rfcs?|policy|policies|security|code-of-conduct|governance|licen[cs]es?/;
const people = /community|support|sponsors?|credits|authors|translations?/;
const background = /about|philosophy|design|architecture|roadmap|comparisons?|alternatives|benchmarks?|glossary/;

const aboutProject = anyWordOf(news, upgrades, development, conventions, people, background);

const lessons = /guides?|tutorials?|how-?tos?|quick-?starts?|start(?:ed)?|learn|intro|introduction|readme/;
const collections = /cookbook|recipes?|examples?|topics|patterns?|tasks?|features?|concepts?/;
const guide = anyWordOf(lessons, collections, /usage|use|using|working/);

const reference = /\b(reference|api|config|configuration|options|settings|rules|cli|commands?|schema)\b/i;
const tutorial = /\b(tutorials?|quick-?start|getting-?started|first-steps|walkthrough)\b/i;
const troubleshooting = /\b(troubleshoot\w*|faq|common-?(errors|problems|issues))\b/i;

type Page = { url: string; title: string };

/** Whether a page is about the project rather than about its use. */
export const isAboutProject = ({ url, title }: Page): boolean =>
  aboutProject.test(hyphenatedPathOf(url)) || aboutProject.test(title);

/** Whether a page leads through one task step by step. */
export const isTutorial = ({ url, title }: Page): boolean => tutorial.test(`${hyphenatedPathOf(url)} ${title}`);

/** Whether a page explains how to do things. */
export const isGuide = ({ url }: Page): boolean => guide.test(pathWords(url));

/** Whether a page is looked up rather than read. */
export const isReference = ({ url }: Page): boolean => reference.test(pathWords(url));

/** Whether a page helps with problems. */
export const isTroubleshooting = ({ url }: Page): boolean => troubleshooting.test(pathWords(url));

/** The path of a page as words. */
const pathWords = (url: string): string =>
  (URL.parse(url)?.pathname ?? url).replace(/\.\w+$/, "").replaceAll(/[/_.\d]+/g, " ");

/** The path with hyphens, so that `code_of_conduct` reads like `code-of-conduct`. */
const hyphenatedPathOf = (url: string): string => pathWords(url).replaceAll(" ", "-");

const forms = /docs?|documentation|guides?|manual|reference|tutorials?|recipes?|examples?|index|readme|api|commands?/;
const openings = /home|welcome|introduction|overview|getting started|quick ?start|how[- ]to|usage|basics?|installation/;
const topics = /configuration|settings|options|errors?|faqs?|features?|concepts?|patterns?|tips|best|practices?/;
const qualifiers = /advanced|basic|common|the|and|of|to|for|a|an|in|with|your|using|use|v?\d+(?:\.\d+)*/;
const kindWords = new RegExp(anyWordOf(forms, openings, topics, qualifiers), "gi");

/** A title without the words that only say what kind of page it is. */
export const withoutKindWords = (title: string): string => title.replace(kindWords, " ");
