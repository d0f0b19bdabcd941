import type { TObject } from "@sinclair/typebox";
import { type AllHTMLAttributes, type ComponentChildren, createContext, type FormHTMLAttributes } from "preact";
import { useContext } from "preact/hooks";
import type { AppError } from "../../errors.ts";
import { capitalize } from "../../grading/text.ts";
import { nonNullSchema, schemaAt } from "../form-values.ts";
import { controlProps, Field } from "./field.tsx";

/** A validation error of a form: its field, and what to show there. `field` empty: the whole form. `others`: of other fields. */
export type FormError = { field: string; message: string; others?: readonly FormError[] };

/** An AppError as the error of a form. An error of a part of a field, such as a row, starts with its place. `fields`: of the form; by default, all. */
export function toFormError(
  { field = "", detail, problem, problems }: AppError,
  fields?: readonly string[],
): FormError {
  const isOfForm = (path: string) => fields === undefined || fields.includes(path.split(".")[0] ?? "");
  if (problem === undefined || !isOfForm(field)) return { field: "", message: capitalize(detail) };
  const others = problems.filter((each) => each.field !== "" && each.field !== field && isOfForm(each.field));
  return { ...toFieldError({ field, problem }), others: others.map(toFieldError) };
}

/** `declaredChecks.1.json.pointer` is the field `declaredChecks`, with "Row 2, json.pointer: " before the message. */
function toFieldError({ field: fullPath, problem }: { field: string; problem: string }): FormError {
  const [field = "", ...place] = fullPath.split(".");
  const [index = "", ...inRow] = place;
  // The message names a column, but not a field within it.
  const path = inRow.length > 1 ? `, ${inRow.join(".")}` : "";
  const row = /^\d+$/.test(index) ? `Row ${Number(index) + 1}${path}` : place.join(".");
  return { field, message: `${row && `${row}: `}${capitalize(problem)}.` };
}

type FormState = {
  schema: TObject;
  /** What the fields contain: stored values, or those that were submitted. */
  values: URLSearchParams;
  formError?: FormError | null;
  /** false: the viewer may only read it. */
  mayChange?: boolean;
  /** Before the IDs of the controls, if a page has several forms with the same fields. */
  prefix?: string;
};

const FormContext = createContext<FormState | null>(null);

/** The form around a field. */
export function useForm(): FormState {
  const form = useContext(FormContext);
  if (!form) throw new Error("A field of a schema was rendered outside of a form.");
  return form;
}

/** What is wrong with a field. */
export const errorMessageAt = ({ formError }: { formError?: FormError | null }, name: string): string | undefined =>
  formError ? [formError, ...(formError.others ?? [])].find(({ field }) => field === name)?.message : undefined;

/** What is wrong with a group of fields. */
export function FieldError({ name, id }: { name: string; id?: string }) {
  const errorMessage = errorMessageAt(useForm(), name);
  return errorMessage ? (
    <p class="wrong" id={id}>
      {errorMessage}
    </p>
  ) : null;
}

type FormProps = FormState & FormHTMLAttributes & { children: ComponentChildren };

/** A form whose fields follow a schema: `readForm` reads what it submits. */
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
  /** Its path in the schema: `workspace.setup`. */
  name: string;
  label: string;
  hint?: ComponentChildren;
  /** Height of a text with several lines. */
  rows?: number;
  /** To select from. */
  options?: readonly Option[];
  list?: string;
};

/** A text, a number or a selection, with its label, hint and error. */
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

/** The attributes with which a browser checks a value itself. */
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

/** One or, if the value is a list, several of a closed set. `labels`: by value. */
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
