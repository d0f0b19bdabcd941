import type { Friction } from "../../../src/grading/grade.ts";

/** What a server sends for a path; a text is HTML with status 200. */
export type Answer =
  | string
  | { status?: number; type?: string | null; headers?: Record<string, string>; body: string | Uint8Array<ArrayBuffer> };

type Category = Friction["category"];

/**
 * A small site whose start page links to `/keys`, and what a report must say about that page. `reads`: the answer is
 * found at this path, and nothing is wrong with any page. `finds`: a finding of one of these kinds names this path.
 */
export type PageCase = {
  name: string;
  /** By path. A path that isn't listed has status 404. */
  pages: Record<string, Answer | ((request: Request) => Answer)>;
  /** What the server sends for a path that doesn't exist, if not status 404. */
  missing?: (path: string) => Answer;
} & ({ reads: string } | { finds: Category[]; at?: string });

export const goal = "Rotate an API key";

/** An HTML document of the usual shape. */
export const html = (title: string, body: string, head = "", language = "en") =>
  `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><title>${title}</title>${head}</head><body>${body}</body></html>`;

/** The section that answers the goal. */
export const answer = (heading = "h2") =>
  `<${heading} id="rotate">Rotate an API key</${heading}><p>To rotate an API key, pass its ID. The old key stays valid for one hour.</p><pre><code class="language-bash">skiff keys rotate key_123</code></pre>`;

/** Sentences that say nothing about the goal. */
export const filler = (count: number) =>
  Array.from(
    { length: count },
    (_, index) => `<p>Skiff keeps a log of each delivery, and entry ${index + 1} of it tells who sent the parcel.</p>`,
  ).join("\n");
