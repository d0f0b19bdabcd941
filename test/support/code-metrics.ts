import { parseSync, Visitor, type VisitorObject } from "oxc-parser";

/** A function of a file. `lines` counts from its first to its last line, and `inner` counts the named functions in it, at any depth. */
type FunctionMetrics = { name: string; line: number; lines: number; inner: string[] };

/** Facts about one source file. `exports` counts exported functions, classes and constants, and `documented` those with a docstring. */
export type FileMetrics = {
  lines: number;
  functions: FunctionMetrics[];
  exports: number;
  documented: number;
  /** Exported functions that create something: `createX`. */
  factories: string[];
  /** Types of a factory's arguments: `Parts`, `XParts`. */
  partTypes: number;
  picks: number;
};

type Node = { type: string; start: number; end: number };
type Found = { name: string | null; start: number; end: number };

/** Measures a TypeScript file by its syntax tree. Throws if the file can't be parsed. */
export function measureFile(path: string, text: string): FileMetrics {
  const { program, comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const names = new Map<number, string>();
  const functions: Found[] = [];
  const add = (node: Node) => void functions.push({ name: null, start: node.start, end: node.end });
  const visitor: VisitorObject = {
    FunctionDeclaration: (node) =>
      void functions.push({ name: node.id?.name ?? null, start: node.start, end: node.end }),
    FunctionExpression: add,
    ArrowFunctionExpression: add,
    VariableDeclarator(node) {
      if (node.id.type === "Identifier" && node.init) names.set(node.init.start, node.id.name);
    },
    Property(node) {
      if (node.key.type === "Identifier" && !node.computed) names.set(node.value.start, node.key.name);
    },
    MethodDefinition(node) {
      if (node.key.type === "Identifier") names.set(node.value.start, node.key.name);
    },
  };
  new Visitor(visitor).visit(program);
  const lineOf = lineFinder(text);
  const named = functions.map((each) => ({ ...each, name: each.name ?? names.get(each.start) ?? null }));
  const isIn = (inner: Found, outer: Found) => inner !== outer && inner.start >= outer.start && inner.end <= outer.end;
  const declared = program.body.filter(
    (node) =>
      node.type === "ExportNamedDeclaration" &&
      /^(Function|Class|Variable)Declaration$/.test(node.declaration?.type ?? ""),
  );
  const docEnds = new Set(
    comments.filter(({ type, value }) => type === "Block" && value.startsWith("*")).map(({ end }) => end),
  );
  const isDocumented = ({ start }: Node) => docEnds.has(text.slice(0, start).trimEnd().length);
  const count = (pattern: RegExp) => [...text.matchAll(pattern)].length;
  return {
    lines: text.split("\n").length - 1,
    functions: named.map((outer) => ({
      name: outer.name ?? "",
      line: lineOf(outer.start),
      lines: lineOf(outer.end) - lineOf(outer.start) + 1,
      inner: named.filter((inner) => inner.name !== null && isIn(inner, outer)).map(({ name }) => name ?? ""),
    })),
    exports: declared.length,
    documented: declared.filter(isDocumented).length,
    factories: [...text.matchAll(/^export (?:async )?(?:function|const) (create[A-Z]\w*)/gm)].map(
      ([, name = ""]) => name,
    ),
    partTypes: count(/^(?:export )?type \w*(?:Parts|Options)\b/gm),
    picks: count(/\bPick</g),
  };
}

/** Returns a function that finds the line of an offset, from 1. */
function lineFinder(text: string): (offset: number) => number {
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  return (offset) => {
    let [low, high] = [0, starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] as number) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}
