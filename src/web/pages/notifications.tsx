import { Type } from "@sinclair/typebox";
import { events, subscribableTypes } from "../../notifications/events.ts";
import { type Destination, DestinationInput } from "../../notifications/schema.ts";
import { OneOf } from "../../schema.ts";
import { List } from "../components/figures.tsx";
import { Submit } from "../components/form-parts.tsx";
import { ChoiceField, SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { Time } from "../components/when.tsx";
import { toFields } from "../form-values.ts";
import { SettingsFrame, type SettingsProps } from "./settings.tsx";

export const notificationsPath = "/settings/notifications";

export const kindLabels: Record<Destination["kind"], string> = { webhook: "Webhook", slack: "Slack", email: "Email" };
const disabledLabels: Record<NonNullable<Destination["disabledBecause"]>, string> = {
  request: "Disabled",
  gone: "Disabled: it returned 410",
  failing: "Disabled: all tries of a delivery failed",
};

/** Whether a destination works. If it doesn't: since when, or why. */
export function DestinationStatus({ destination }: { destination: Destination }) {
  const { disabledBecause, failingSince } = destination;
  if (disabledBecause) return <>{disabledLabels[disabledBecause]}</>;
  if (!failingSince) return <>Active</>;
  return (
    <>
      Failing since <Time at={failingSince} />
    </>
  );
}

/** The events that can be sent, with their labels. */
export const eventLabels = Object.fromEntries(
  subscribableTypes.map((type) => [
    type,
    <>
      <code>{type}</code> {events[type].description}
    </>,
  ]),
);

/** The fields of the form for a new destination. `header`: `Name: value`. */
export const NewDestination = Type.Object({
  ...Type.Pick(DestinationInput, ["kind", "url", "name"]).properties,
  header: Type.Optional(Type.String({ maxLength: 2100 })),
  events: Type.Array(OneOf(subscribableTypes)),
});

type NotificationsProps = SettingsProps & {
  destinations: Destination[];
  /** Whether EVALD_SECRET_KEY is set. Without it, no webhook or Slack channel can be added. */
  canEncrypt: boolean;
};

/** Webhooks, Slack channels and email digests of an organization, and a form to add one. */
export function NotificationsPage({ destinations, canEncrypt, ...frame }: NotificationsProps) {
  const { base } = frame.site;
  return (
    <SettingsFrame {...frame} path={notificationsPath}>
      {destinations.length === 0 ? (
        <p class="muted">
          No destinations yet. Add one to be notified of runs, gates and regressions. See{" "}
          <a href={`${base}/docs/webhooks`}>Webhooks</a>.
        </p>
      ) : (
        <List label="Destinations" isStacked labels={["Name", "Type", "Events", "Status"]}>
          {destinations.map((destination) => (
            <tr key={destination.id} class={destination.status === "disabled" ? "inactive" : undefined}>
              <th scope="row">
                <a href={`${base}${notificationsPath}/${destination.id}`}>{destination.name}</a>
              </th>
              <td data-label="Type">{kindLabels[destination.kind]}</td>
              <td data-label="Events">{destination.events.join(", ")}</td>
              <td class="when" data-label="Status">
                <DestinationStatus destination={destination} />
              </td>
            </tr>
          ))}
        </List>
      )}
      {frame.mayChange && !canEncrypt && (
        <p class="notice">
          To add webhooks and Slack channels, the operator must set <code>EVALD_SECRET_KEY</code>, which encrypts their
          secrets. Generate one with <code>openssl rand -base64 32</code>.
        </p>
      )}
      {frame.mayChange ? <DestinationForm {...frame} /> : <OnlyAdminsNote />}
    </SettingsFrame>
  );
}

export const OnlyAdminsNote = () => <p class="muted">Only admins and owners can change notifications.</p>;

const DestinationForm = ({ site, typedValues, formError }: SettingsProps) => (
  <SchemaForm
    {...{ schema: NewDestination, values: typedValues ?? toFields(NewDestination, { kind: "webhook" }), formError }}
    action={site.base + notificationsPath}
  >
    <h2>New destination</h2>
    <ChoiceField name="kind" legend="Type" labels={kindLabels} />
    <SchemaField
      name="url"
      label="URL"
      placeholder="https://ci.example.com/hooks/evald"
      hint="Of the webhook, or of the incoming webhook in Slack. Leave it blank for email, which goes to all owners."
    />
    <SchemaField name="name" label="Name" placeholder="CI" />
    <SchemaField
      name="header"
      label="Header"
      autocomplete="off"
      placeholder="Authorization: Bearer …"
      hint="Optional, for webhooks. Stored encrypted and never shown again."
    />
    <ChoiceField name="events" legend="Events" labels={eventLabels} />
    <p class="acts">
      <Submit>Add destination</Submit>
      <button type="submit" name="do" value="test">
        Send test event
      </button>
    </p>
  </SchemaForm>
);
