import type { ComponentChildren } from "preact";

type Props = {
  /** ID of the control. */
  name: string;
  label: string;
  hint?: ComponentChildren;
  errorMessage?: string;
  children: ComponentChildren;
};

/** A control with its label, hint and error. */
export const Field = ({ name, label, hint, errorMessage, children }: Props) => (
  <div class="field">
    <label for={name}>{label}</label>
    {hint && (
      <span class="hint" id={`${name}-hint`}>
        {hint}
      </span>
    )}
    {children}
    {errorMessage && (
      <span class="wrong" id={`${name}-wrong`}>
        {errorMessage}
      </span>
    )}
  </div>
);

/** Attributes that connect a control to its label, hint and error. */
export const controlProps = (
  name: string,
  { id = name, hint, errorMessage }: { id?: string; hint?: unknown; errorMessage?: string } = {},
) => ({
  id,
  name,
  "aria-invalid": errorMessage ? ("true" as const) : undefined,
  "aria-describedby": [hint && `${id}-hint`, errorMessage && `${id}-wrong`].filter(Boolean).join(" ") || undefined,
});

type TextProps = {
  name: string;
  /** Set if another form on the page has a field with the same name. */
  id?: string;
  label: string;
  type?: "text" | "email" | "password";
  value?: string;
  autocomplete: string;
  hint?: string;
  readonly?: boolean;
};

/** A required text field of a form without a schema. */
export const TextField = ({
  name,
  id = name,
  label,
  type = "text",
  value,
  autocomplete,
  hint,
  readonly,
}: TextProps) => (
  <div class="field">
    <label for={id}>{label}</label>
    <input
      {...controlProps(name, { id, hint })}
      // Preact has separate types for each kind of input.
      {...({ type, value, autocomplete } as { type: "text" })}
      readOnly={readonly}
      required
    />
    {hint && (
      <span class="hint" id={`${id}-hint`}>
        {hint}
      </span>
    )}
  </div>
);

type PasswordProps = { name?: string; id?: string; label?: string; isNew?: boolean };

/** The password of an account: the current one or a new one. */
export const PasswordField = ({ name = "password", id, label = "Password", isNew = false }: PasswordProps) => (
  <TextField
    {...{ name, id, label }}
    type="password"
    autocomplete={isNew ? "new-password" : "current-password"}
    hint={isNew ? "At least 12 characters. A phrase of several unrelated words works well." : undefined}
  />
);
