/** A `<pre>` of a page: its text as a reader copies it, and the language that its own or its wrapper's attributes name. */
export type Preformatted = { language: string | null; code: string };

/** What is in an HTML page besides its prose. */
export type Markup = {
  title: string;
  language: string | null;
  links: { url: string; text: string }[];
  preformatted: Preformatted[];
  /** Values of `id`, and of `name` on anchors. */
  anchors: Set<string>;
  /** Some heading or part is named in the HTML itself, so that names are not only made by scripts. */
  hasHeadingIds: boolean;
  scripts: number;
  /** There is an element of the kind that scripts fill: `#root`, `#app`, `#__next`. */
  mountPoint: boolean;
  asksForScript: boolean;
  /** Characters of visible text, runs of white space counted once. */
  textLength: number;
};

type Element = HTMLRewriterTypes.Element;

/** Reads an HTML page in one pass. `url` is where it came from. */
export function harvest(html: string, url: string): Markup {
  const page: Markup = {
    title: "",
    language: null,
    links: [],
    preformatted: [],
    anchors: new Set(),
    hasHeadingIds: false,
    scripts: 0,
    mountPoint: false,
    asksForScript: false,
    textLength: 0,
  };
  let base = url;
  let titleOpen = true;
  let hidden = 0;
  let link: { href: string; text: string; label: string } | null = null;
  let block: { language: string | null; code: string; depth: number } | null = null;
  let silent = 0;
  const wrappers: (string | null)[] = [];

  const during = (element: Element, enter: () => void, leave: () => void) => {
    if (element.selfClosing || !element.canHaveContent) return;
    enter();
    element.onEndTag(leave);
  };
  const endLink = () => {
    if (!link) return;
    const { href, text, label } = link;
    link = null;
    const address = codeText(href).trim();
    if (!URL.canParse(address, base)) return;
    page.links.push({ url: new URL(address, base).href, text: oneLine(text) || oneLine(label) });
  };

  new HTMLRewriter()
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
    .on("meta[http-equiv]", {
      element(element) {
        const target = /^\s*\d+\s*[;,]\s*url\s*=\s*['"]?([^'"]+)/i.exec(
          codeText(element.getAttribute("content") ?? ""),
        )?.[1];
        if (element.getAttribute("http-equiv")?.toLowerCase() !== "refresh" || !target) return;
        if (URL.canParse(target, base)) page.links.unshift({ url: new URL(target, base).href, text: "redirect" });
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
        link = { href: element.getAttribute("href") ?? "", text: "", label };
        if (element.canHaveContent) element.onEndTag(endLink);
        else endLink();
      },
      text(chunk) {
        if (link) link.text += chunk.text;
      },
    })
    .on("div[class], figure[class], div[data-language], figure[data-language]", {
      element(element) {
        const own = languageOf(element, true);
        during(
          element,
          () => wrappers.push(own),
          () => void wrappers.pop(),
        );
      },
    })
    .on("pre", {
      element(element) {
        if (block) return;
        const own = languageOf(element, false) ?? wrappers.findLast((language) => language !== null) ?? null;
        block = { language: own, code: "", depth: 1 };
        element.onEndTag(() => {
          const code = codeText(block?.code ?? "")
            .replace(/^\n/, "")
            .trimEnd();
          const numbers = /^[\d\s]*$/.test(code);
          if (block && !numbers) page.preformatted.push({ language: block.language, code });
          block = null;
          silent = 0;
        });
      },
      text(chunk) {
        if (block && silent === 0) block.code += chunk.text;
      },
    })
    // No selector names a parent: a page of nested elements would take time by the square.
    .on("code", {
      element(element) {
        if (block) block.language ??= languageOf(element, false);
      },
    })
    .on("br", {
      element() {
        if (block) block.code += "\n";
      },
    })
    .on("button, .lineno, .linenos, .line-number, .linenumber, .hljs-ln-n, a.anchor", {
      element(element) {
        if (!block || element.tagName === "td") return;
        during(
          element,
          () => silent++,
          () => silent--,
        );
      },
    })
    .onDocument({
      text(chunk) {
        if (hidden === 0) page.textLength += chunk.text.replace(/\s+/g, " ").trim().length;
      },
    })
    .transform(html);
  endLink();
  page.title = oneLine(page.title);
  return page;
}

/** `language-js`, `lang-js`, `highlight-source-js`, `highlight-python`, `sourceCode python`, `brush: js`, `data-lang="js"`. */
function languageOf(element: Element, wrapper: boolean): string | null {
  for (const name of ["data-language", "data-lang"]) {
    const value = element.getAttribute(name)?.trim().toLowerCase();
    if (value) return value;
  }
  const name = element.getAttribute("class") ?? "";
  const match =
    /(?:^|\s)(?:language|lang|highlight-source|highlight)-([\w+#.-]+)/.exec(name)?.[1] ??
    /(?:^|\s)brush:\s*([\w+#-]+)/.exec(name)?.[1] ??
    /(?:^|\s)sourceCode\s+([\w+#-]+)/.exec(name)?.[1] ??
    (wrapper ? undefined : /^(?:rust|programlisting\s+(\w+))\b/.exec(name)?.[0]?.split(/\s+/).at(-1));
  return match && !/^(text-wrap|default|wrapper|container|notranslate|none)$/.test(match) ? match.toLowerCase() : null;
}

const oneLine = (raw: string) => codeText(raw).replace(/\s+/g, " ").trim();

/** The named references that are common in text; numeric ones are decoded whatever they are. */
const named: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  copy: "©",
  reg: "®",
  trade: "™",
  hellip: "…",
  mdash: "—",
  ndash: "–",
  lsquo: "‘",
  rsquo: "’",
  ldquo: "“",
  rdquo: "”",
  laquo: "«",
  raquo: "»",
  bull: "•",
  middot: "·",
  para: "¶",
  sect: "§",
  times: "×",
  rarr: "→",
  larr: "←",
  uarr: "↑",
  darr: "↓",
  le: "≤",
  ge: "≥",
  ne: "≠",
  equals: "=",
  num: "#",
  lbrace: "{",
  lcub: "{",
  rbrace: "}",
  rcub: "}",
  lsqb: "[",
  rsqb: "]",
  lpar: "(",
  rpar: ")",
  colon: ":",
  comma: ",",
  period: ".",
  sol: "/",
  bsol: "\\",
  grave: "`",
  ast: "*",
  lowbar: "_",
  dollar: "$",
  percnt: "%",
  plus: "+",
  vert: "|",
  tab: "\t",
  Tab: "\t",
  NewLine: "\n",
  auml: "ä",
  ouml: "ö",
  uuml: "ü",
  Auml: "Ä",
  Ouml: "Ö",
  Uuml: "Ü",
  szlig: "ß",
  eacute: "é",
  egrave: "è",
  ecirc: "ê",
  agrave: "à",
  aacute: "á",
  acirc: "â",
  ccedil: "ç",
  iacute: "í",
  oacute: "ó",
  uacute: "ú",
  ntilde: "ñ",
};

/** Decodes character references. A no-break space becomes a plain one, as it does for whoever copies it. */
export function codeText(raw: string): string {
  return raw
    .replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z]+));/g, (whole, decimal, hex, name) => {
      if (name) return named[name] ?? whole;
      const point = decimal ? Number(decimal) : Number.parseInt(hex, 16);
      return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : whole;
    })
    .replaceAll(" ", " ");
}
