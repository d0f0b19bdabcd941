import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { deliveryStatuses } from "../db/tables/notifications.ts";
import { callerOf, orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery, paginate } from "../http/paging.ts";
import { OneOf, PathId } from "../schema.ts";
import { getDelivery, listDeliveries, replayDelivery, replayMissed, testDestination } from "./deliveries.ts";
import {
  createDestination,
  deleteDestination,
  getDestination,
  listDestinations,
  rotateDestinationSecret,
  updateDestination,
  withoutAddresses,
} from "./destinations.ts";
import {
  Delivery,
  DeliveryDetail,
  Destination,
  DestinationInput,
  DestinationPatch,
  NewDestination,
  ReplayResult,
} from "./schema.ts";

const path = Type.Object({ destinationId: PathId("ID of the destination") });
const deliveryPath = Type.Object({
  destinationId: PathId("ID of the destination"),
  deliveryId: PathId("ID of the delivery"),
});

export const notificationRoutes = (ctx: Context) =>
  new Elysia({ name: "notifications" })
    .get(
      "/api/v1/destinations",
      ({ request, query, set }) => {
        // An organization has few destinations, so they are paged in memory.
        const items = listDestinations(ctx, orgOf(request)).map((each) => toVisible(request, each));
        return listResponse(set, paginate(items, pageOf(query)));
      },
      {
        query: Type.Object(pageQuery),
        ...operation("Notifications", "listDestinations", "List destinations, newest first", {
          200: listOf(Destination, "Destinations, newest first"),
          ...errors(400),
        }),
      },
    )
    .post(
      "/api/v1/destinations",
      ({ request, body, set }) => {
        set.status = 201;
        return createDestination(ctx, orgOf(request), body);
      },
      {
        ...jsonBody(DestinationInput),
        ...operation("Notifications", "createDestination", "Add a webhook, a Slack channel or an email digest", {
          201: NewDestination,
          ...errors(400, 409, 413),
        }),
      },
    )
    .get(
      "/api/v1/destinations/:destinationId",
      ({ request, params }) => toVisible(request, getDestination(ctx, orgOf(request), params.destinationId)),
      {
        params: path,
        ...operation("Notifications", "getDestination", "Get a destination", { 200: Destination, ...errors(404) }),
      },
    )
    .patch(
      "/api/v1/destinations/:destinationId",
      ({ request, params, body }) => updateDestination(ctx, orgOf(request), params.destinationId, body),
      {
        params: path,
        ...jsonBody(DestinationPatch),
        ...operation("Notifications", "updateDestination", "Update, disable or enable a destination", {
          200: NewDestination,
          ...errors(400, 404, 409, 413),
        }),
      },
    )
    .delete(
      "/api/v1/destinations/:destinationId",
      ({ request, params }) => deleteDestination(ctx, orgOf(request), params.destinationId),
      {
        params: path,
        ...operation("Notifications", "deleteDestination", "Delete a destination and its deliveries", {
          200: Destination,
          ...errors(404),
        }),
      },
    )
    .post(
      "/api/v1/destinations/:destinationId/rotate",
      ({ request, params }) => rotateDestinationSecret(ctx, orgOf(request), params.destinationId),
      {
        params: path,
        ...operation("Notifications", "rotateSecret", "Replace the signing secret of a webhook", {
          200: NewDestination,
          ...errors(400, 404, 409),
        }),
      },
    )
    .post(
      "/api/v1/destinations/:destinationId/test",
      ({ request, params, set }) => {
        set.status = 202;
        return testDestination(ctx, orgOf(request), params.destinationId);
      },
      {
        params: path,
        ...operation("Notifications", "testDestination", "Send a test event to a destination", {
          202: DeliveryDetail,
          ...errors(404, 409),
        }),
      },
    )
    .post(
      "/api/v1/destinations/:destinationId/replay",
      ({ request, params, set }) => {
        set.status = 202;
        return replayMissed(ctx, orgOf(request), params.destinationId);
      },
      {
        params: path,
        ...operation("Notifications", "replayMissed", "Send everything again that a destination missed", {
          202: ReplayResult,
          ...errors(404, 409),
        }),
      },
    )
    .get(
      "/api/v1/destinations/:destinationId/deliveries",
      ({ request, params, query, set }) =>
        listResponse(
          set,
          listDeliveries(ctx, orgOf(request), params.destinationId, { status: query.status }, pageOf(query)),
        ),
      {
        params: path,
        query: Type.Object({ ...pageQuery, status: Type.Optional(OneOf(deliveryStatuses)) }),
        ...operation("Notifications", "listDeliveries", "List deliveries to a destination, newest first", {
          200: listOf(Delivery, "Deliveries, newest first"),
          ...errors(400, 404),
        }),
      },
    )
    .get(
      "/api/v1/destinations/:destinationId/deliveries/:deliveryId",
      ({ request, params }) => getDelivery(ctx, orgOf(request), params.destinationId, params.deliveryId),
      {
        params: deliveryPath,
        ...operation("Notifications", "getDelivery", "Get a delivery with its payload and its tries", {
          200: DeliveryDetail,
          ...errors(404),
        }),
      },
    )
    .post(
      "/api/v1/destinations/:destinationId/deliveries/:deliveryId/replay",
      ({ request, params, set }) => {
        set.status = 202;
        return replayDelivery(ctx, orgOf(request), params.destinationId, params.deliveryId);
      },
      {
        params: deliveryPath,
        ...operation("Notifications", "replayDelivery", "Send a delivery again, with the same webhook-id", {
          202: DeliveryDetail,
          ...errors(404, 409),
        }),
      },
    );

/** What an API key may see of a destination. A key that can't change anything doesn't need the addresses of members. */
function toVisible(request: Request, destination: Destination): Destination {
  const { scopes } = callerOf(request);
  return scopes === null || scopes.includes("write") ? destination : withoutAddresses(destination);
}
