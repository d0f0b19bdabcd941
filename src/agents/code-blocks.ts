import { codeText } from "./entities.ts";

/**
 * A `<pre>` of a page: its text as a reader would copy it, and the language named by its own or its wrapper's
 * attributes. `isWrong`: its class marks the code as intentionally wrong. `isPlain`: nothing marks it as code, as in a
 * synopsis.
 */
export type Preformatted = { language: string | null; code: string; isWrong?: true; isPlain?: true };

/** Classes of a block, and words of an info string, that mark code as intentionally wrong. */
export const wrongMark =
  /(^|[\s.{_-])(bad|wrong|incorrect|invalid|broken|dont|antipattern|anti-pattern|compile_fail)($|[\s}_-])|❌|🚫/i;
const codeMark = /code|highlight|listing|snippet|brush|source|language-|lang-/i;

type Element = HTMLRewriterTypes.Element;

/** Runs one function when an element opens and another when it closes; neither for an element without content. */
export function during(element: Element, enter: () => void, leave: () => void): void {
  if (element.selfClosing || !element.canHaveContent) return;
  enter();
  element.onEndTag(leave);
}

/** Finds the code blocks of a page while it is parsed. */
export function onCodeBlocks(rewriter: HTMLRewriter, tell: (found: Preformatted) => void): void {
  let block: { language: string | null; code: string; isWrong: boolean; isPlain: boolean } | null = null;
  /** Open elements whose text isn't copied: line numbers and buttons. */
  let silent = 0;
  /** Languages named by the surrounding elements, outermost first. */
  const wrappers: { language: string | null; names: string }[] = [];

  rewriter
    .on("div[class], figure[class], div[data-language], figure[data-language]", {
      element(element) {
        const own = languageOf(element, true);
        during(
          element,
          () => wrappers.push({ language: own, names: element.getAttribute("class") ?? "" }),
          () => void wrappers.pop(),
        );
      },
    })
    .on("pre", {
      element(element) {
        if (block) return;
        const around = wrappers.findLast(({ language }) => language !== null)?.language ?? null;
        const names = [element.getAttribute("class") ?? "", wrappers.at(-1)?.names ?? ""];
        block = {
          language: languageOf(element, false) ?? around,
          code: "",
          isWrong: names.some((name) => wrongMark.test(name)),
          isPlain: ![names[0]!, ...wrappers.slice(-2).map((wrapper) => wrapper.names)].some((name) =>
            codeMark.test(name),
          ),
        };
        element.onEndTag(() => {
          const code = codeText(block?.code ?? "")
            .replace(/^\n/, "")
            .trimEnd();
          const numbers = /^[\d\s]*$/.test(code);
          if (block && !numbers) {
            const { language, isWrong, isPlain } = block;
            tell({ language, code, ...(isWrong && { isWrong }), ...(isPlain && language === null && { isPlain }) });
          }
          block = null;
          silent = 0;
        });
      },
      text(chunk) {
        if (block && silent === 0) block.code += chunk.text;
      },
    })
    // Selectors never refer to a parent, because nested elements would take quadratic time.
    .on("code", {
      element(element) {
        if (!block) return;
        block.language ??= languageOf(element, false);
        block.isWrong ||= wrongMark.test(element.getAttribute("class") ?? "");
        block.isPlain = false;
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
    });
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
