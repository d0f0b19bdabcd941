import { decodeEntities } from "./entities.ts";
import { isLanguageName } from "./languages.ts";

/**
 * A code block of a page: a `<pre>`, or a `<code>` whose style keeps its lines. `code`: its text as a reader would copy it. `language`: the language
 * that its attributes or its wrapper's attributes name. `isWrong`: its class marks the code as intentionally wrong. `isDiff`: it marks lines as
 * removed, which are empty in its code. `isPlain`: nothing marks it as code, as in a synopsis.
 */
export type CodeBlock = { language: string | null; code: string; isWrong?: true; isDiff?: true; isPlain?: true };

/** Classes of a block, and words of an info string, that mark code as intentionally wrong. */
export const wrongMark =
  /(^|[\s.{_-])(bad|wrong|incorrect|invalid|broken|dont|antipattern|anti-pattern|compile_fail)($|[\s}_-])|❌|🚫/i;
const codeMark = /code|highlight|listing|snippet|brush|source|language-|lang-/i;

/** A style that shows line breaks as they are in the source. */
const keepsLines = /(?:^|;)\s*white-space:\s*(?:pre|break-spaces)/i;

type Element = HTMLRewriterTypes.Element;

/** Runs one function when an element opens and another when it closes; neither for an element without content. */
export function onContent(element: Element, enter: () => void, leave: () => void): void {
  if (element.selfClosing || !element.canHaveContent) return;
  enter();
  element.onEndTag(leave);
}

type OpenBlock = {
  tagName: string;
  language: string | null;
  code: string;
  isWrong: boolean;
  isDiff: boolean;
  isPlain: boolean;
  /** Whether its lines end with numbers that the text below it explains. */
  hasCallouts?: true;
};

type State = {
  blocks: CodeBlock[];
  open: OpenBlock | null;
  /** Open elements whose text isn't copied: line numbers, buttons and removed lines. */
  silentDepth: number;
  /** The surrounding elements, outermost first. `language`: the language that the element or one around it names. */
  wrappers: { language: string | null; classes: string }[];
};

/** Adds the code blocks of a page to `blocks` while it is parsed. */
export function onCodeBlocks(rewriter: HTMLRewriter, blocks: CodeBlock[]): void {
  const state: State = { blocks, open: null, silentDepth: 0, wrappers: [] };
  for (const [selector, enter] of Object.entries(elementHandlers))
    rewriter.on(selector, { element: (element) => enter(state, element) });
  for (const tagName of ["pre", "code"])
    rewriter.on(tagName, {
      text(chunk) {
        if (state.open?.tagName === tagName && state.silentDepth === 0) state.open.code += chunk.text;
      },
    });
}

/** Classes of line numbers, such as `ln`, `lineno` and `line-number`, and of links to a line. */
const besideCode = /(?:^|[\s_-])(?:ln(?:-n)?|line[-_]?(?:n[or]s?|num|number)|anchor)(?=\s|$)/i;

/** What each element says about code, by selector. Selectors never refer to a parent, because nested elements would take quadratic time. */
const elementHandlers: Record<string, (state: State, element: Element) => void> = {
  "div[class], figure[class], div[data-language], figure[data-language]": (state, element) => {
    const { wrappers } = state;
    const language = languageOf(element, "wrapper") ?? wrappers.at(-1)?.language ?? null;
    const wrapper = { language, classes: element.getAttribute("class") ?? "" };
    const silence = isRemoved(state, element) ? 1 : 0;
    onContent(
      element,
      () => {
        wrappers.push(wrapper);
        state.silentDepth += silence;
      },
      () => {
        wrappers.pop();
        state.silentDepth -= silence;
      },
    );
  },
  pre: startBlock,
  code(state, element) {
    if (keepsLines.test(element.getAttribute("style") ?? "")) startBlock(state, element);
    const language = languageOf(element, "block");
    // A block may hold the same sample in several languages. Readers see only one of them at a time.
    if (state.open && language !== null && state.open.code.trim() !== "") {
      const { isWrong, tagName } = state.open;
      endBlock(state);
      state.open = { tagName, language, code: "", isWrong, isDiff: false, isPlain: false };
    }
    const { open } = state;
    if (!open) return;
    open.language ??= language;
    open.isWrong ||= wrongMark.test(element.getAttribute("class") ?? "");
    open.isPlain = false;
  },
  br({ open }) {
    if (open) open.code += "\n";
  },
  ".conum": ({ open }) => {
    if (open) open.hasCallouts = true;
  },
  "button, del, s, a[class], i[class], span[class]": (state, element) => {
    if (!state.open) return;
    const isBeside = element.tagName === "button" || besideCode.test(element.getAttribute("class") ?? "");
    if (!isRemoved(state, element) && !isBeside) return;
    onContent(
      element,
      () => state.silentDepth++,
      () => state.silentDepth--,
    );
  },
};

const removedClass = /(?:^|[\s_-])(?:removed?|deleted?|deletion|del)(?:[\s_-]|$)/i;

/** Whether an element in a block marks a removed line, which makes the block a diff. */
function isRemoved({ open }: State, element: Element): boolean {
  if (!open) return false;
  const isMarked = /^(?:del|s)$/.test(element.tagName) || removedClass.test(element.getAttribute("class") ?? "");
  open.isDiff ||= isMarked;
  return isMarked;
}

/** Numbers at the end of a line of AsciiDoc, after the comment mark that its source may have before them. */
const callouts = /(?<![ \t])[ \t]*(?:(?:\/\/|#|--|;;)[ \t]*)?(?:\(\d{1,2}\)[ \t]*){1,9}$/gm;

/** Code of AsciiDoc without the numbers that the text below it explains. */
export const withoutCallouts = (code: string): string => code.replace(callouts, "");

/** Values in class names that look like a language, but aren't one. */
const noLanguage = /^(?:text-wrap|default|wrapper|container|notranslate|none)$/;

/** `language-js`, `lang-js`, `highlight-source-js`, `sourceCode js`, `brush: js`, `mw-highlight-lang-js`, `data-lang="js"`, `highlight js`; of a block itself, also `js`. */
function languageOf(element: Element, kind: "block" | "wrapper"): string | null {
  for (const name of ["data-language", "data-lang"]) {
    const value = element.getAttribute(name)?.trim().toLowerCase();
    if (value) return value;
  }
  const classes = (element.getAttribute("class") ?? "").toLowerCase();
  const parameters = (element.getAttribute("data-syntaxhighlighter-params") ?? "").toLowerCase();
  const languageInClass =
    /(?:^|\s)(?:language|lang|highlight-source|highlight)-([\w+#.-]+)/.exec(classes)?.[1] ??
    /(?:^|\s)brush:\s*([\w+#-]+)/.exec(`${classes} ${parameters}`)?.[1] ??
    /(?:^|\s)sourcecode\s+([\w+#.-]+)/.exec(classes)?.[1];
  if (languageInClass !== undefined && !noLanguage.test(languageInClass)) return languageInClass;
  const words = [
    /-lang(?:uage)?-([\w+#]+)/.exec(classes)?.[1] ?? "",
    // `highlight hl-js`.
    ...(/(?:^|\s)highlight(?:\s|$)/.test(classes) ? (classes.match(/(?<=-)[\w+#]+(?=\s|$)/g) ?? []) : []),
    ...(kind === "block" || /(?:^|\s)highlight(?=\s|$)/.test(classes) ? classes.split(/\s+/) : []),
  ];
  return words.find(isLanguageName) ?? null;
}

function startBlock(state: State, element: Element): void {
  const { wrappers } = state;
  if (state.open) return;
  const ownClasses = element.getAttribute("class") ?? "";
  state.open = {
    tagName: element.tagName.toLowerCase(),
    language: languageOf(element, "block") ?? wrappers.at(-1)?.language ?? null,
    code: "",
    isWrong: [ownClasses, wrappers.at(-1)?.classes ?? ""].some((classes) => wrongMark.test(classes)),
    isDiff: false,
    isPlain: ![ownClasses, ...wrappers.slice(-2).map(({ classes }) => classes)].some((classes) =>
      codeMark.test(classes),
    ),
  };
  element.onEndTag(() => endBlock(state));
}

function endBlock(state: State): void {
  const { blocks, open } = state;
  state.open = null;
  state.silentDepth = 0;
  const text = decodeEntities(open?.code ?? "").replace(/^\n/, "");
  const code = (open?.hasCallouts ? withoutCallouts(text) : text).trimEnd();
  // A block of digits holds line numbers.
  if (!open || /^[\d\s]*$/.test(code)) return;
  const { language, isWrong, isDiff, isPlain } = open;
  const marks = { ...(isWrong && { isWrong }), ...(isDiff && { isDiff }) };
  blocks.push({ language, code, ...marks, ...(isPlain && language === null && { isPlain }) });
}
