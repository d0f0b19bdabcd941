/** A parser's result for a sample. `line` is 1-based within the sample. `null`: unknown. */
export type Verdict = { broken: false } | { broken: true; message: string; line: number } | null;
