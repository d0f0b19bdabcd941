import { lineAfterValidStart, type ParseResult } from "./bracket-samples.ts";

/** The result for a sample of YAML. It is broken if it stays invalid without the texts of its block scalars; null if the parser may be wrong. */
export function parseYaml(code: string): ParseResult {
  const problem = yamlProblem(code);
  if (problem === null) return { broken: false };
  // The parser may be wrong about tags, anchors and multi-line flow, so samples with them are skipped. Block scalars are left out for the same
  // reason.
  const source = withoutBlockScalars(code);
  if (/[|>][+-]?[ \t]*$|(^|\s)[&*!]\w|[{[][ \t]*$|<<:|^%/m.test(source)) return null;
  const message = source === code ? problem : yamlProblem(source);
  if (message === null) return null;
  const tab = source.split("\n").findIndex((line) => /^ *\t+ *\S/.test(line));
  const isValid = (start: string) => yamlProblem(start) === null;
  return { broken: true, message, line: tab >= 0 ? tab + 1 : lineAfterValidStart(source, isValid) };
}

/** A value in quotes that is the whole value of its key or item. */
const quotedValue = /(?<=^[ \t]*(?:- +)*(?:[\w.-]+:[ \t]+|- +))(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*')(?=[ \t]*$)/gm;

/** YAML with an empty text in place of each quoted value with a template, because such a value is a text like any other. */
export const withoutQuotedTemplates = (code: string): string =>
  code.replace(quotedValue, (value) => (/\{\{|\{%/.test(value) ? '""' : value));

function yamlProblem(code: string): string | null {
  try {
    Bun.YAML.parse(code);
    return null;
  } catch (caught) {
    return caught instanceof Error ? caught.message.replace(/^YAML Parse error: /, "") : String(caught);
  }
}

/** YAML with an empty text in place of each block scalar, whose lines become empty. */
function withoutBlockScalars(code: string): string {
  let keyColumn: number | null = null;
  return code
    .split("\n")
    .map((line) => {
      if (keyColumn !== null && (line.trim() === "" || line.search(/\S/) > keyColumn)) return "";
      const isHead = /^[^#'"]*:[ \t]+[|>][+-]?[ \t]*$/.test(line);
      keyColumn = isHead ? line.search(/[^ -]/) : null;
      return isHead ? line.replace(/[|>][+-]?[ \t]*$/, '""') : line;
    })
    .join("\n");
}
