// Prints what the rules propose for docs in folders, as JSON: `bun test/support/proposal-figures.ts PRODUCT=FOLDER …`. Nothing is requested.
import { Glob } from "bun";
import { languageOf } from "../../src/agents/explorer/inferred-languages.ts";
import { readPage } from "../../src/agents/page.ts";
import type { ProposalPage } from "../../src/proposals/proposal.ts";
import { proposeTasks } from "../../src/proposals/propose.ts";
import { findQuote } from "../../src/proposals/quotes.ts";

const maxPages = 60;

async function readFolder(folder: string, root: string): Promise<ProposalPage[]> {
  const names = [...new Glob("**/*.{md,mdx,html}").scanSync(folder)];
  const depthOf = (name: string) => name.split("/").length;
  const sorted = names.sort((a, b) => depthOf(a) - depthOf(b) || a.localeCompare(b)).slice(0, maxPages);
  return Promise.all(
    sorted.map(async (name) => {
      const type = name.endsWith("html") ? "text/html" : "text/markdown";
      const page = readPage(`${root}${name}`, type, await Bun.file(`${folder}/${name}`).text());
      return { ...page, samples: page.samples.map((each) => ({ ...each, language: languageOf(each) || null })) };
    }),
  );
}

/** Titles in front matter are on the page, and not in its Markdown. */
const textOf = (page: ProposalPage | undefined): string => `${page?.title}\n${page?.markdown}`;

const rows = await Promise.all(
  process.argv.slice(2).map(async (argument) => {
    const [product = "", folder = ""] = argument.split("=");
    const docsUrl = `https://docs.example.com/${product}/`;
    const pages = await readFolder(folder, docsUrl);
    const source = {
      product,
      docsUrl,
      pages,
      apiDescriptions: [],
      readme: null,
      skill: null,
      helpTexts: [],
      mcpServers: [],
    };
    const { proposals } = proposeTasks({ ...source, primaryTask: null, count: 10 });
    return proposals.map(({ title, text, endGoal, source: { quote, url } }) => {
      const match = findQuote(textOf(pages.find((page) => page.url === url)), quote);
      const isOnPage = "line" in match || match.reason === "quote_too_short";
      return { docs: product, title, text, endGoal, quote, url, isOnPage };
    });
  }),
);
console.log(JSON.stringify(rows.flat(), null, 1));
