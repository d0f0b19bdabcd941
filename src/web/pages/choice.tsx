/** A prompt as it is offered in a list. */
export type PromptName = { id: string; title: string | null };

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
