import { plainText } from "../agents/markdown-links.ts";
import { type Candidate, isNamedIn } from "./candidate.ts";
import { anyOf } from "./patterns.ts";
import { isClear, nameTest, type Phrase, toPhrase } from "./phrases.ts";
import { listPages, type ProposalPage, type ProposalSource } from "./proposal.ts";

const javaScriptManagers = /npm (?:i|install|add)|pnpm add|yarn add|bun add/;
const pythonManagers = /pip3? install|uv add|uv tool install|pipx install/;
const otherManagers = /brew install|cargo install|gem install/;
const manager = `(?<manager>${anyOf(javaScriptManagers, pythonManagers, otherManagers)})`;
const options = "(?: -{1,2}[\\w-]+)*";
/** The name with its extras, such as `"acme[async]"`. */
const packageName = `["']?(?<name>@?[\\w./-]+)(?:\\[[\\w,]*\\])?["']?`;
/** A command that installs a package, such as `pip install -U "acme[async]"`. `quote` is the whole command. */
const installCommand = new RegExp(`(?:^|[\\s\`$])(?<quote>${manager}${options} ${packageName})(?=[\\s\`]|$)`);

/** For each package manager, the command that proves that a package is installed. */
const proofs: [RegExp, (name: string) => string][] = [
  [/^npm/, (name) => `npm ls ${name} || npm ls --global ${name}`],
  [/^pnpm/, (name) => `pnpm ls ${name}`],
  [/^(yarn|bun)/, (name) => `test -d node_modules/${name} && echo ${name}`],
  [/^pip3? /, (name) => `python3 -m pip show ${name}`],
  [/^uv add/, (name) => `uv pip show ${name}`],
  [/^(uv tool|pipx|brew|cargo)/, (name) => `${name} --version && echo ${name}`],
  [/^gem/, (name) => `gem list --exact ${name}`],
];

/** The part of a name that a package and its product share: `acme` for `Acme.js`. */
const baseNameOf = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, "")
    .replace(/(js|py)$/, "");

/** A candidate for installing exactly the product, proved by its package manager; null if the docs don't name the command. */
export function installCandidate(source: ProposalSource): Candidate | null {
  const pages = source.readme ? [source.readme, ...source.pages] : source.pages;
  const installs = pages.flatMap((page) => findInstall(page, source.product) ?? []);
  // Extras such as `acme[async]` are not needed at first, and Homebrew isn't everywhere.
  const isPlain = ({ quote, manager }: Install) => !quote.includes("[") && !manager.startsWith("brew");
  const best = installs.find(isPlain) ?? installs[0];
  return best === undefined ? null : toCandidate(source, best);
}

/** Titles of pages that show the first use of the product. */
const firstUse = /^(quick-? ?start|getting started|first steps|tutorial|usage)\b/i;

/** How many headings of such a page may be about the first use. */
const maxFirstHeadings = 4;

/** The first thing that the docs do with the product, if a heading says it. */
function findFirstTask(source: ProposalSource): Phrase | null {
  const isName = nameTest(source.pages.map(({ markdown }) => markdown));
  const page = listPages(source).find(({ title }) => firstUse.test(title));
  const headings = page?.headings.slice(0, maxFirstHeadings) ?? [];
  const phrases = headings.flatMap(({ text }) => toPhrase(plainText(text), isName) ?? []);
  const isFirstTask = (phrase: Phrase) =>
    phrase.verb !== "install" && !isNamedIn(source.product, phrase.rest) && isClear(phrase);
  return phrases.find(isFirstTask) ?? null;
}

/** A command that installs the product, and where docs name it. */
type Install = { url: string; line: number; quote: string; manager: string; name: string };

function findInstall({ url, markdown }: ProposalPage, product: string): Install | null {
  for (const [index, line] of markdown.split("\n").entries()) {
    const { quote, manager, name } = installCommand.exec(line.slice(0, 500))?.groups ?? {};
    if (quote && manager && name && baseNameOf(name) === baseNameOf(product))
      return { url, line: index + 1, quote, manager, name };
  }
  return null;
}

function toCandidate(source: ProposalSource, { url, line, quote, manager, name }: Install): Candidate {
  const { product, docsUrl } = source;
  const { verb, rest } = findFirstTask(source) ?? { verb: "show", rest: "with a minimal example that it works" };
  const task = `${verb} ${rest}`;
  const [, toProof] = proofs.find(([pattern]) => pattern.test(manager)) ?? [];
  return {
    score: 6,
    proposal: {
      title: `Install ${plainText(product)} and ${task}`,
      text: `Install ${product} in this workspace and ${task}. Put the commands and code with their output into solution.md.`,
      endGoal: `${product} is installed, and solution.md has the commands and code that it takes to ${task}, with their output and without an error.`,
      additionalUrls: [{ url: docsUrl }],
      tags: ["onboard"],
      declaredChecks: toProof === undefined ? [] : [{ command: toProof(name), contains: name }],
      checksNotRun: null,
      hints: [],
      needs: ["workspace"],
      by: "rules",
      source: { url, line, quote },
      docsOwnWords: false,
      why: "command",
    },
  };
}
