import type { ComponentChildren } from "preact";

type Props = {
  /** The name of the control in it, which has the same as its id. */
  name: string;
  label: string;
  hint?: ComponentChildren;
  wrong?: string;
  children: ComponentChildren;
};

/** A control with its label, what helps to fill it in, and what is wrong with it. */
export const Field = ({ name, label, hint, wrong, children }: Props) => (
  <div class="field">
    <label for={name}>{label}</label>
    {hint && (
      <span class="hint" id={`${name}-hint`}>
        {hint}
      </span>
    )}
    {children}
    {wrong && (
      <span class="wrong" id={`${name}-wrong`}>
        {wrong}
      </span>
    )}
  </div>
);

/** What ties a control to its field. */
export const tied = (name: string, wrong?: string) => ({
  id: name,
  name,
  "aria-invalid": wrong ? ("true" as const) : undefined,
  "aria-describedby": wrong ? `${name}-wrong` : undefined,
});
