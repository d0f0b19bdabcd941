import type { ParseResult } from "./bracket-samples.ts";

/** For languages whose blocks end with `end`: how a block starts, in a line without strings and comments. */
type Blocks = { opens: RegExp; closes: RegExp; unless?: RegExp };

/** What may stand before a value. A word there is not a modifier of the statement before it. */
const valueStart = String.raw`(?:^|[=([{,;|&]|\b(?:then|do|else))[ \t]*`;
const word = (names: string) => String.raw`(?<![.:@$\w])(?:${names})(?![\w?!:]|[ \t]*=(?!=))`;

const blocksOf: Record<string, Blocks> = {
  ruby: {
    opens: new RegExp(
      [
        `${valueStart}${word("if|unless|while|until|for|case|begin")}`,
        word("class(?=[ \\t]+(?:[A-Z]|<<))|module(?=[ \\t]+[A-Z])|def(?=[ \\t]+\\S)"),
        // The `do` of a loop belongs to the word at its start.
        String.raw`(?<!^[ \t]*(?:while|until|for)\b.*)${word("do")}`,
      ].join("|"),
      "g",
    ),
    closes: new RegExp(word("end"), "g"),
    // `def area = width * height`, comments of several lines, and what follows the program.
    unless: /\bdef[ \t]+[^\s(]+(?:\([^()\n]*\))?[ \t]+=[ \t]|^(?:=begin|__END__)\b/m,
  },
  lua: {
    opens: new RegExp(`${word("function|do")}|(?<!^[ \\t]*elseif\\b.*)${word("then")}`, "g"),
    closes: new RegExp(word("end"), "g"),
  },
};

/**
 * Finds the block of Ruby or Lua that is the only one without its end. A sample with several open blocks is the start of a longer program. `text`: a
 * sample without its comments, and with underscores in place of its strings.
 */
export function findOpenBlock(language: string, text: string): ParseResult {
  const blocks = blocksOf[language];
  if (blocks === undefined || blocks.unless?.test(text)) return null;
  const open: { column: number; line: number }[] = [];
  let openCount = 0;
  /** The line of a block that, by its column, has no `end` of its own: the next one belongs to an outer block. */
  let skippedLine: number | null = null;
  const lines = text.split("\n");
  for (const [index, line] of lines.entries()) {
    const column = line.search(/\S/);
    const opened = line.match(blocks.opens)?.length ?? 0;
    const closed = line.match(blocks.closes)?.length ?? 0;
    openCount += opened - closed;
    for (let i = 0; i < opened - closed; i++) open.push({ column, line: index + 1 });
    for (let i = 0; i < closed - opened; i++) {
      const last = open.pop();
      if (last && last.column > column) {
        skippedLine ??= last.line;
        open.pop();
      }
    }
  }
  const line = skippedLine ?? open[0]?.line;
  const hasBody = line !== undefined && lines.slice(line).join("").trim() !== "";
  return openCount === 1 && hasBody ? { broken: true, message: "a block has no “end”", line } : null;
}
