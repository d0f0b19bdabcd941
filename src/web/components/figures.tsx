import type { ComponentChildren } from "preact";
import { percent } from "../../grading/text.ts";
import { describeEvents, outcomeLabels } from "../../reports/labels.ts";
import type { Repeats } from "../../stats/repeats.ts";
import { toHref } from "./pager.tsx";
import { When } from "./when.tsx";

/** A colored grade. Without a grade, it shows nothing. */
export const GradeMark = ({ grade, big = false }: { grade: string | null; big?: boolean }) =>
  grade === null ? null : (
    <span class={`grade grade-${grade.charAt(0).toLowerCase()}${big ? " big" : ""}`}>{grade}</span>
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

type TimeFactsProps = { createdAt: string; completedAt: string | null; now: number };

/** When something was requested, and when it ended. */
export const TimeFacts = ({ createdAt, completedAt, now }: TimeFactsProps) => (
  <>
    <Fact name="Created">
      <When at={createdAt} now={now} />
    </Fact>
    {completedAt && (
      <Fact name="Completed">
        <When at={completedAt} now={now} />
      </Fact>
    )}
  </>
);

type FoldProps = { id: string; title: string; count?: number; children: ComponentChildren };

/** A section of a page that opens on demand. */
export const Fold = ({ id, title, count, children }: FoldProps) => (
  <details class="fold" id={id}>
    <summary>
      <h2>
        {title} {count !== undefined && <small>{count}</small>}
      </h2>
    </summary>
    {children}
  </details>
);

const maxEvents = 6;
/** The number of events that the session page shows before the linked one. */
const earlierEvents = 3;

/** URL of an event on the session page. */
export const toEventHref = (session: string, seq: number): string =>
  `${session}?fromSeq=${Math.max(0, seq - earlierEvents)}#e${seq}`;

/** Links to the events that support a statement. `session`: URL of the session page; null if the events are no longer stored. */
export const EvidenceLinks = ({ events, session }: { events: number[]; session: string | null }) => (
  <span>
    Evidence:{" "}
    {session === null ? (
      describeEvents(events)
    ) : (
      <>
        {events.slice(0, maxEvents).map((seq) => (
          <a key={seq} class="name" href={toEventHref(session, seq)}>
            event {seq}
          </a>
        ))}
        {events.length > maxEvents && ` and ${events.length - maxEvents} more`}
      </>
    )}
  </span>
);

/**
 * `sort`: the name of the column in the `sort` parameter, if the list can be sorted by it. `largestFirst`: whether the first click sorts in
 * descending order. That is the default for numbers.
 */
type ColumnOptions = { label: string; sort?: string; isNumber?: boolean; largestFirst?: boolean };
export type Column = string | ColumnOptions;

/** The order of a list. `by`: the column, with a leading minus for descending order. `toHref` omits the default order from the URL. */
export type Sorting = { by: string; toHref: (sort: string) => string };

/** `numbers`: right-aligned columns for numbers and buttons, after all other columns. */
type TableHeadProps = { labels: Column[]; numbers?: Column[]; sorting?: Sorting };

/** Table headings: text columns, then numeric columns. Headings of sortable columns are links. */
export const TableHead = ({ labels, numbers = [], sorting }: TableHeadProps) => (
  <thead>
    <tr>
      {labels.map(toOptions).map((column) => (
        <HeadCell key={column.label} {...{ column, sorting }} />
      ))}
      {numbers.map(toOptions).map((column) => (
        <HeadCell key={column.label} column={{ ...column, isNumber: true }} sorting={sorting} />
      ))}
    </tr>
  </thead>
);

const toOptions = (column: Column): ColumnOptions => (typeof column === "string" ? { label: column } : column);

function HeadCell({ column, sorting }: { column: ColumnOptions; sorting?: Sorting }) {
  const { label, sort, isNumber = false, largestFirst = isNumber } = column;
  const cell = { scope: "col", class: isNumber ? "number" : undefined } as const;
  if (!sorting || sort === undefined) return <th {...cell}>{label}</th>;
  const isAscending = sorting.by === sort;
  const isDescending = sorting.by === `-${sort}`;
  const isNextDescending = isAscending || (largestFirst && !isDescending);
  const order = isDescending ? "descending" : undefined;
  return (
    <th {...cell} aria-sort={isAscending ? "ascending" : order}>
      <a class="sort" href={sorting.toHref(isNextDescending ? `-${sort}` : sort)}>
        {label}
      </a>
    </th>
  );
}

/** The order of a list with this query. `defaultSort`: the order if the query has no parameter for it. */
export const toSorting = (
  here: string,
  query: { sort?: string; offset?: unknown; createdBy?: string },
  defaultSort: string,
): Sorting => ({
  by: query.sort ?? defaultSort,
  toHref: (sort) => toHref(here, { ...query, offset: undefined, sort: sort === defaultSort ? undefined : sort }),
});

/** Headings of the columns that summarize several runs. */
export const summaryColumns = ["Mean score (95% CI)", "Goal reached", "Median time", "Median agent cost"];

/** How many of the judged runs reached the goal. Other runs say nothing about the goal. */
export const goalReachedText = (rate: Repeats["successRate"]): string =>
  rate === null ? outcomeLabels.not_judged : `${percent(rate.value)} of ${rate.of} judged`;

/** A scroll area for a table that may be wider than the page. It can also be scrolled with the keyboard. */
export const ScrollArea = ({ label, children }: { label: string; children: ComponentChildren }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
  // biome-ignore lint/a11y/useSemanticElements: it is neither a landmark nor a part of a form
  <div class="scroll-area" role="group" tabIndex={0} aria-label={label}>
    {children}
  </div>
);

type ListProps = TableHeadProps & { label: string; isStacked?: boolean; children: ComponentChildren };

/** A table with column headings. `isStacked`: on phones, its rows become cards, and cells show their `data-label`. */
export const List = ({ label, isStacked, children, ...heads }: ListProps) => (
  <ScrollArea label={label}>
    <table class={isStacked ? "list stacked" : "list"}>
      <TableHead {...heads} />
      <tbody>{children}</tbody>
    </table>
  </ScrollArea>
);
