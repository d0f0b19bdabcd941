import type { StreamParser, StringStream } from "@codemirror/streamparser";

/** How a language of braces writes comments and texts. */
type Syntax = {
  comment: RegExp;
  /** What encloses a text of several lines. */
  blockQuote?: string;
  /** What starts an expression in a text, up to a closing brace. */
  expression?: RegExp;
  /** What looks like the start of an expression, but is text. */
  escaped?: RegExp;
  /** The start of a text that continues from the next line up to a line with its name. Group: the name. */
  heredoc?: RegExp;
};

/**
 * `open`: what is open, from the outermost to the innermost: a text of one line, an expression in it, a brace in the expression, or a text or comment
 * of several lines.
 */
type State = { open: ("text" | "expression" | "brace" | "block" | "comment")[]; heredoc: string | null };

/** A tokenizer that tells code from texts and comments, line by line. */
function toTokenizer(syntax: Syntax): StreamParser<State> {
  return {
    startState: () => ({ open: [], heredoc: null }),
    token(stream, state) {
      if (stream.sol() && state.open.at(-1) === "text") state.open = [];
      if (state.heredoc !== null) return readHeredoc(stream, state);
      const inner = state.open.at(-1);
      if (inner === "text") return readText(stream, state, syntax);
      if (inner === "block") return readUpTo(stream, state, syntax.blockQuote!, "string");
      if (inner === "comment") return readUpTo(stream, state, "*/", "comment");
      return readCode(stream, state, syntax);
    },
  };
}

function readHeredoc(stream: StringStream, state: State): string {
  const [end = "", name] = /^\s*(\w+)/.exec(stream.string) ?? [];
  if (stream.sol() && name === state.heredoc) {
    state.heredoc = null;
    stream.match(end);
  } else stream.skipToEnd();
  return "string";
}

function readUpTo(stream: StringStream, { open }: State, end: string, style: string): string {
  if (stream.skipTo(end)) {
    stream.match(end);
    open.pop();
  } else stream.skipToEnd();
  return style;
}

function readText(stream: StringStream, { open }: State, { expression, escaped }: Syntax): string {
  if (escaped && stream.match(escaped)) return "string";
  if (expression && stream.match(expression)) open.push("expression");
  else if (stream.next() === "\\") stream.next();
  else if (stream.current() === '"') open.pop();
  return "string";
}

function readCode(stream: StringStream, state: State, { comment, blockQuote, heredoc }: Syntax): string | null {
  const { open } = state;
  if (stream.match(comment)) {
    stream.skipToEnd();
    return "comment";
  }
  if (stream.match("/*")) open.push("comment");
  else if (blockQuote !== undefined && stream.match(blockQuote)) open.push("block");
  else if (stream.match('"')) open.push("text");
  else {
    const start = heredoc && stream.match(heredoc);
    if (start) state.heredoc = (start as RegExpMatchArray)[1]!;
    else return readSign(stream, state);
  }
  return open.at(-1) === "comment" ? "comment" : "string";
}

/** Reads one character, which may start or end something within an expression. The brace that ends the expression belongs to the text around it. */
function readSign(stream: StringStream, { open }: State): string | null {
  const char = stream.next();
  const isInExpression = open.length > 0;
  if (isInExpression && char === "{") open.push("brace");
  if (isInExpression && char === "}") return open.pop() === "expression" ? "string" : null;
  return null;
}

/** GraphQL has no block comments, but nothing else in it starts like one. */
export const graphql = toTokenizer({ comment: /^#/, blockQuote: '"""' });
export const hcl = toTokenizer({
  comment: /^(?:#|\/\/)/,
  expression: /^[$%]\{/,
  escaped: /^(?:\$\$|%%)\{/,
  heredoc: /^<<-?([A-Za-z_]\w*)[ \t]*$/,
});
