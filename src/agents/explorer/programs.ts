import type { SyntaxNode, Tree } from "@lezer/common";
import { grammars } from "./grammars.ts";
import { Fields, type Literal, toText, unknownPart, unresolved } from "./literals.ts";

export type ProgramLanguage = "script" | "python";

/**
 * A parsed sample. `variables`: for each variable, its value if the sample gives it only one. `charsLeft`: how many more characters of expressions
 * may be evaluated. It is limited, because variables can have values of exponential length.
 */
export type Program = {
  language: ProgramLanguage;
  code: string;
  tree: Tree;
  variables: Map<string, SyntaxNode | null>;
  charsLeft: number;
};

const maxDepth = 30;
/** How often each character of a sample is evaluated, on average. */
const maxEvaluations = 30;

/** Parses a sample, and finds the values of its variables. */
export function parseProgram(language: ProgramLanguage, code: string): Program {
  const tree = grammars[language].parse(code);
  const variables = new Map<string, SyntaxNode | null>();
  tree.iterate({
    enter({ name, node }) {
      const isDefinition =
        name === "VariableDefinition" || (name === "VariableName" && node.nextSibling?.name === "AssignOp");
      if (!isDefinition || node.parent?.name === "ArgList") return;
      const variable = code.slice(node.from, node.to);
      let value = node.nextSibling;
      while (value && /^(?:Equals|AssignOp|TypeAnnotation|TypeDef)$/.test(value.name)) value = value.nextSibling;
      variables.set(variable, variables.has(variable) ? null : value);
    },
  });
  return { language, code, tree, variables, charsLeft: maxEvaluations * code.length };
}

/** The arguments of a call, by position and by name. */
export function argumentsOf(program: Program, call: SyntaxNode, depth = 0): { positional: Literal[]; named: Fields } {
  const positional: Literal[] = [];
  const named = new Fields();
  const list = call.getChild("ArgList");
  for (let node = list?.firstChild ?? null; node; node = node.nextSibling) {
    if (/^[(),]$|Comment/.test(node.name)) continue;
    if (/^(?:Spread|\*\*?)$/.test(node.name)) {
      // There may be further arguments.
      named.isOpen = true;
      node = node.nextSibling ?? node;
    } else if (node.nextSibling?.name === "AssignOp") {
      const name = program.code.slice(node.from, node.to);
      node = node.nextSibling.nextSibling ?? node;
      named.set(name, literalOf(program, node, depth));
    } else positional.push(literalOf(program, node, depth));
  }
  return { positional, named };
}

/** The value of an expression, as far as the sample says. */
function literalOf(program: Program, node: SyntaxNode | null, depth: number): Literal {
  if (node === null || depth > maxDepth || program.charsLeft <= 0) return unresolved;
  program.charsLeft -= node.to - node.from;
  const text = program.code.slice(node.from, node.to);
  const inner = (child: SyntaxNode | null) => literalOf(program, child, depth + 1);
  switch (node.name) {
    case "String":
      return unquote(text);
    case "TemplateString":
    case "FormatString":
      return withoutReplacements(program, node, inner);
    case "Number":
      return Number(text.replaceAll("_", ""));
    case "UnaryExpression":
      return /^-\s*[\d.]+$/.test(text) ? Number(text.replace(/\s/g, "")) : unresolved;
    case "BooleanLiteral":
    case "Boolean":
      return /^true$/i.test(text);
    case "null":
    case "None":
      return null;
    case "ParenthesizedExpression":
    case "AwaitExpression":
      return inner(node.firstChild?.nextSibling ?? null);
    case "ArrayExpression":
      return elementsOf(node).map(inner);
    case "ObjectExpression":
      return objectOf(program, node, inner);
    case "DictionaryExpression":
      return dictionaryOf(node, inner);
    case "VariableName":
      return inner(program.variables.get(text) ?? null);
    case "BinaryExpression":
      return concatenation(program, node, inner);
    case "CallExpression":
      return resultOf(program, node, depth + 1);
    default:
      return unresolved;
  }
}

type Evaluate = (node: SyntaxNode | null) => Literal;

function unquote(text: string): string {
  const [, prefix = "", , content = ""] = /^(\w*)("""|'''|["'])([\s\S]*)\2$/.exec(text) ?? [];
  if (/r/i.test(prefix)) return content;
  return content.replace(/\\([\s\S])/g, (_, mark: string) => ({ n: "\n", t: "\t", "\n": "" })[mark] ?? mark);
}

/** The text of a template. Variables that the sample sets are replaced by their values, and anything else by `unknownPart`. */
function withoutReplacements({ code, variables }: Program, node: SyntaxNode, inner: Evaluate): string {
  let text = "";
  let end = node.from;
  for (let part = node.firstChild; part; part = part.nextSibling) {
    if (!/^(?:Interpolation|FormatReplacement)$/.test(part.name)) continue;
    const name = part.firstChild?.nextSibling ?? null;
    const isVariable = name?.name === "VariableName" && variables.has(code.slice(name.from, name.to));
    text += code.slice(end, part.from) + (isVariable ? toText(inner(name)) : unknownPart);
    end = part.to;
  }
  // A template is like a string of Python that may have several lines.
  return unquote((text + code.slice(end, node.to)).replace(/^`([\s\S]*)`$/, '"""$1"""').replace(/^f/i, ""));
}

function elementsOf(node: SyntaxNode): SyntaxNode[] {
  const elements: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling)
    if (!/^[[\](){},]$|Comment/.test(child.name)) elements.push(child);
  return elements;
}

function objectOf({ code }: Program, node: SyntaxNode, inner: Evaluate): Fields {
  const fields = new Fields();
  for (const property of node.getChildren("Property")) {
    const key = property.firstChild!;
    const value = property.lastChild!;
    const name = code.slice(key.from, key.to);
    if (key.name === "PropertyDefinition") fields.set(name, value === key ? unresolved : inner(value));
    else if (key.name === "String") fields.set(unquote(name), inner(value));
    else fields.isOpen = true;
  }
  return fields;
}

function dictionaryOf(node: SyntaxNode, inner: Evaluate): Fields {
  const fields = new Fields();
  const parts = elementsOf(node);
  const colons = parts.flatMap(({ name }, index) => (name === ":" ? [index] : []));
  for (const colon of colons) {
    const key = inner(parts[colon - 1] ?? null);
    if (typeof key === "string" && !key.includes(unknownPart)) fields.set(key, inner(parts[colon + 1] ?? null));
    else fields.isOpen = true;
  }
  // A part without a key is another dictionary, whose fields are added.
  if (parts.length > 3 * colons.length) fields.isOpen = true;
  return fields;
}

function concatenation({ code }: Program, node: SyntaxNode, inner: Evaluate): Literal {
  const [left, operator, right] = [node.firstChild, node.firstChild?.nextSibling, node.lastChild];
  const sign = operator ? code.slice(operator.from, operator.to) : "";
  if (sign === "as" || sign === "satisfies") return inner(left);
  if (sign !== "+" || !left || !right) return unresolved;
  const a = inner(left);
  const b = inner(right);
  return typeof a === "string" || typeof b === "string" ? toText(a) + toText(b) : unresolved;
}

/** The value of a call. For `JSON.stringify(value)` and `json.dumps(value)`, it is the value of the argument. For any other call, it is unknown. */
function resultOf(program: Program, node: SyntaxNode, depth: number): Literal {
  const callee = program.code.slice(node.from, node.firstChild?.to ?? node.from);
  return /^(?:JSON\.stringify|json\.dumps)$/.test(callee)
    ? (argumentsOf(program, node, depth).positional[0] ?? unresolved)
    : unresolved;
}
