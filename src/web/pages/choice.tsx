import type { ComponentChildren } from "preact";
import { line } from "../../grading/words.ts";

/** A prompt as it is offered in a list. */
export type PromptName = { id: string; title: string | null };

/** Prompts as the children of a Choice. */
export const promptChoices = (prompts: PromptName[]) =>
  prompts.map(({ id, title }) => [id, line(title ?? id, 60)] as const);

type Props = {
  name: string;
  label: string;
  /** What choosing nothing means; without it something is always chosen. */
  all?: string;
  value?: string;
  children: (readonly [value: string, words: string])[];
};

/** One of several, in the form of a toolbar. */
export const Choice = ({ name, label, all, value, children }: Props) => (
  <select name={name} aria-label={label}>
    {all !== undefined && <option value="">{all}</option>}
    {children.map(([each, words]) => (
      <option key={each} value={each} selected={each === value}>
        {words}
      </option>
    ))}
  </select>
);

type FilterProps = {
  action: string;
  /** The id of what it filters, which is replaced at each `trigger`. Without it a whole page comes. */
  part?: string;
  trigger?: string;
  /** Whether something is chosen: `all` then leads back to everything. */
  all?: string | false;
  children: ComponentChildren;
};

/** The form over a list that says what of it is shown. */
export const Filter = ({ action, part, trigger = "change", all = false, children }: FilterProps) => (
  <form class="toolbar filters" method="get" action={action} {...(part && replacing(action, part, trigger))}>
    {children}
    <button type="submit">Filter</button>
    {all && <a href={action}>{all}</a>}
  </form>
);

const replacing = (action: string, part: string, trigger: string) => ({
  "hx-get": action,
  "hx-trigger": trigger,
  "hx-target": `#${part}`,
  "hx-select": `#${part}`,
  "hx-swap": "outerHTML",
  "hx-push-url": "true",
});
