import type { Viewer } from "../viewer.ts";
import { orgField } from "./layout.tsx";

/** Maximum number of rows that can be selected in a list. */
export const maxSelected = 100;

/** An action on `min` to `max` selected rows of a list. `isForm`: whether the action changes something. Only people may use such an action. */
export type BulkAction = { label: string; path: string; isForm?: boolean; min?: number; max?: number };

type Props = { base: string; viewer: Viewer; actions: BulkAction[]; hint: string };

/** Buttons over a list of rows with checkboxes. They submit the form around the list. */
export const BulkActions = ({ base, viewer, actions, hint }: Props) => (
  <div class="toolbar selection-toolbar">
    {actions.some(({ isForm }) => isForm) && <input type="hidden" name={orgField} value={viewer.org} />}
    {actions.map(({ label, path, isForm, min = 1, max = maxSelected }) => (
      <button
        key={path}
        type="submit"
        formaction={base + path}
        formmethod={isForm ? "post" : "get"}
        data-select={`${min}-${max}`}
      >
        {label}
      </button>
    ))}
    <small class="muted">{hint}</small>
  </div>
);

/** The checkbox of a row. `name`: the ID of the row. */
export const SelectRow = ({ name, label }: { name: string; label: string }) => (
  <input type="checkbox" id={`select-${name}`} name={name} value="1" aria-label={`Select ${label}`} />
);
