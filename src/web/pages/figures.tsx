import type { ComponentChildren } from "preact";

/** A grade as a coloured mark; a dash where there is none. */
export const GradeMark = ({ grade, big = false }: { grade: string | null; big?: boolean }) => (
  <span class={`grade grade-${(grade ?? "none").charAt(0).toLowerCase()}${big ? " big" : ""}`}>{grade ?? "–"}</span>
);

/** A share of 100 as a bar. */
export const Bar = ({ score, grade }: { score: number; grade: string }) => (
  <svg
    class={`track grade-${grade.charAt(0).toLowerCase()}`}
    viewBox="0 0 100 8"
    preserveAspectRatio="none"
    role="img"
    aria-label={`${score} of 100`}
  >
    <rect class="rest" width="100" height="8" />
    <rect class="done" width={Math.max(0, Math.min(100, score))} height="8" />
  </svg>
);

/** One line of a `dl.facts`. */
export const Fact = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

const shownEvents = 6;

/** Where an event stands in `session`, the page with the events, a little of what came before above it. */
export const toEventHref = (session: string, seq: number): string =>
  `${session}?fromSeq=${Math.max(0, seq - 3)}#e${seq}`;

/** The events that prove a statement, as links to `session`, the page with the events; null: they are no longer stored. */
export const Proof = ({ events, session }: { events: number[]; session: string | null }) => (
  <span>
    Proof:{" "}
    {events.slice(0, shownEvents).map((seq) =>
      session === null ? (
        <span key={seq}>event {seq} </span>
      ) : (
        <a key={seq} class="name" href={toEventHref(session, seq)}>
          event {seq}
        </a>
      ),
    )}
    {events.length > shownEvents && ` and ${events.length - shownEvents} more`}
  </span>
);

/** The heads of a table: columns of words, then columns of numbers. */
export const Heads = ({ words, numbers = [] }: { words: string[]; numbers?: string[] }) => (
  <thead>
    <tr>
      {words.map((head) => (
        <th key={head} scope="col">
          {head}
        </th>
      ))}
      {numbers.map((head) => (
        <th key={head} scope="col" class="number">
          {head}
        </th>
      ))}
    </tr>
  </thead>
);

/** The heads of what several runs came to together. */
export const figureHeads = ["Mean score, 95 %", "Goal reached", "Median time", "Median cost"];

/** A table that may be wider than the page: it scrolls by itself, by keyboard too. */
export const Wide = ({ label, children }: { label: string; children: ComponentChildren }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached without a mouse
  // biome-ignore lint/a11y/useSemanticElements: it is neither a landmark nor a part of a form
  <div class="wide" role="group" tabIndex={0} aria-label={label}>
    {children}
  </div>
);
