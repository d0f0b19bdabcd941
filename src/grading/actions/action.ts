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

/** A request, in any notation. `url`: only a path if its host is unknown. `source`: as it was written; empty for a request that was only seen. */
export type RequestAction = { kind: "request"; parts: Part[]; url: string; source: string };
/** A command. `code`: the program text that it runs; null: unknown. `changes`: whether it may change anything. */
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

/** The names in a path. */
export const segmentsOf = (path: string): string[] => path.split("/").filter(Boolean);

/** The value of a part that a request has at most once; null: it has none. */
export const partOf = ({ parts }: RequestAction, role: Part["role"]): string | null =>
  parts.find((part) => part.role === role)?.value ?? null;
