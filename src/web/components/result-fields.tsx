import { untestedScopes } from "../../prompts/schema.ts";
import { scopeLabels } from "../../reports/labels.ts";
import type { Draft } from "../prompt-draft.ts";
import { controlProps, Field } from "./field.tsx";

type Props = { draft: Draft; wrong?: string };

/** What CI does with the runs of a prompt, and who sees its results. */
export const ResultFields = ({ draft, wrong }: Props) => (
  <>
    <fieldset>
      <legend>CI</legend>
      <div class="pairs">
        <Field name="successScope" label="Success without a tested goal" wrong={wrong}>
          <select {...controlProps("successScope", wrong)}>
            <option value="">Never</option>
            {untestedScopes.map((scope) => (
              <option key={scope} value={scope} selected={scope === draft.successScope}>
                {scopeLabels[scope]} score
              </option>
            ))}
          </select>
        </Field>
        <Field name="successScore" label="Minimum score">
          <input
            {...controlProps("successScore")}
            type="number"
            min="0"
            max="100"
            step="any"
            value={draft.successScore}
            placeholder="80"
          />
        </Field>
      </div>
      <p class="hint">
        For clients that only look at the outcome of a run: with this score, a run whose goal was not tested succeeds.
      </p>
      <label class="check">
        <input type="checkbox" name="supersedesByDefault" checked={draft.supersedesByDefault} /> A new run over the API
        supersedes unfinished runs of the same preview
      </label>
    </fieldset>
    <fieldset>
      <legend>Publishing</legend>
      <label class="check">
        <input type="checkbox" name="reviewBeforePublishing" checked={draft.reviewBeforePublishing} /> Save reports as
        drafts until reviewed
      </label>
      <label class="check">
        <input type="checkbox" name="hasPublicBadge" checked={draft.hasPublicBadge} /> Show a badge with the latest
        score to everyone with its URL
      </label>
      <label class="check">
        <input type="checkbox" name="isOnResultsPage" checked={draft.isOnResultsPage} /> List it on the public results
        page, if the organization has one
      </label>
    </fieldset>
  </>
);
