import { events } from "./events.ts";

const timestamp = "2026-11-21T09:31:00.000Z";

/** The JSON Schema of the events that webhooks receive, with an example of each type. `url`: where the schema is served. */
export const toEventSchema = (url: string): object => ({
  $schema: "https://json-schema.org/draft/2020-12/schema",
  $id: url,
  title: "Webhook event of evald",
  oneOf: Object.keys(events).map((type) => ({ $ref: `#/$defs/${type}` })),
  $defs: Object.fromEntries(
    Object.entries(events).map(([type, { description, data, example }]) => [
      type,
      {
        description,
        type: "object",
        required: ["type", "timestamp", "data"],
        properties: { type: { const: type }, timestamp: { type: "string", format: "date-time" }, data },
        examples: [{ type, timestamp, data: example }],
      },
    ]),
  ),
});
