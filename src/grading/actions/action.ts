/** What a part of an action is. A name, such as a path, an option or a field, is documented; a value is the user's. */
export type Role =
  | "method"
  | "host"
  | "path"
  | "query"
  | "header"
  | "field"
  | "body"
  | "program"
  | "option"
  | "operand"
  | "variable"
  | "code";

/** One part of a request. `key` distinguishes parts of one role: the name of a header, the path of a field. */
export type Part = {
  role: "method" | "host" | "path" | "query" | "header" | "field" | "body";
  key: string;
  value: string;
};

/** A request, in any notation. */
export type RequestAction = { kind: "request"; parts: Part[]; source: string };
/** A command. `code`: the program text that it runs, if it is known. `changes`: whether it may change anything. */
export type CommandAction = {
  kind: "command";
  words: string[];
  variables: string[];
  code: string | null;
  changes: boolean;
  source: string;
};
/** Program text in a sample. */
type CodeAction = { kind: "code"; code: string; source: string };

/** What a call did, or what a sample says to do. */
export type Action = RequestAction | CommandAction | CodeAction;

/** The value of a part that a request has once. */
export const partOf = ({ parts }: RequestAction, role: Part["role"]): string | null =>
  parts.find((part) => part.role === role)?.value ?? null;
