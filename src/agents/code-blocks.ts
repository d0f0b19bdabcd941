import { codeText } from "./entities.ts";

/**
 * A `<pre>` of a page: its text as a reader copies it, and the language that its own or its wrapper's attributes name. `isWrong`: its class
 * says that the code is wrong on purpose. `isPlain`: nothing marks it as code, as with a synopsis.
 */
export type Preformatted = { language: string | null; code: string; isWrong?: true; isPlain?: true };

/** Classes of a block and words of an info string that mark code as wrong on purpose. */
export const wrongMark =
  /(^|[\s.{_-])(bad|wrong|incorrect|invalid|broken|dont|antipattern|anti-pattern|compile_fail)($|[\s}_-])|❌|🚫/i;
const codeMark = /code|highlight|listing|snippet|brush|source|language-|lang-/i;

type Element = HTMLRewriterTypes.Element;

/** Does one thing when an element opens and another when it closes; nothing for one without content. */
export function during(element: Element, enter: () => void, leave: () => void): void {
  if (element.selfClosing || !element.canHaveContent) return;
  enter();
  element.onEndTag(leave);
}

/** Finds the code blocks of a page as it is read. */
export function onCodeBlocks(rewriter: HTMLRewriter, tell: (found: Preformatted) => void): void {
  let block: { language: string | null; code: string; isWrong: boolean; isPlain: boolean } | null = null;
  /** Elements that are open and whose text no reader copies: line numbers, buttons. */
  let silent = 0;
  /** Languages that the elements around name, outermost first. */
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
    // No selector names a parent: a page of nested elements would take time by the square.
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
