import type { ApiKey } from "../../auth/key-schema.ts";
import { TextField } from "../components/field.tsx";
import { Layout } from "../components/layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

/** What a person must confirm before a form deletes or spends something. */
type Confirmation = {
  /** As a question: "Remove Ada?" */
  title: string;
  /** What would be lost, changed or spent. Each consequence is one sentence. */
  consequences: string[];
  buttonText: string;
  /** The items that would be affected, as a list after the consequences. */
  items?: { title: string; lines: string[] };
  /** Text that the person must type, such as the name of what is deleted. */
  typed?: string;
  /** A page to visit first. The path has no base path. */
  link?: { text: string; path: string };
  /** A checkbox. The form sends its value. */
  option?: { name: string; label: string };
  /** The path that Cancel leads to, without the base path. */
  back: string;
  /** false if the action only costs money or loses nothing. */
  isDestructive?: boolean;
};

/** Thrown if a form needs confirmation first. The response is a `ConfirmPage`. */
export class UnconfirmedError extends Error {
  /** Whether the person typed a text, but not the one that was asked for. */
  readonly isMistyped: boolean;

  constructor(
    readonly confirmation: Confirmation,
    { isMistyped = false } = {},
  ) {
    super(confirmation.title);
    this.isMistyped = isMistyped;
  }
}

/** Hidden field that a form contains when it was confirmed. */
const confirmedField = "confirmed";
const typedField = "typedName";

/** Throws UnconfirmedError if a destructive or paid form was not confirmed. The response then asks for confirmation. */
export function requireConfirmation(form: URLSearchParams, confirmation: Confirmation): void {
  if (!form.has(confirmedField)) throw new UnconfirmedError(confirmation);
  const { typed } = confirmation;
  if (typed !== undefined && form.get(typedField)?.trim() !== typed.trim())
    throw new UnconfirmedError(confirmation, { isMistyped: true });
}

/** The field of the checkbox that revokes API keys. */
export const revokesKeysField = "revokeKeys";

/** The part of a confirmation about the API keys of somebody who leaves. The keys continue to work, unless they are revoked as well. */
export function keyConsequences(keys: ApiKey[]): Partial<Confirmation> {
  if (keys.length === 0) return {};
  const lastUse = ({ lastUsedAt }: ApiKey) => (lastUsedAt ? `last used ${lastUsedAt.slice(0, 10)}` : "never used");
  return {
    items: {
      title: "Active API keys, which keep working unless you revoke them",
      lines: keys.map((key) => `${key.name} (${key.display}), ${lastUse(key)}`),
    },
    option: {
      name: revokesKeysField,
      label: `Revoke ${keys.length === 1 ? "this API key" : `these ${keys.length} API keys`}`,
    },
  };
}

type Props = {
  site: Site;
  viewer?: Viewer;
  path: string;
  form: URLSearchParams;
  confirmation: Confirmation;
  isMistyped?: boolean;
};

/** Asks for confirmation of a destructive or paid action. Its button sends the same form again, with the confirmation. */
export const ConfirmPage = ({
  site,
  viewer,
  path,
  form,
  confirmation: { title, consequences, items, typed, link, option, buttonText, back, isDestructive = true },
  isMistyped = false,
}: Props) => (
  <Layout site={site} viewer={viewer} path={path} title={title}>
    <div class="confirm">
      <h1>{title}</h1>
      <ul>
        {consequences.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
      {items && (
        <>
          <h2>{items.title}</h2>
          <ul>
            {items.lines.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </>
      )}
      {link && (
        <p>
          <a href={site.base + link.path}>{link.text}</a>
        </p>
      )}
      <form method="post" action={path} class="toolbar">
        {[...form]
          .filter(([name]) => name !== confirmedField && name !== typedField)
          .map(([name, value]) => (
            <input key={`${name} ${value}`} type="hidden" name={name} value={value} />
          ))}
        {typed !== undefined && (
          <TextField
            name={typedField}
            label={`Type ${typed} to confirm`}
            autocomplete="off"
            hint={isMistyped ? `The text doesn’t match. Type ${typed}.` : undefined}
          />
        )}
        {option && (
          <label class="check">
            <input type="checkbox" name={option.name} value="1" /> {option.label}
          </label>
        )}
        <button type="submit" class={isDestructive ? "bad main" : "main"} name={confirmedField} value="1">
          {buttonText}
        </button>
        <a class="button" href={site.base + back}>
          Cancel
        </a>
      </form>
    </div>
  </Layout>
);
