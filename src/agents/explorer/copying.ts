import { lazy } from "../../once.ts";
import type { Check } from "../agent.ts";
import { type CodeSample, lineInSample } from "../page.ts";
import { type ApiDescription, namesIn } from "./api-contract.ts";
import { languageOf } from "./inferred-languages.ts";
import { installsOf } from "./packages.ts";
import { hasWords, paragraphsOf } from "./secrets.ts";
import { cut, faultWeight, type ReadPage, toCheck } from "./session.ts";
import { commandsOf } from "./shell-samples.ts";

/** Labels of scripts, in which a prompt is an error. */
const scriptLabel = /^(?:sh|bash|shell|zsh)$/;
/** Labels of commands, in which `<name>` is a placeholder rather than markup. */
const commandLabel = /^(?:sh|bash|shell|zsh|console|terminal|shell-session|shellsession|sh-session|bash-session|http)$/;

/**
 * Checks whether the samples of a page can be copied: placeholders are explained, and commands have no prompt. `descriptions`: the API descriptions
 * of the docs, which explain their parameters and properties.
 */
export const checkCopying = (page: ReadPage, pages: ReadPage[], descriptions: ApiDescription[]): Check[] => [
  ...placeholderChecks(page, pages, descriptions),
  ...promptChecks(page, pages),
];

/** `<region-code>`. */
const inCommand = /<([a-z][\w -]{2,40})>/gi;
/** A URL, but not in a string with replacements, where braces hold an expression. */
const urlOfSample = /(?<![`]|[fF$]["'])https?:\/\/[^\s"'`]+/g;
/** `{region_code}`, `<region-code>` or `[region-code]`. */
const inUrl = /(?<![$#])\{([a-z]\w{2,40})\}|<([a-z][\w-]{2,40})>|(?<=\/)\[([a-z][\w-]{2,40})\]/gi;
/** `<<region-code>>` or `<region-code>`. A tag of one word in single brackets may be an HTML tag. */
const inQuotes = /(?<=["'`])(?:<<([a-z][\w -]{2,40})>>|<([a-z]\w*(?:[ _-]\w+){1,4})>)(?=["'`])/gi;
/** `YOUR_REGION_CODE` or `INSERT_REGION_CODE`. */
const afterRequest = /\b(?:YOUR|INSERT)[_-]([A-Z][A-Z_-]{2,40})\b/g;
/** `REGION_CODE_HERE`. */
const beforeHere = /\b(?!YOUR|INSERT)([A-Z][A-Z_-]{2,40})[_-]HERE\b/g;

/** Lines that describe a command instead of being one: its usage, optional parts in brackets, and an option with what it does. */
const descriptionLines = [
  /^\s*usage:/i,
  /(?:^|\s)\[[^\s[\]][^[\]]*\](?:\.{3})?(?:\s|$)/,
  /^\s*--?[a-z].*\S {2,}[^\s\\#|&]/i,
];
const withoutDescriptions = (code: string): string =>
  code
    .split("\n")
    .filter((line) => !descriptionLines.some((form) => form.test(line)))
    .join("\n");

/** The placeholders of a sample. `name`: the words between the marks. */
function placeholdersOf(sample: CodeSample): { name: string; text: string }[] {
  // Readers don't fill in what a program printed.
  const code = commandsOf(sample.code) ?? sample.code;
  const marked = commandLabel.test(languageOf(sample)) ? [...withoutDescriptions(code).matchAll(inCommand)] : [];
  const inUrls = [...code.matchAll(urlOfSample)].flatMap(([url]) => [...url.matchAll(inUrl)]);
  const quoted = [...code.matchAll(inQuotes)].filter(([, , tag]) => tag === undefined || !code.includes(`</${tag}`));
  const asked = [...code.matchAll(afterRequest), ...code.matchAll(beforeHere)];
  return [...marked, ...inUrls, ...quoted, ...asked].map((match) => ({
    name: match.slice(1).find((name) => name !== undefined) ?? "",
    text: match[0],
  }));
}

/** A sample without a placeholder and without the name before it, because `region=YOUR_REGION` and `--region <region>` explain nothing. */
const restOf = (code: string, placeholder: string): string =>
  code.replace(new RegExp(`(?:[\\w-]+=|(?<!\\S)--?[\\w-]+ )?["']?${RegExp.escape(placeholder)}`, "g"), "");

/** A placeholder is explained if a paragraph or a row of a page, a name in an API description, or the rest of the sample has all of its words. */
function placeholderChecks(page: ReadPage, pages: ReadPage[], descriptions: ApiDescription[]): Check[] {
  // Most pages have no placeholder, and the names in a large description take long to find.
  const findExplanations = lazy(() => [
    ...pages.flatMap(({ markdown }) => paragraphsOf(markdown)),
    ...descriptions.flatMap(namesIn),
  ]);
  const isExplained = (name: string, rest: string) => {
    const words = name
      .replace(/([a-z])([A-Z])/g, "$1 $2")
      .toLowerCase()
      .split(/[^a-z]+/)
      .filter((word) => word.length >= 3 && !/^(?:your|here)$/.test(word));
    return hasWords([rest.toLowerCase()], words) || hasWords(findExplanations(), words);
  };
  const unexplained = new Map<string, { text: string; line: number }>();
  for (const sample of page.samples)
    for (const { name, text } of placeholdersOf(sample))
      if (!unexplained.has(name) && !isExplained(name, restOf(sample.code, text)))
        unexplained.set(name, { text, line: lineInSample(sample, text) });
  return [...unexplained.values()].map(({ text: placeholder, line }) =>
    toCheck({
      id: "placeholder-explained",
      group: "page",
      subject: `${page.url} ${placeholder}`,
      url: page.url,
      line,
      status: "warn",
      weight: faultWeight,
      quote: placeholder,
      needed: true,
      message: `No page that was read says what to put in place of “${placeholder}”`,
      fix: `Explain “${placeholder}”, and where readers find their own value.`,
    }),
  );
}

/** Whether a sample has only commands with a prompt, without their output. */
function isAllPrompted({ code }: CodeSample): boolean {
  const lines = code.split("\n").filter((line) => line.trim() !== "");
  return commandsOf(code)?.split("\n").length === lines.length;
}

/** The first words of the commands of samples. */
const commandNames = (samples: CodeSample[]): Set<string> =>
  new Set(samples.flatMap(({ code }) => code.split("\n").flatMap((line) => /^[\w./-]+/.exec(line)?.[0] ?? [])));

/** Whether each line of a sample is a known command after a number sign, the prompt of root. Such lines would make no sense as comments. */
function isRootSession({ code }: CodeSample, names: Set<string>): boolean {
  const lines = code.split("\n").filter((line) => line.trim() !== "");
  return lines.length > 0 && lines.every((line) => names.has(/^# ([\w./-]+)/.exec(line)?.[1] ?? ""));
}

/** Checks for commands with a prompt, on a site where most commands have none. */
function promptChecks(page: ReadPage, pages: ReadPage[]): Check[] {
  const isUnlabelledCommand = (sample: CodeSample) =>
    sample.language === null && (isAllPrompted(sample) || installsOf(sample.code).length > 0);
  const commandsIn = (each: ReadPage) =>
    each.samples.filter((sample) => scriptLabel.test(languageOf(sample)) || isUnlabelledCommand(sample));
  const all = pages.flatMap(commandsIn);
  const names = commandNames(all);
  const hasPrompt = (sample: CodeSample) => commandsOf(sample.code) !== null || isRootSession(sample, names);
  const prompted = commandsIn(page).filter(hasPrompt);
  const [first] = prompted;
  if (first === undefined || all.filter(hasPrompt).length * 2 > all.length) return [];
  return [
    toCheck({
      id: "command-copyable",
      group: "page",
      subject: page.url,
      url: page.url,
      line: first.line + 1,
      status: "warn",
      weight: faultWeight,
      quote: cut(first.code.trim(), 200),
      needed: true,
      message: `${prompted.length} of the commands on this page start with a prompt, other commands of the docs don't`,
      fix: "Remove the prompts, or label the samples as terminal sessions. Anyone who copies a prompt gets an error.",
    }),
  ];
}
