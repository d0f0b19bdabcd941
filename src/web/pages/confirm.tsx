import { Layout } from "../components/layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

/** What a person confirms before a form deletes or spends something. */
type Confirmation = {
  /** As a question: "Remove Ada?" */
  title: string;
  /** What would be lost, changed or spent, one sentence each. */
  consequences: string[];
  buttonText: string;
  /** Where Cancel leads, without the base. */
  back: string;
  /** false: it costs money or loses nothing. */
  isDestructive?: boolean;
};

/** A form was sent that needs confirmation first. The response is a `ConfirmPage`. */
export class UnconfirmedError extends Error {
  constructor(readonly confirmation: Confirmation) {
    super(confirmation.title);
  }
}

/** Hidden field that a confirmed form carries. */
const confirmedField = "confirmed";

/** Throws UnconfirmedError for a destructive or paid form that was not confirmed. The response then asks for confirmation. */
export function requireConfirmation(form: URLSearchParams, confirmation: Confirmation): void {
  if (!form.has(confirmedField)) throw new UnconfirmedError(confirmation);
}

type Props = { site: Site; viewer?: Viewer; path: string; form: URLSearchParams; confirmation: Confirmation };

/** Asks for confirmation of a destructive or paid action. Resends the same form with the confirmation. */
export const ConfirmPage = ({
  site,
  viewer,
  path,
  form,
  confirmation: { title, consequences, buttonText, back, isDestructive = true },
}: Props) => (
  <Layout site={site} viewer={viewer} path={path} title={title}>
    <div class="confirm">
      <h1>{title}</h1>
      <ul>
        {consequences.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
      <form method="post" action={path} class="toolbar">
        {[...form].map(([name, value]) => (
          <input key={`${name} ${value}`} type="hidden" name={name} value={value} />
        ))}
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
