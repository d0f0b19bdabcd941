import { toMarkdown } from "./render.ts";
import {
  type Block,
  type Code,
  codeOf,
  type Defect,
  type ForeignPage,
  type ForeignSite,
  type Planted,
  pageAt,
  type Replacement,
} from "./site.ts";
import { type Parts, partsOf } from "./third-sites.ts";

/** Kinds of products whose docs show requests to an API that has a description. */
export const inShell = ["mail", "sms", "hooks", "ledger", "warehouse"];
export const inScripts = ["payments", "flags", "auth", "maps"];
export const withApi = [...inShell, ...inScripts, "queue", "vectors", "chat"];
/** Markups that don't tell the language of a sample. */
export const withoutLabels = ["html4-upper", "jsdoc"];

type Page = "install" | "auth" | "quickstart" | "errors";

/** A page in the frame of its site. */
export function framed(site: ForeignSite, title: string, body: string, head = ""): Replacement {
  const navigation = site.pages.slice(0, 6).map((page) => `<li><a href="${page.path}">${page.title}</a></li>`);
  return {
    body: site.markup.page({
      title,
      product: site.product.name,
      head: `<meta charset="utf-8"><title>${title} - ${site.product.name}</title>${head}`,
      navigation: navigation.join(""),
      body,
    }),
  };
}

/** A page of its own, without anything of its site. */
export const bare = (title: string, body: string, head = ""): Replacement => ({
  body: `<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>${title}</title>${head}</head>\n<body>${body}</body>\n</html>\n`,
});

type Respond = (site: ForeignSite, page: ForeignPage) => Replacement;

/** Another response of one of the pages that every site has, in turn. */
export const instead = (pages: Page[], responses: Respond[], rest: Omit<Planted, "path">, promised = true): Defect => ({
  promised,
  plant(site, nth) {
    const page = partsOf(site)[pages[nth % pages.length]!];
    site.replacements.set(page.path, responses[nth % responses.length]!(site, page));
    return { path: page.path, ...rest };
  },
});

export const answerPage = (site: ForeignSite): ForeignPage => pageAt(site, site.answer);

/** A line of a sample that nothing before it on the answering page has. */
export function lineOf(site: ForeignSite, sample: Code): string | undefined {
  const page = toMarkdown(answerPage(site));
  const before = page.slice(0, page.indexOf(sample.code));
  return sample.code
    .split("\n")
    .map((line) => line.trim())
    .find((line) => line.length > 8 && !before.includes(line));
}

/** Changes a sample of the section that answers the goal. */
export function changePart(
  site: ForeignSite,
  part: "sample" | "request" | "json",
  change: (code: string, parts: Parts) => string,
): Code {
  const parts = partsOf(site);
  const sample = part === "json" ? jsonOf(parts) : (parts[part] ?? parts.sample);
  const changed = change(sample.code, parts);
  if (changed === sample.code) throw new Error(`The change did nothing to this ${sample.language}:\n${changed}`);
  sample.code = changed;
  return sample;
}

const jsonOf = ({ section, sample }: Parts): Code =>
  section.find((block): block is Code => block.kind === "code" && block.language === "json") ?? sample;

/** The samples of a page, with those in tabs. */
export const allCode = (page: ForeignPage): { code: string }[] => [
  ...codeOf(page),
  ...page.blocks.flatMap((block) => (block.kind === "tabs" ? block.tabs : [])),
];

/** Takes blocks out of a page, and puts others in their place. */
export function exchange(page: ForeignPage, blocks: Block[], others: Block[]): void {
  const at = page.blocks.indexOf(blocks[0]!);
  page.blocks.splice(at, blocks.length, ...others);
}

/** Removes a page, and all links to it. */
export function removePage(site: ForeignSite, { path }: ForeignPage): void {
  const target = `](${path})`;
  site.pages = site.pages.filter((page) => page.path !== path);
  site.llmsTxt = site.llmsTxt?.filter((each) => each !== path) ?? null;
  site.sitemap = site.sitemap?.filter((each) => each !== path) ?? null;
  for (const { blocks } of site.pages)
    for (const block of blocks) {
      if (block.kind === "list") block.items = block.items.filter((item) => !item.includes(target));
      if (block.kind === "text" && block.text.includes(target)) block.text = "That is all. Have fun.";
    }
}
