import { Elysia } from "elysia";
import { destinationKinds } from "../../db/tables/notifications.ts";
import { badRequest } from "../../errors.ts";
import { getDelivery, listDeliveries, replayDelivery, testDestination } from "../../notifications/deliveries.ts";
import {
  createDestination,
  deleteDestination,
  getDestination,
  listDestinations,
  rotateDestinationSecret,
  updateDestination,
} from "../../notifications/destinations.ts";
import { subscribable } from "../../notifications/events.ts";
import type { DestinationInput } from "../../notifications/schema.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { askBefore } from "../confirmation.tsx";
import type { PageRequests } from "../page-requests.tsx";
import { DeliveryPage, DestinationPage } from "../pages/destination.tsx";
import { NotificationsPage } from "../pages/notifications.tsx";
import { type FormResult, settingsForms } from "../settings-forms.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const shownDeliveries = 50;

type Result = FormResult & { secret?: string };

/** Settings of webhooks, Slack channels and email digests, with their deliveries. */
export const notificationPages = ({ ctx }: Service, pages: PageRequests) => {
  const act = settingsForms(pages);
  const mayChange = (viewer: Viewer) => may(viewer, "notifications");

  const listPage = (viewer: Viewer, site: Site, result: Result = {}, status = 200) =>
    privateAnswer(
      "html",
      toPage(
        <NotificationsPage
          {...{ site, viewer, ...result }}
          destinations={listDestinations(ctx, viewer.org)}
          mayChange={mayChange(viewer)}
        />,
      ),
      status,
    );

  const destinationPage =
    (id: string) =>
    (viewer: Viewer, site: Site, result: Result = {}, status = 200) =>
      privateAnswer(
        "html",
        toPage(
          <DestinationPage
            {...{ site, viewer, ...result }}
            destination={getDestination(ctx, viewer.org, id)}
            deliveries={listDeliveries(ctx, viewer.org, id, {}, { limit: shownDeliveries, offset: 0 })}
            mayChange={mayChange(viewer)}
          />,
        ),
        status,
      );

  const deliveryPage =
    (id: string, deliveryId: string) =>
    (viewer: Viewer, site: Site, result: Result = {}, status = 200) =>
      privateAnswer(
        "html",
        toPage(
          <DeliveryPage
            {...{ site, viewer, ...result }}
            destination={getDestination(ctx, viewer.org, id)}
            delivery={getDelivery(ctx, viewer.org, id, deliveryId)}
            mayChange={mayChange(viewer)}
          />,
        ),
        status,
      );

  return new Elysia({ name: "notification pages" })
    .get("/settings/notifications", ({ request }) => pages.show(request, (viewer, site) => listPage(viewer, site)))
    .post("/settings/notifications", ({ request }) =>
      act(request, "notifications", listPage, (viewer, form, site) => {
        const { id, name, secret } = createDestination(ctx, viewer.org, toInput(form));
        return destinationPage(id)(viewer, site, {
          done: `“${name}” added.`,
          ...(secret !== null && { secret }),
        });
      }),
    )
    .get("/settings/notifications/:destinationId", ({ request, params }) =>
      pages.show(request, (viewer, site) => destinationPage(params.destinationId)(viewer, site)),
    )
    .post("/settings/notifications/:destinationId", ({ request, params: { destinationId: id } }) =>
      act(request, "notifications", destinationPage(id), (viewer, form, site) => {
        const events = toEvents(form);
        updateDestination(ctx, viewer.org, id, { name: form.get("name") ?? undefined, events });
        return destinationPage(id)(viewer, site, { done: "Changes saved." });
      }),
    )
    .post("/settings/notifications/:destinationId/change", ({ request, params: { destinationId: id } }) =>
      act(request, "notifications", destinationPage(id), (viewer, form, site) => {
        const { name } = getDestination(ctx, viewer.org, id);
        const show = destinationPage(id);
        switch (form.get("do")) {
          case "test":
            testDestination(ctx, viewer.org, id);
            return show(viewer, site, { done: "Test event sent. Reload the page to see the result." });
          case "enable":
            updateDestination(ctx, viewer.org, id, { status: "active" });
            return show(viewer, site, { done: "Destination enabled. You can replay failed deliveries." });
          case "disable":
            updateDestination(ctx, viewer.org, id, { status: "disabled" });
            return show(viewer, site, { done: "Destination disabled." });
          case "rotate": {
            const { secret } = rotateDestinationSecret(ctx, viewer.org, id);
            return show(viewer, site, { ...(secret !== null && { secret }) });
          }
          case "delete": {
            const asks = askBefore(pages, { request, viewer, form }, lossOf(id, name));
            if (asks) return asks;
            deleteDestination(ctx, viewer.org, id);
            return listPage(viewer, site, { done: `“${name}” deleted.` });
          }
          default:
            throw badRequest("Select one of the listed actions.");
        }
      }),
    )
    .get("/settings/notifications/:destinationId/deliveries/:deliveryId", ({ request, params }) =>
      pages.show(request, (viewer, site) => deliveryPage(params.destinationId, params.deliveryId)(viewer, site)),
    )
    .post(
      "/settings/notifications/:destinationId/deliveries/:deliveryId/replay",
      ({ request, params: { destinationId, deliveryId } }) =>
        act(request, "notifications", deliveryPage(destinationId, deliveryId), (viewer, _, site) => {
          replayDelivery(ctx, viewer.org, destinationId, deliveryId);
          return destinationPage(destinationId)(viewer, site, { done: "Event sent again." });
        }),
    );
};

const lossOf = (id: string, name: string) => ({
  title: `Delete the destination “${name}”?`,
  loses: ["Its log is deleted too, and nothing more is sent to it. This can’t be undone."],
  act: "Delete",
  back: `/settings/notifications/${id}`,
});

function toEvents(form: URLSearchParams): DestinationInput["events"] {
  const events = subscribable.filter((type) => form.getAll("event").includes(type));
  if (events.length === 0) throw badRequest("Select at least one event.");
  return events;
}

function toInput(form: URLSearchParams): DestinationInput {
  const kind = destinationKinds.find((each) => each === form.get("kind"));
  if (!kind) throw badRequest(`The type must be one of ${destinationKinds.join(", ")}.`);
  const [url, name, header] = ["url", "name", "header"].map((field) => (form.get(field) ?? "").trim());
  const [, field, value] = /^([^:\s]+):\s*(.*)$/.exec(header ?? "") ?? [];
  if (header && field === undefined) throw badRequest("A header has the form Name: value.");
  return {
    kind,
    events: toEvents(form),
    ...(name && { name }),
    ...(url && kind !== "email" && { url }),
    ...(kind === "webhook" && field !== undefined && { headers: { [field]: value ?? "" } }),
  };
}
