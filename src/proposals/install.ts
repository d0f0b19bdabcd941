import { plainText } from "../agents/markdown-links.ts";
import type { Candidate } from "./candidate.ts";
import { listPages, type ProposalPage, type ProposalSource } from "./proposal.ts";

const command =
  /(?:^|[\s`$])((npm (?:i|install|add)|pnpm add|yarn add|bun add|pip3? install|uv add|uv tool install|pipx install|brew install|cargo install|gem install)((?: -{1,2}[\w-]+)*) ["']?(@?[\w./-]+)(?:\[[\w,]*\])?["']?)(?=[\s`]|$)/;

/** What proves that a package is installed, by its package manager. */
const proofs: [RegExp, (name: string) => string][] = [
  [/^npm/, (name) => `npm ls ${name} || npm ls --global ${name}`],
  [/^pnpm/, (name) => `pnpm ls ${name}`],
  [/^(yarn|bun)/, (name) => `test -d node_modules/${name} && echo ${name}`],
  [/^pip3? /, (name) => `python3 -m pip show ${name}`],
  [/^uv add/, (name) => `uv pip show ${name}`],
  [/^(uv tool|pipx)/, (name) => `${name} --version && echo ${name}`],
  [/^(brew|cargo)/, (name) => `${name} --version && echo ${name}`],
  [/^gem/, (name) => `gem list --exact ${name}`],
];

const plain = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, "")
    .replace(/(js|py)$/, "");

/** Installing exactly the product, proved by its package manager; null if the docs don't name the command. */
export function installCandidate(source: ProposalSource): Candidate | null {
  const pages = source.readme ? [source.readme, ...source.pages] : source.pages;
  const found = pages.flatMap((page) => {
    const place = findInstall(page, source.product);
    return place === null ? [] : [{ page, place }];
  });
  // Extras such as `acme[async]` are for later.
  const best = found.find(({ place }) => !place.quote.includes("[")) ?? found[0];
  return best === undefined ? null : toCandidate(source, best.page, best.place);
}

/** The title of the page that shows the product first. */
const firstUse = /^(quick-? ?start|getting started|first steps|tutorial|usage)\b/i;

type Place = { line: number; quote: string; manager: string; name: string };

function findInstall({ markdown }: ProposalPage, product: string): Place | null {
  for (const [index, line] of markdown.split("\n").entries()) {
    const [, quote, manager, , name] = command.exec(line.slice(0, 500)) ?? [];
    if (quote && manager && name && plain(name) === plain(product)) return { line: index + 1, quote, manager, name };
  }
  return null;
}

function toCandidate(source: ProposalSource, { url }: ProposalPage, place: Place): Candidate {
  const { product, docsUrl } = source;
  // Builders put the name of the site behind the title.
  const title = listPages(source)
    .find((page) => firstUse.test(page.title))
    ?.title.split(/\s+[|–—·]\s+/)[0];
  const use =
    title === undefined
      ? "use it once, as its documentation does first"
      : `do what “${title}” in its documentation shows first`;
  const proof = proofs.find(([pattern]) => pattern.test(place.manager))?.[1](place.name);
  return {
    score: 6,
    proposal: {
      title: `Install ${plainText(product)} and use it once`,
      text: `Install ${product} in this workspace. Then ${use}, and put the commands and code with their output into solution.md.`,
      endGoal: `${product} is installed, and solution.md has the commands and code of a first use with their output, without an error.`,
      additionalUrls: [{ url: docsUrl }],
      tags: ["onboard"],
      declaredChecks: proof === undefined ? [] : [{ command: proof, contains: place.name }],
      checksNotRun: null,
      hints: [],
      needs: ["workspace"],
      by: "rules",
      source: { url, line: place.line, quote: place.quote },
      docsOwnWords: false,
      why: "command",
    },
  };
}
