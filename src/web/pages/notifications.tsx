import { events, subscribable } from "../../notifications/events.ts";
import type { Destination } from "../../notifications/schema.ts";
import { Wide } from "../components/figures.tsx";
import { Time } from "../components/when.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { SettingsFrame } from "./settings.tsx";

export const path = "/settings/notifications";

export const kinds: Record<Destination["kind"], string> = { webhook: "Webhook", slack: "Slack", email: "Email" };
const disabledWords: Record<NonNullable<Destination["disabledBecause"]>, string> = {
  request: "Disabled",
  gone: "Disabled: it returned 410",
  failing: "Disabled: all tries of a delivery failed",
};

export type Frame = {
  site: Site;
  viewer: Viewer;
  done?: string;
  wrong?: string;
  typed?: URLSearchParams;
  mayChange: boolean;
};

export function Status({ destination }: { destination: Destination }) {
  const { disabledBecause, failingSince } = destination;
  if (disabledBecause) return <>{disabledWords[disabledBecause]}</>;
  if (!failingSince) return <>Active</>;
  return (
    <>
      Failing since <Time at={failingSince} />
    </>
  );
}

export function EventChoice({ held }: { held: readonly string[] }) {
  return (
    <fieldset>
      <legend>Events</legend>
      {subscribable.map((type) => (
        <label key={type} class="check">
          <input type="checkbox" name="event" value={type} checked={held.includes(type)} />
          <span>
            <code>{type}</code> {events[type].description}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

/** Webhooks, Slack channels and email digests of an organization, and a form to add one. */
export function NotificationsPage({
  destinations,
  typed,
  mayChange,
  ...frame
}: Frame & { destinations: Destination[] }) {
  const { base } = frame.site;
  return (
    <SettingsFrame {...frame} path={path}>
      {destinations.length === 0 ? (
        <p class="muted">
          No destinations yet. Add one to be notified of runs, gates and regressions. See{" "}
          <a href={`${base}/docs/webhooks`}>Webhooks</a>.
        </p>
      ) : (
        <Wide label="Destinations">
          <table class="list">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Type</th>
                <th scope="col">Events</th>
                <th scope="col">Status</th>
              </tr>
            </thead>
            <tbody>
              {destinations.map((destination) => (
                <tr key={destination.id} class={destination.status === "disabled" ? "over" : undefined}>
                  <th scope="row">
                    <a href={`${base}${path}/${destination.id}`}>{destination.name}</a>
                  </th>
                  <td>{kinds[destination.kind]}</td>
                  <td>{destination.events.join(", ")}</td>
                  <td class="when">
                    <Status destination={destination} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Wide>
      )}
      {mayChange ? <NewDestination base={base} typed={typed} /> : <OnlyAdmins />}
    </SettingsFrame>
  );
}

export const OnlyAdmins = () => <p class="muted">Only admins and owners can change notifications.</p>;

function NewDestination({ base, typed }: { base: string; typed: URLSearchParams | undefined }) {
  return (
    <form method="post" action={base + path}>
      <h2>New destination</h2>
      <fieldset>
        <legend>Type</legend>
        {Object.entries(kinds).map(([kind, label]) => (
          <label key={kind} class="check">
            <input type="radio" name="kind" value={kind} checked={(typed?.get("kind") ?? "webhook") === kind} />
            <span>{label}</span>
          </label>
        ))}
      </fieldset>
      <p class="field">
        <label>
          URL
          <input
            name="url"
            type="url"
            maxLength={2000}
            value={typed?.get("url") ?? ""}
            placeholder="https://ci.example.com/hooks/evald"
            aria-describedby="url-hint"
          />
        </label>
        <span class="hint" id="url-hint">
          Of the webhook, or of the incoming webhook in Slack. Leave it blank for email, which goes to all owners.
        </span>
      </p>
      <p class="field">
        <label>
          Name <input name="name" maxLength={200} value={typed?.get("name") ?? ""} placeholder="CI" />
        </label>
      </p>
      <p class="field">
        <label>
          Header
          <input name="header" maxLength={2100} autocomplete="off" placeholder="Authorization: Bearer …" />
        </label>
        <span class="hint">Optional, for webhooks. Stored encrypted and never shown again.</span>
      </p>
      <EventChoice held={typed?.getAll("event") ?? []} />
      <button class="main" type="submit">
        Add destination
      </button>
    </form>
  );
}
