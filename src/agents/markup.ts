import { during, onCodeBlocks, type Preformatted } from "./code-blocks.ts";
import { codeText, oneLine } from "./entities.ts";

/**
 * `context` is the sentence, list item, table row or definition around a link, `heading` the heading above it; empty if
 * there is none.
 */
export type DocLink = { url: string; text: string; context: string; heading: string };

/** What an HTML page contains besides its prose. */
export type Markup = {
  title: string;
  description: string;
  language: string | null;
  links: DocLink[];
  preformatted: Preformatted[];
  /** Values of `id`, and of `name` on anchors. */
  anchors: Set<string>;
  /** Whether the HTML itself names a heading or section, so that not all names are created by scripts. */
  hasHeadingIds: boolean;
  scripts: number;
  /** Whether there is an element that scripts fill: `#root`, `#app`, `#__next`. */
  mountPoint: boolean;
  asksForScript: boolean;
  asksForPassword: boolean;
  /** Characters of visible text; consecutive white space counts once. */
  textLength: number;
};

/** Reads an HTML page in one pass. `url` is its URL. */
export function harvest(html: string, url: string): Markup {
  const page: Markup = {
    title: "",
    description: "",
    language: null,
    links: [],
    preformatted: [],
    anchors: new Set(),
    hasHeadingIds: false,
    scripts: 0,
    mountPoint: false,
    asksForScript: false,
    asksForPassword: false,
    textLength: 0,
  };
  let base = url;
  let titleOpen = true;
  let hidden = 0;
  let link: { href: string; text: string; label: string; at: number } | null = null;
  const surroundings = createSurroundings();
  const endLink = () => {
    if (!link) return;
    const { href, text, label, at } = link;
    link = null;
    const address = codeText(href).trim();
    if (!URL.canParse(address, base)) return;
    const found = { url: new URL(address, base).href, text: oneLine(text) || oneLine(label), context: "", heading: "" };
    page.links.push(found);
    surroundings.place(found, at);
  };

  const rewriter = new HTMLRewriter()
    .on("html", {
      element(element) {
        page.language = element.getAttribute("lang")?.toLowerCase() || null;
      },
    })
    .on("base[href]", {
      element(element) {
        const href = codeText(element.getAttribute("href") ?? "");
        if (URL.canParse(href, url)) base = new URL(href, url).href;
      },
    })
    .on("title", {
      text(chunk) {
        if (titleOpen) page.title += chunk.text;
        if (chunk.lastInTextNode) titleOpen = page.title.trim() === "";
      },
    })
    .on("script, style, noscript, template, svg, head", {
      element(element) {
        if (element.tagName === "script") page.scripts++;
        during(
          element,
          () => hidden++,
          () => hidden--,
        );
      },
    })
    .on("noscript", {
      text(chunk) {
        page.asksForScript ||= /javascript/i.test(chunk.text);
      },
    })
    .on('input[type="password"]', {
      element() {
        page.asksForPassword = true;
      },
    })
    .on('meta[name="description"]', {
      element(element) {
        page.description ||= oneLine(element.getAttribute("content") ?? "").slice(0, 300);
      },
    })
    .on("meta[http-equiv]", {
      element(element) {
        const target = /^\s*\d+\s*[;,]\s*url\s*=\s*['"]?([^'"]+)/i.exec(
          codeText(element.getAttribute("content") ?? ""),
        )?.[1];
        if (element.getAttribute("http-equiv")?.toLowerCase() !== "refresh" || !target) return;
        if (URL.canParse(target, base))
          page.links.unshift({ url: new URL(target, base).href, text: "redirect", context: "", heading: "" });
      },
    })
    .on("[id], a[name]", {
      element(element) {
        for (const name of [element.getAttribute("id"), element.tagName === "a" ? element.getAttribute("name") : null])
          if (name) page.anchors.add(codeText(name));
        if (/^(h[1-6]|section|dt|a|article|tr|p|span|li)$/.test(element.tagName)) page.hasHeadingIds = true;
        if (/^(root|app|__next|__nuxt|___gatsby|svelte|q-app|redoc|swagger-ui)$/.test(element.getAttribute("id") ?? ""))
          page.mountPoint = true;
      },
    })
    .on("a[href]", {
      element(element) {
        endLink();
        const label = codeText(element.getAttribute("aria-label") ?? element.getAttribute("title") ?? "");
        link = { href: element.getAttribute("href") ?? "", text: "", label, at: surroundings.at() };
        if (element.canHaveContent) element.onEndTag(endLink);
        else endLink();
      },
      text(chunk) {
        if (link) link.text += chunk.text;
      },
    })
    .on(blockTags, {
      element: ({ tagName }) => surroundings.enter(tagName),
    });
  onCodeBlocks(rewriter, (found) => page.preformatted.push(found));
  rewriter
    .onDocument({
      text(chunk) {
        if (hidden > 0) return;
        page.textLength += chunk.text.replace(/\s+/g, " ").trim().length;
        surroundings.add(chunk.text);
      },
    })
    .transform(html);
  endLink();
  surroundings.end();
  page.title = oneLine(page.title);
  return page;
}

const blockTags = "p, li, dt, dd, tr, td, th, h1, h2, h3, h4, h5, h6, pre, div, section, blockquote, ul, ol, dl, table";
/** A block continues after these: the first paragraph of a list item, a definition, the cells of a row. */
const joining = /^(li|dd|tr|td|th)$/;
/**
 * Limits in characters: text of a block in which links are located, and how far to look for the sentence around a link.
 */
const maxBlock = 20_000;
const reach = 200;

/** Tracks the text of a page block by block, to find the context of each link. */
function createSurroundings() {
  let text = "";
  let heading = "";
  let inHeading = false;
  let blankFrom = 0;
  let last = "";
  let waiting: { link: DocLink; at: number; end: number }[] = [];

  function flush(): void {
    for (const { link, at, end } of waiting) link.context = sentenceAround(text, at, end);
    if (inHeading) heading = oneLine(text.slice(0, 300));
    waiting = [];
    text = "";
    inHeading = false;
  }
  return {
    /** Start of the link's text. */
    at: () => text.length,
    add(chunk: string) {
      if (text.length < maxBlock) text += chunk;
    },
    place(link: DocLink, at: number) {
      link.heading = heading;
      waiting.push({ link, at: Math.min(at, text.length), end: text.length });
    },
    enter(tag: string) {
      const goesOn =
        tag === "dd"
          ? last !== "dd"
          : /^t[dh]$/.test(tag) || (joining.test(last) && text.slice(blankFrom).trim() === "");
      const fresh = !goesOn || tag === "li" || tag === "dt" || tag === "tr";
      if (fresh) flush();
      else if (text.length < maxBlock) text += " ";
      inHeading ||= /^h[1-6]$/.test(tag);
      last = joining.test(tag) || !goesOn ? tag : last;
      blankFrom = text.length;
    },
    end: flush,
  };
}

function sentenceAround(text: string, at: number, end: number): string {
  const before = text.slice(Math.max(0, at - reach), at);
  const after = text.slice(end, end + reach);
  const begin = before.search(/[.!?。][\s)][^.!?。]*$/);
  const stop = after.search(/[.!?。](\s|$)/);
  return oneLine(
    `${begin < 0 ? before : before.slice(begin + 1)}${text.slice(at, end).slice(0, reach)}${stop < 0 ? after : after.slice(0, stop + 1)}`,
  );
}
