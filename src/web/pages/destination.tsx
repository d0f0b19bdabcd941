import { Type } from "@sinclair/typebox";
import type { Paged } from "../../http/paging.ts";
import { events } from "../../notifications/events.ts";
import type { Delivery, DeliveryDetail, Destination } from "../../notifications/schema.ts";
import { Fact, List } from "../components/figures.tsx";
import { ButtonForm, NewSecret, Submit } from "../components/form-parts.tsx";
import { ChoiceField, SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { Time } from "../components/when.tsx";
import { toFields } from "../form-values.ts";
import {
  DestinationStatus,
  eventLabels,
  kindLabels,
  NewDestination,
  notificationsPath,
  OnlyAdminsNote,
} from "./notifications.tsx";
import { SettingsFrame, type SettingsProps } from "./settings.tsx";

/** The fields of the form of a destination. */
export const DestinationSettings = Type.Required(Type.Pick(NewDestination, ["name", "events"]));

type DestinationProps = SettingsProps & {
  destination: Destination;
  deliveries: Paged<Delivery>;
  /** The number of deliveries that replaying everything would send. */
  missed: number;
  /** A new signing secret. It is shown only once. */
  secret?: string | null;
};

/** The recipients of the emails. null: all owners. Empty: the addresses are hidden, because the viewer isn't a person. */
const recipientsText = (recipients: string[] | null): string =>
  recipients === null ? "All owners" : recipients.join(", ") || "Some members";

/** A destination with its events and its delivery log. */
export function DestinationPage({ destination, deliveries, missed, secret, ...frame }: DestinationProps) {
  const {
    site: { base },
    typedValues,
    formError,
    mayChange,
  } = frame;
  const { id, kind, name, url, headers, recipients, overlapUntil } = destination;
  const here = `${base}${notificationsPath}/${id}`;
  const actions = [
    ["test", "Send test event", destination.status === "active"],
    [
      "replay",
      missed === 1 ? "Replay 1 missed delivery" : `Replay ${missed} missed deliveries`,
      missed > 0 && destination.status === "active",
    ],
    ["disable", "Disable", destination.status === "active"],
    ["enable", "Enable", destination.status === "disabled"],
    ["rotate", "Rotate secret", kind === "webhook"],
    ["delete", "Delete", true],
  ] as const;
  return (
    <SettingsFrame {...frame} path={notificationsPath}>
      {secret && <NewSecret id="new-secret" title="Signing secret" value={secret} />}
      <h2>{name}</h2>
      <dl class="facts">
        <Fact name={kindLabels[kind]}>{url ?? recipientsText(recipients)}</Fact>
        {headers.length > 0 && <Fact name="Headers">{headers.join(", ")}</Fact>}
        <Fact name="Status">
          <DestinationStatus destination={destination} />
        </Fact>
        {overlapUntil && (
          <Fact name="Old secret signs until">
            <Time at={overlapUntil} />
          </Fact>
        )}
      </dl>
      {mayChange && (
        <form method="post" action={`${here}/change`} class="acts">
          {actions.map(
            ([action, label, isShown]) =>
              isShown && (
                <button
                  key={action}
                  type="submit"
                  name="do"
                  value={action}
                  class={action === "delete" ? "bad" : undefined}
                >
                  {label}
                </button>
              ),
          )}
        </form>
      )}
      <h2>Deliveries</h2>
      <Deliveries here={here} {...deliveries} />
      {mayChange ? (
        <SchemaForm
          {...{
            schema: DestinationSettings,
            // The forms above also show this page again. Then the typed values don't belong to this form.
            values: typedValues?.has("name") ? typedValues : toFields(DestinationSettings, destination),
            formError,
          }}
          action={here}
        >
          <h2>Settings</h2>
          <SchemaField name="name" label="Name" required />
          <ChoiceField name="events" legend="Events" labels={eventLabels} />
          <Submit>Save</Submit>
        </SchemaForm>
      ) : (
        <OnlyAdminsNote />
      )}
    </SettingsFrame>
  );
}

/** The result of a delivery in words. If there will be another try, append its time. */
function resultOf({ status, lastStatus, failure, nextTryAt }: Delivery): string {
  const httpStatus = lastStatus === null ? "" : ` (${lastStatus})`;
  if (status === "delivered") return `Delivered${httpStatus}`;
  if (status === "failed") return failure === "exhausted" ? `Failed${httpStatus}` : `Failed: ${failure}`;
  return nextTryAt === null ? "Pending" : `Failed${httpStatus}, next try`;
}

/** A delivery can't be replayed while a try is in progress or due. */
const isReplayable = ({ status, nextTryAt }: Delivery) => status !== "pending" || nextTryAt !== null;

function Deliveries({ here, items, total }: Paged<Delivery> & { here: string }) {
  if (items.length === 0) return <p class="muted">Nothing has been sent yet.</p>;
  return (
    <>
      <List label="Deliveries" isStacked labels={["Event", "Result"]} numbers={["Tries", "Duration", "Created"]}>
        {items.map((delivery) => (
          <tr key={delivery.id}>
            <th scope="row">
              <a href={`${here}/deliveries/${delivery.id}`}>{delivery.type}</a>
            </th>
            <td data-label="Result">
              {resultOf(delivery)} {delivery.nextTryAt && <Time at={delivery.nextTryAt} />}
            </td>
            <td class="number" data-label="Tries">
              {delivery.tries}
            </td>
            <td class="number" data-label="Duration">
              {delivery.lastMs === null ? "" : `${delivery.lastMs} ms`}
            </td>
            <td class="number" data-label="Created">
              <Time at={delivery.createdAt} />
            </td>
          </tr>
        ))}
      </List>
      {total > items.length && (
        <p class="muted">
          The newest {items.length} of {total}. The REST API lists all.
        </p>
      )}
    </>
  );
}

type DeliveryProps = SettingsProps & { destination: Destination; delivery: DeliveryDetail };

/** A delivery with its payload and its tries. */
export function DeliveryPage({ destination, delivery, ...frame }: DeliveryProps) {
  const { base } = frame.site;
  const here = `${base}${notificationsPath}/${destination.id}`;
  const { type, notificationId, log, payload } = delivery;
  return (
    <SettingsFrame {...frame} path={notificationsPath}>
      <p>
        <a href={here}>{destination.name}</a>
      </p>
      <h2>
        <code>{type}</code>
      </h2>
      <p class="muted">{events[type].description}.</p>
      <dl class="facts">
        <Fact name="Result">
          {delivery.nextTryAt === null ? (
            resultOf(delivery)
          ) : (
            <>
              evald is still retrying. Next try: <Time at={delivery.nextTryAt} />
            </>
          )}
        </Fact>
        <Fact name="webhook-id">
          <code>{notificationId}</code>
        </Fact>
      </dl>
      {frame.mayChange && destination.status === "active" && isReplayable(delivery) && (
        <ButtonForm action={`${here}/deliveries/${delivery.id}/replay`}>Replay</ButtonForm>
      )}
      <h2>Tries</h2>
      {log.length === 0 && <p class="muted">None yet.</p>}
      {log.map(({ attempt, at, ms, status, body, error }) => (
        <section key={attempt}>
          <h3>
            {attempt}. {status ?? "No response"} after {ms} ms, <Time at={at} />
          </h3>
          {error && <p>{error}</p>}
          {body && (
            <pre class="wrapped">
              <code>{body}</code>
            </pre>
          )}
        </section>
      ))}
      <h2>Payload</h2>
      <pre class="wrapped">
        <code>{JSON.stringify(payload, null, 2)}</code>
      </pre>
    </SettingsFrame>
  );
}
