import type { ComponentChildren } from "preact";
import { oneLine } from "../../grading/text.ts";
import { titleOf } from "../../reports/labels.ts";
import { useDay } from "./when.tsx";

/** A prompt, as needed for an option of a filter. */
export type PromptName = { id: string; title: string | null; text: string };

/** Prompts as options of a Choice. */
export const promptChoices = (prompts: PromptName[]) =>
  prompts.map((prompt) => [prompt.id, oneLine(titleOf(prompt), 60)] as const);

type Props = {
  name: string;
  label: string;
  /** Label of the empty option. Without it, a value is always selected. */
  allLabel?: string;
  value?: string;
  children: (readonly [value: string, label: string])[];
};

/** A select in a filter toolbar. */
export const Choice = ({ name, label, allLabel, value, children }: Props) => (
  <select name={name} aria-label={label}>
    {allLabel !== undefined && <option value="">{allLabel}</option>}
    {children.map(([each, label]) => (
      <option key={each} value={each} selected={each === value}>
        {label}
      </option>
    ))}
  </select>
);

type FilterProps = {
  action: string;
  /** ID of the element to replace at each `trigger`. Without it, the whole page reloads. */
  part?: string;
  trigger?: string;
  /** Label of the link that clears the filters; false hides the link. */
  clearLabel?: string | false;
  /** The order of the list, which stays the same when the list is filtered. */
  sort?: string;
  children: ComponentChildren;
};

/** The filter form above a list. */
export const Filter = ({ action, part, trigger = "change", clearLabel = false, sort, children }: FilterProps) => (
  <form class="toolbar filters" method="get" action={action} {...(part && replacePartOn(action, part, trigger))}>
    {children}
    {sort !== undefined && <input type="hidden" name="sort" value={sort} />}
    <button type="submit">Filter</button>
    {clearLabel && <a href={action}>{clearLabel}</a>}
  </form>
);

/** The first and the last day of a period. In the URL, each of them may also be a time. */
export function PeriodFields({ since, until }: { since: string | undefined; until: string | undefined }) {
  const firstDayOf = useDay();
  // A period ends before its last time: one until 2026-11-22T00:00 has 2026-11-21 as its last day.
  const lastDayOf = (time: string) => firstDayOf(new Date(Date.parse(time) - 1).toISOString());
  return (
    <>
      <label class="inline">
        From <input type="date" name="since" value={toDateField(since, firstDayOf)} />
      </label>
      <label class="inline">
        To <input type="date" name="until" value={toDateField(until, lastDayOf)} />
      </label>
    </>
  );
}

const dayLength = "2026-11-21".length;

/** The value of a date field. A day stays unchanged. A time, as in links to earlier data, becomes its day. */
function toDateField(time: string | undefined, dayOf: (iso: string) => string): string | undefined {
  if (time === undefined || time.length <= dayLength || Number.isNaN(Date.parse(time))) return time;
  return dayOf(time);
}

/** Attributes that reload only the part at each `trigger`, and not the whole page. */
const replacePartOn = (action: string, part: string, trigger: string) => ({
  "hx-get": action,
  "hx-trigger": trigger,
  "hx-target": `#${part}`,
  "hx-select": `#${part}`,
  "hx-swap": "outerHTML",
  "hx-push-url": "true",
});
