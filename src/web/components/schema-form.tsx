import type { TObject } from "@sinclair/typebox";
import { type AllHTMLAttributes, type ComponentChildren, createContext, type FormHTMLAttributes } from "preact";
import { useContext } from "preact/hooks";
import type { AppError } from "../../errors.ts";
import { capitalize } from "../../grading/text.ts";
import { nonNullSchema, schemaAt } from "../form-values.ts";
import { controlProps, Field } from "./field.tsx";

/**
 * A validation error of a form: its field, and the message to show there. `field`: empty if the error concerns the whole form. `others`: the errors
 * of other fields.
 */
export type FormError = { field: string; message: string; others?: readonly FormError[] };

/**
 * Turns an AppError into the error of a form. If the error concerns a part of a field, such as a row, its message starts with the place. `fields`:
 * the fields of the form; by default, all fields.
 */
export function toFormError(
  { field = "", detail, problem, problems }: AppError,
  fields?: readonly string[],
): FormError {
  const isOfForm = (path: string) => fields === undefined || fields.includes(path.split(".")[0] ?? "");
  if (problem === undefined || !isOfForm(field)) return { field: "", message: capitalize(detail) };
  const others = problems.filter((each) => each.field !== "" && each.field !== field && isOfForm(each.field));
  return { ...toFieldError({ field, problem }), others: others.map(toFieldError) };
}

/** Turns `declaredChecks.1.json.pointer` into an error of the field `declaredChecks`, with "Row 2, json.pointer: " before the message. */
function toFieldError({ field: fullPath, problem }: { field: string; problem: string }): FormError {
  const [field = "", ...place] = fullPath.split(".");
  const [index = "", ...inRow] = place;
  // The message already names a column, but not a field within it.
  const path = inRow.length > 1 ? `, ${inRow.join(".")}` : "";
  const row = /^\d+$/.test(index) ? `Row ${Number(index) + 1}${path}` : place.join(".");
  return { field, message: `${row && `${row}: `}${capitalize(problem)}.` };
}

type FormState = {
  schema: TObject;
  /** The values of the fields: stored values, or submitted ones. */
  values: URLSearchParams;
  formError?: FormError | null;
  /** Whether the viewer may change the fields. false: they are read-only. */
  mayChange?: boolean;
  /** The prefix of the controls' IDs, if a page has several forms with the same fields. */
  prefix?: string;
};

const FormContext = createContext<FormState | null>(null);

/** The state of the form around a field. */
export function useForm(): FormState {
  const form = useContext(FormContext);
  if (!form) throw new Error("A field of a schema was rendered outside of a form.");
  return form;
}

/** The error message of a field. */
export const errorMessageAt = ({ formError }: { formError?: FormError | null }, name: string): string | undefined =>
  formError ? [formError, ...(formError.others ?? [])].find(({ field }) => field === name)?.message : undefined;

/** Shows the error message of a group of fields. */
export function FieldError({ name, id }: { name: string; id?: string }) {
  const errorMessage = errorMessageAt(useForm(), name);
  return errorMessage ? (
    <p class="wrong" id={id}>
      {errorMessage}
    </p>
  ) : null;
}

type FormProps = FormState & FormHTMLAttributes & { children: ComponentChildren };

/** A form whose fields are described by a schema. `readForm` reads the submitted values. */
export const SchemaForm = ({
  schema,
  values,
  formError,
  mayChange = true,
  prefix = "",
  children,
  ...form
}: FormProps) => (
  <FormContext.Provider value={{ schema, values, formError, mayChange, prefix }}>
    <form method={mayChange ? "post" : "get"} {...form}>
      {children}
    </form>
  </FormContext.Provider>
);

type Option = readonly [value: string, label: string, disabled?: boolean];

type FieldProps = Omit<AllHTMLAttributes, "label" | "list"> & {
  /** The path of the field in the schema: `workspace.setup`. */
  name: string;
  label: string;
  hint?: ComponentChildren;
  /** The number of lines of a multi-line text field. */
  rows?: number;
  /** The options to select from. */
  options?: readonly Option[];
  list?: string;
};

/** A field for a text, a number or a selection, with its label, hint and error. */
export function SchemaField({ name, label, hint, rows, options, ...attributes }: FieldProps) {
  const form = useForm();
  const errorMessage = errorMessageAt(form, name);
  const value = form.values.get(name) ?? "";
  const id = `${form.prefix}${name}`;
  const props = {
    ...controlProps(name, { errorMessage, hint, id }),
    disabled: !form.mayChange,
    ...attributes,
  } as object;
  const toControl = () => {
    if (options)
      return (
        <select {...props}>
          {options.map(([each, text, disabled]) => (
            <option key={each} value={each} selected={each === value} disabled={disabled}>
              {text}
            </option>
          ))}
        </select>
      );
    if (rows)
      return (
        <textarea dir="auto" {...props} rows={rows}>
          {value}
        </textarea>
      );
    const constraints = attributes.type ? {} : constraintsOf(form.schema, name);
    return <input {...constraints} dir="auto" value={value} {...props} />;
  };
  return (
    <Field name={id} label={label} hint={hint} errorMessage={errorMessage}>
      {toControl()}
    </Field>
  );
}

/** The attributes that let the browser check a value itself. */
function constraintsOf(root: TObject, name: string): object {
  const { type, format, maxLength, minimum, maximum } = nonNullSchema(schemaAt(root, name));
  if (type === "integer" || type === "number")
    return { type: "number", min: minimum, max: maximum, step: type === "number" ? "any" : undefined };
  return { type: format === "uri" ? "url" : undefined, maxLength };
}

type CheckProps = { name: string; hint?: ComponentChildren; children: ComponentChildren };

/** A checkbox. */
export function CheckField({ name, hint, children }: CheckProps) {
  const { values, mayChange } = useForm();
  return (
    <>
      <label class="check">
        <input
          type="checkbox"
          name={name}
          checked={values.has(name)}
          disabled={!mayChange}
          aria-describedby={hint ? `${name}-hint` : undefined}
        />
        <span>{children}</span>
      </label>
      {hint && (
        <p class="hint" id={`${name}-hint`}>
          {hint}
        </p>
      )}
    </>
  );
}

type ChoiceProps = { name: string; legend: string; labels: Record<string, ComponentChildren> };

/** A choice from a closed set. If the value is a list, several can be chosen. `labels`: by value. */
export function ChoiceField({ name, legend, labels }: ChoiceProps) {
  const form = useForm();
  const isList = nonNullSchema(schemaAt(form.schema, name)).type === "array";
  const selected = form.values.getAll(name);
  const errorMessage = errorMessageAt(form, name);
  return (
    <fieldset aria-describedby={errorMessage && `${name}-wrong`}>
      <legend>{legend}</legend>
      {Object.entries(labels).map(([value, label]) => (
        <label key={value} class="check">
          <input type={isList ? "checkbox" : "radio"} name={name} value={value} checked={selected.includes(value)} />
          <span>{label}</span>
        </label>
      ))}
      <FieldError name={name} id={`${name}-wrong`} />
    </fieldset>
  );
}
