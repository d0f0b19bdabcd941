import type { ProposalPage } from "./proposal.ts";

/** Deeper headings belong to the part around them. */
const maxLevel = 4;

type Heading = ProposalPage["headings"][number];

/** A part of a page under one heading, with the deeper headings in it. */
export type Part = {
  page: ProposalPage;
  heading: Heading;
  /** The headings above it, from the title of the page on. */
  above: string[];
  text: string;
  samples: ProposalPage["samples"];
};

/** The parts of a page. The first part is the text above the first heading or below the title. */
export function partsOf(page: ProposalPage): Part[] {
  const lines = page.markdown.split("\n");
  const headings = [
    { level: 1, text: titleOf(page), line: 1 },
    ...page.headings.filter(({ level }) => level <= maxLevel),
  ];
  return headings.map((heading, index) => {
    const lineOf = (end: Heading | undefined) => end?.line ?? lines.length + 1;
    const next = headings[index + 1];
    const text = lines.slice(heading.line - 1, lineOf(next) - 1).join("\n");
    // A part also has the samples of the parts below it. Only the title doesn't, because all other parts are below it.
    const sectionEnd = headings.slice(index + 1).find(({ level }) => level <= heading.level);
    const samplesEnd = lineOf(index === 0 ? next : sectionEnd);
    const samples = page.samples.filter(({ line }) => line >= heading.line && line < samplesEnd);
    return { page, heading, text, above: textsAbove(headings, index), samples };
  });
}

/** The title of a page. A page without a title has its first heading as `title`; then the words at the end of its path are used. */
function titleOf({ title, headings, url }: ProposalPage): string {
  const [first] = headings;
  if (first === undefined || first.level === 1 || first.text !== title) return title;
  return (URL.parse(url)?.pathname ?? url)
    .replace(/\.\w+$/, "")
    .split("/")
    .at(-1)!
    .replaceAll(/[-_]+/g, " ");
}

/** The title of the page and the headings above the heading at `index`; empty for the title itself. */
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
