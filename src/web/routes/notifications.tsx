import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { AppError, badRequest, checkAll, invalidField } from "../../errors.ts";
import {
  countMissed,
  getDelivery,
  listDeliveries,
  replayDelivery,
  replayMissed,
  testDestination,
} from "../../notifications/deliveries.ts";
import {
  checkDestination,
  createDestination,
  deleteDestination,
  getDestination,
  listDestinations,
  rotateDestinationSecret,
  updateDestination,
  withoutAddresses,
} from "../../notifications/destinations.ts";
import { checkHeaders } from "../../notifications/fields.ts";
import type { DestinationInput } from "../../notifications/schema.ts";
import { tryDestination } from "../../notifications/trial.ts";
import { readForm } from "../form-values.ts";
import { showPage, submitOrShowAgain } from "../page-requests.tsx";
import { type PageOrResponse, pageResponse, seeOtherWithToast } from "../page-responses.ts";
import { requireConfirmation } from "../pages/confirm.tsx";
import { DeliveryPage, DestinationPage, DestinationSettings } from "../pages/destination.tsx";
import { NewDestination, NotificationsPage, notificationsPath } from "../pages/notifications.tsx";
import type { FormResult } from "../pages/settings.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const maxDeliveries = 50;
/** Maximum characters that are shown of the response to a test event. */
const maxShownChars = 200;

type NotificationsPageProps = FormResult & { secret?: string | null };

const listPage = (ctx: Context, viewer: Viewer, site: Site, result: NotificationsPageProps = {}) => (
  <NotificationsPage
    {...{ site, viewer, ...result }}
    destinations={listDestinations(ctx, viewer.org)}
    canEncrypt={ctx.config.secretKey !== null}
    mayChange={may(viewer, "notifications")}
  />
);

/** A destination as its page shows it. An API key doesn't see the addresses of people. */
const visibleDestination = (ctx: Context, { org, person }: Viewer, id: string) =>
  person ? getDestination(ctx, org, id) : withoutAddresses(getDestination(ctx, org, id));

const destinationPage = (ctx: Context, viewer: Viewer, site: Site, id: string, result: NotificationsPageProps = {}) => (
  <DestinationPage
    {...{ site, viewer, ...result }}
    destination={visibleDestination(ctx, viewer, id)}
    missed={countMissed(ctx, viewer.org, id)}
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
  result: NotificationsPageProps = {},
) => (
  <DeliveryPage
    {...{ site, viewer, ...result }}
    destination={getDestination(ctx, viewer.org, id)}
    delivery={getDelivery(ctx, viewer.org, id, deliveryId)}
    mayChange={may(viewer, "notifications")}
  />
);

/** Handles a form of a destination. If that fails, the page of the destination shows the error. */
const submitDestination = (
  ctx: Context,
  request: Request,
  id: string,
  handle: (viewer: Viewer, form: URLSearchParams, site: Site) => PageOrResponse,
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
        const input = toInput(ctx, viewer, form);
        if (form.get("do") === "test") return showTrial(ctx, viewer, site, { form, input });
        const { id, name, secret } = createDestination(ctx, viewer.org, input);
        return destinationPage(ctx, viewer, site, id, { successMessage: `“${name}” added.`, secret });
      }),
    )
    .get("/settings/notifications/:destinationId", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) => destinationPage(ctx, viewer, site, params.destinationId)),
    )
    .post("/settings/notifications/:destinationId", ({ request, params: { destinationId: id } }) =>
      submitDestination(ctx, request, id, (viewer, form) => {
        const changes = readForm(DestinationSettings, form);
        checkEvents(changes.events);
        updateDestination(ctx, viewer.org, id, changes);
        return seeOtherWithToast(ctx, `${notificationsPath}/${id}`, "destinationSaved");
      }),
    )
    .post("/settings/notifications/:destinationId/change", ({ request, params: { destinationId: id } }) =>
      submitDestination(ctx, request, id, (viewer, form, site) => {
        const { name } = getDestination(ctx, viewer.org, id);
        const here = `${notificationsPath}/${id}`;
        switch (form.get("do")) {
          case "test": {
            const { id: deliveryId } = testDestination(ctx, viewer.org, id);
            return seeOtherWithToast(ctx, `${here}/deliveries/${deliveryId}`, "testSent");
          }
          case "replay":
            replayMissed(ctx, viewer.org, id);
            return seeOtherWithToast(ctx, here, "deliveriesReplayed");
          case "enable":
            updateDestination(ctx, viewer.org, id, { status: "active" });
            return seeOtherWithToast(ctx, here, "destinationEnabled");
          case "disable":
            updateDestination(ctx, viewer.org, id, { status: "disabled" });
            return seeOtherWithToast(ctx, here, "destinationDisabled");
          case "rotate": {
            const { secret } = rotateDestinationSecret(ctx, viewer.org, id);
            return destinationPage(ctx, viewer, site, id, { secret });
          }
          case "delete": {
            requireConfirmation(form, {
              title: `Delete the destination “${name}”?`,
              consequences: ["Its log is deleted too, and nothing more is sent to it. This can’t be undone."],
              buttonText: "Delete",
              back: here,
            });
            deleteDestination(ctx, viewer.org, id);
            return seeOtherWithToast(ctx, notificationsPath, "destinationDeleted");
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
          (viewer) => {
            const { id } = replayDelivery(ctx, viewer.org, destinationId, deliveryId);
            return seeOtherWithToast(ctx, `${notificationsPath}/${destinationId}/deliveries/${id}`, "deliveryReplayed");
          },
        ),
    );

/** Shows the form again, together with the result of a test event. */
async function showTrial(
  ctx: Context,
  viewer: Viewer,
  site: Site,
  { form, input }: { form: URLSearchParams; input: DestinationInput },
): Promise<Response> {
  const { ok, status, ms, error, body } = await tryDestination(ctx, viewer.org, input);
  const answer = `${status === null ? "" : ` with status ${status}`} after ${ms} ms`;
  const reason = error ?? body?.slice(0, maxShownChars) ?? "";
  const page = listPage(ctx, viewer, site, {
    typedValues: form,
    ...(ok
      ? { successMessage: `Test event accepted${answer}. Nothing was saved.` }
      : { errorMessage: `The test event was not accepted: it ended${answer}. ${reason}` }),
  });
  return pageResponse(page, ok ? 200 : 400);
}

function checkEvents(events: string[]): void {
  if (events.length === 0) throw invalidField("events", "select at least one");
}

/** Parses `Name: value` into a record. Throws bad_request. */
function toHeaders(header: string): Record<string, string> | undefined {
  if (header.trim() === "") return undefined;
  const [, field, value = ""] = /^([^:\s]+):\s*(.*)$/.exec(header.trim()) ?? [];
  if (field === undefined) throw invalidField("header", "must have the form Name: value");
  return { [field]: value };
}

/** The destination that a form describes. Throws one bad_request that names all problems. */
function toInput(ctx: Context, { org }: Viewer, form: URLSearchParams): DestinationInput {
  const { kind } = readForm(Type.Pick(NewDestination, ["kind"]), form);
  const header = kind === "webhook" ? (form.get("header") ?? "") : "";
  const url = kind === "email" ? undefined : form.get("url")?.trim() || undefined;
  checkAll(
    () => void readForm(NewDestination, form),
    () => checkDestination(ctx, org, { kind, url }),
    () => void checkHeader(header),
    () => checkEvents(form.getAll("events")),
  );
  const { name, events } = readForm(NewDestination, form);
  const headers = toHeaders(header);
  return { kind, name, events, ...(url !== undefined && { url }), ...(headers && { headers }) };
}

/** Throws bad_request that names the field of the form. */
function checkHeader(header: string): void {
  try {
    checkHeaders(toHeaders(header) ?? {});
  } catch (error) {
    if (!(error instanceof AppError) || error.problem === undefined) throw error;
    throw invalidField("header", error.problem);
  }
}
