import type { ComponentChildren } from "preact";

/** A colored grade, or a dash if there is none. */
export const GradeMark = ({ grade, big = false }: { grade: string | null; big?: boolean }) => (
  <span class={`grade grade-${(grade ?? "none").charAt(0).toLowerCase()}${big ? " big" : ""}`}>{grade ?? "–"}</span>
);

/** A score of 100 as a bar. */
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

/** One entry of a `dl.facts`. */
export const Fact = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

const shownEvents = 6;

/** URL of an event on the session page, with a few earlier events above it. */
export const toEventHref = (session: string, seq: number): string =>
  `${session}?fromSeq=${Math.max(0, seq - 3)}#e${seq}`;

/** Links to the events that support a statement. `session`: URL of the session page; null if the events are no longer stored. */
export const Proof = ({ events, session }: { events: number[]; session: string | null }) => (
  <span>
    Evidence:{" "}
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

/** Table headings: text columns, then numeric columns. */
export const Heads = ({ labels, numbers = [] }: { labels: string[]; numbers?: string[] }) => (
  <thead>
    <tr>
      {labels.map((head) => (
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

/** Headings of the columns that summarize several runs. */
export const figureHeads = ["Mean score (95% CI)", "Goal reached", "Median time", "Median cost"];

/** Scrolls a table that is wider than the page, by keyboard as well. */
export const Wide = ({ label, children }: { label: string; children: ComponentChildren }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
  // biome-ignore lint/a11y/useSemanticElements: it is neither a landmark nor a part of a form
  <div class="wide" role="group" tabIndex={0} aria-label={label}>
    {children}
  </div>
);
