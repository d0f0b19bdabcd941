import type { frictionCategories } from "../../../src/grading/kinds.ts";

/** Text contains links as `[text](href)`. */
export type Block =
  | { kind: "text"; text: string }
  | { kind: "note"; text: string }
  | { kind: "heading"; level: number; text: string }
  | { kind: "code"; language: string | null; code: string }
  | { kind: "list"; items: string[] }
  | { kind: "table"; head: string[]; rows: string[][] }
  | { kind: "image"; source: string; alt: string }
  | { kind: "tabs"; tabs: CodeTab[]; shown: number | null };

export type Code = Extract<Block, { kind: "code" }>;
/** `shown` of a block is the only tab in the response, or null if all of them are. */
type CodeTab = { name: string; language: string; code: string };
export type ForeignPage = { path: string; title: string; blocks: Block[] };

/** `language` is the language of its samples. */
export type Product = { name: string; package: string; kind: string; language: string; variable: string };

/** What replaces the normal response of a page. `raw` takes precedence over `body`. */
export type Replacement = {
  status?: number;
  headers?: Record<string, string>;
  body?: string;
  raw?: Uint8Array;
  type?: string;
  delayMs?: number;
};

type Schema = { type: string; properties?: Record<string, Schema>; required?: string[] };
type Operation = {
  operationId: string;
  parameters: { name: string; in: string; required: boolean; schema: Schema }[];
  requestBody?: { required: boolean; content: Record<string, { schema: { $ref: string } }> };
  responses: Record<string, { description: string }>;
};
export type Api = {
  openapi: string;
  info: { title: string; version: string };
  servers: { url: string }[];
  security: Record<string, string[]>[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, Record<string, string>> };
};

/** How a generator of documentation writes pages. Without one of the optional parts, it writes plain HTML. */
export type Markup = {
  name: string;
  extension: "" | "/" | ".html" | ".md" | ".htm";
  /** A markup without labels never names the language of a sample. */
  isMarkdown?: true;
  link?(text: string, href: string): string;
  text?(html: string): string;
  note?(html: string): string;
  heading?(level: number, text: string, id: string): string;
  code(language: string | null, escaped: string): string;
  table?(head: string[], rows: string[][]): string;
  tabs?(names: string[], shown: number, panels: string[]): string;
  page(parts: PageParts): string;
};

/** `head` holds the charset, the title and what a site adds; `navigation` are list items. */
type PageParts = { title: string; product: string; head: string; navigation: string; body: string };

/** A site as data. The first page is the start page; paths in `llmsTxt` and `sitemap` are null if it has no such file. */
export type ForeignSite = {
  seed: number;
  markup: Markup;
  product: Product;
  pages: ForeignPage[];
  api: Api | null;
  llmsTxt: string[] | null;
  sitemap: string[] | null;
  robotsTxt: string | null;
  goal: string;
  /** The path of the page that answers the goal. */
  answer: string;
  replacements: Map<string, Replacement>;
  /** Markdown by path, for sites that serve it next to HTML. */
  markdown: Map<string, string> | null;
  /** What a page has in its `<head>` in addition, by path. */
  head: Map<string, string>;
};

type Category = (typeof frictionCategories)[number];

/** What a report must say about a planted defect to have found it, and to have named it for what it is. */
export type Planted = {
  /** Is in the URL or the text of the friction point; empty if no page is to blame. */
  path: string;
  words: RegExp;
  categories: Category[];
  /** A text of the faulty line. With `sample`, any line of the sample with that text is right. */
  line?: string;
  sample?: true;
};

export type Defect = {
  /** Whether the documentation of the explorer says that it finds this. */
  promised: boolean;
  /** The kinds of products, in turn. Without it, any product. */
  products?: string[];
  /** The names of the only markups that can have it, or of those that can't. */
  only?: string[];
  except?: string[];
  plant(site: ForeignSite, nth: number): Planted;
};

export const pageAt = (site: ForeignSite, path: string): ForeignPage => {
  const { extension } = site.markup;
  const page = site.pages.find((each) => each.path === path || each.path === `/${path}${extension}`);
  if (!page) throw new Error(`No page ${path}`);
  return page;
};

export const answerOf = (site: ForeignSite): ForeignPage => pageAt(site, site.answer);

export const codeOf = (page: ForeignPage, language?: string): Code[] =>
  page.blocks.filter(
    (block): block is Code => block.kind === "code" && (language === undefined || block.language === language),
  );

/** Changes the first sample of the answering page in that language, or its first sample. */
export function changeCode(site: ForeignSite, language: string, change: (code: string) => string): Code {
  const page = answerOf(site);
  const sample = codeOf(page, language)[0] ?? codeOf(page)[0]!;
  const changed = change(sample.code);
  if (changed === sample.code) throw new Error(`The change did nothing to this ${language}:\n${changed}`);
  sample.code = changed;
  return sample;
}

export const capital = (text: string): string => text[0]!.toUpperCase() + text.slice(1);
export const camel = (text: string): string => text.split(/[-_ ]/).map(capital).join("");
export const idOf = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]+/g, "-");
export const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
