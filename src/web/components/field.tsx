import type { ComponentChildren } from "preact";

type Props = {
  /** Name and id of the control. */
  name: string;
  label: string;
  hint?: ComponentChildren;
  wrong?: string;
  children: ComponentChildren;
};

/** A control with its label, hint and error. */
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

/** Attributes that connect a control to its label and error. */
export const controlProps = (name: string, wrong?: string) => ({
  id: name,
  name,
  "aria-invalid": wrong ? ("true" as const) : undefined,
  "aria-describedby": wrong ? `${name}-wrong` : undefined,
});
