/** A parser's result for a sample. `line` is 1-based within the sample. `null`: unknown. */
export type Verdict = { broken: false } | { broken: true; message: string; line: number } | null;

/** The line of an index in a text, from 1. */
export const lineAt = (code: string, index: number) => code.slice(0, index).split("\n").length;
