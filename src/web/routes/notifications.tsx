import { Elysia } from "elysia";
import type { JSX } from "preact";
import type { Context } from "../../context.ts";
import { badRequest, invalidField } from "../../errors.ts";
import { getDelivery, listDeliveries, replayDelivery, testDestination } from "../../notifications/deliveries.ts";
import {
  createDestination,
  deleteDestination,
  getDestination,
  listDestinations,
  rotateDestinationSecret,
  updateDestination,
  withoutAddresses,
} from "../../notifications/destinations.ts";
import type { DestinationInput } from "../../notifications/schema.ts";
import { readForm } from "../form-values.ts";
import { showPage, submitOrShowAgain } from "../page-requests.tsx";
import { requireConfirmation } from "../pages/confirm.tsx";
import { DeliveryPage, DestinationPage, DestinationSettings } from "../pages/destination.tsx";
import { NewDestination, NotificationsPage } from "../pages/notifications.tsx";
import type { FormResult } from "../pages/settings.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const maxDeliveries = 50;

type Result = FormResult & { secret?: string | null };

const listPage = (ctx: Context, viewer: Viewer, site: Site, result: Result = {}) => (
  <NotificationsPage
    {...{ site, viewer, ...result }}
    destinations={listDestinations(ctx, viewer.org)}
    mayChange={may(viewer, "notifications")}
  />
);

const visibleDestination = (ctx: Context, { org, person }: Viewer, id: string) =>
  person ? getDestination(ctx, org, id) : withoutAddresses(getDestination(ctx, org, id));

const destinationPage = (ctx: Context, viewer: Viewer, site: Site, id: string, result: Result = {}) => (
  <DestinationPage
    {...{ site, viewer, ...result }}
    destination={visibleDestination(ctx, viewer, id)}
    deliveries={listDeliveries(ctx, viewer.org, id, {}, { limit: maxDeliveries, offset: 0 })}
    mayChange={may(viewer, "notifications")}
  />
);

const deliveryPage = (
  ctx: Context,
  viewer: Viewer,
  site: Site,
  id: string,
  deliveryId: string,
  result: Result = {},
) => (
  <DeliveryPage
    {...{ site, viewer, ...result }}
    destination={getDestination(ctx, viewer.org, id)}
    delivery={getDelivery(ctx, viewer.org, id, deliveryId)}
    mayChange={may(viewer, "notifications")}
  />
);

/** Handles a form of a destination. When that fails, its page shows the error. */
const submitDestination = (
  ctx: Context,
  request: Request,
  id: string,
  handle: (viewer: Viewer, form: URLSearchParams, site: Site) => JSX.Element,
) =>
  submitOrShowAgain(
    ctx,
    request,
    "notifications",
    (_, viewer, site, result) => destinationPage(ctx, viewer, site, id, result),
    handle,
  );

/** Settings of webhooks, Slack channels and email digests, with their deliveries. */
export const notificationPages = (ctx: Context) =>
  new Elysia({ name: "notification pages" })
    .get("/settings/notifications", ({ request }) =>
      showPage(ctx, request, (viewer, site) => listPage(ctx, viewer, site)),
    )
    .post("/settings/notifications", ({ request }) =>
      submitOrShowAgain(ctx, request, "notifications", listPage, (viewer, form, site) => {
        const { id, name, secret } = createDestination(ctx, viewer.org, toInput(form));
        return destinationPage(ctx, viewer, site, id, { successMessage: `“${name}” added.`, secret });
      }),
    )
    .get("/settings/notifications/:destinationId", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) => destinationPage(ctx, viewer, site, params.destinationId)),
    )
    .post("/settings/notifications/:destinationId", ({ request, params: { destinationId: id } }) =>
      submitDestination(ctx, request, id, (viewer, form, site) => {
        const changes = readForm(DestinationSettings, form);
        checkEvents(changes.events);
        updateDestination(ctx, viewer.org, id, changes);
        return destinationPage(ctx, viewer, site, id, { successMessage: "Changes saved." });
      }),
    )
    .post("/settings/notifications/:destinationId/change", ({ request, params: { destinationId: id } }) =>
      submitDestination(ctx, request, id, (viewer, form, site) => {
        const { name } = getDestination(ctx, viewer.org, id);
        const show = (result: Result) => destinationPage(ctx, viewer, site, id, result);
        switch (form.get("do")) {
          case "test":
            testDestination(ctx, viewer.org, id);
            return show({ successMessage: "Test event sent. Reload the page to see the result." });
          case "enable":
            updateDestination(ctx, viewer.org, id, { status: "active" });
            return show({ successMessage: "Destination enabled. You can replay failed deliveries." });
          case "disable":
            updateDestination(ctx, viewer.org, id, { status: "disabled" });
            return show({ successMessage: "Destination disabled." });
          case "rotate": {
            const { secret } = rotateDestinationSecret(ctx, viewer.org, id);
            return show({ secret });
          }
          case "delete": {
            requireConfirmation(form, {
              title: `Delete the destination “${name}”?`,
              consequences: ["Its log is deleted too, and nothing more is sent to it. This can’t be undone."],
              buttonText: "Delete",
              back: `/settings/notifications/${id}`,
            });
            deleteDestination(ctx, viewer.org, id);
            return listPage(ctx, viewer, site, { successMessage: `“${name}” deleted.` });
          }
          default:
            throw badRequest("Select one of the listed actions.");
        }
      }),
    )
    .get("/settings/notifications/:destinationId/deliveries/:deliveryId", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) =>
        deliveryPage(ctx, viewer, site, params.destinationId, params.deliveryId),
      ),
    )
    .post(
      "/settings/notifications/:destinationId/deliveries/:deliveryId/replay",
      ({ request, params: { destinationId, deliveryId } }) =>
        submitOrShowAgain(
          ctx,
          request,
          "notifications",
          (_, viewer, site, result) => deliveryPage(ctx, viewer, site, destinationId, deliveryId, result),
          (viewer, _, site) => {
            replayDelivery(ctx, viewer.org, destinationId, deliveryId);
            return destinationPage(ctx, viewer, site, destinationId, { successMessage: "Event sent again." });
          },
        ),
    );

function checkEvents({ length }: string[]): void {
  if (length === 0) throw badRequest("Select at least one event.");
}

function toInput(form: URLSearchParams): DestinationInput {
  const { kind, name, url, header = "", events } = readForm(NewDestination, form);
  const [, field, value = ""] = /^([^:\s]+):\s*(.*)$/.exec(header) ?? [];
  if (header && field === undefined) throw invalidField("header", "must have the form Name: value");
  checkEvents(events);
  return {
    kind,
    name,
    events,
    ...(kind !== "email" && { url }),
    ...(kind === "webhook" && field !== undefined && { headers: { [field]: value } }),
  };
}
