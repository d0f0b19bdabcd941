import { type Static, Type } from "@sinclair/typebox";
import { countedKinds } from "../db/tables/traffic.ts";
import { OneOf, shape, Time } from "../schema.ts";

/** Maximum pages in one request. A larger log is sent in several requests. A body may have 20,000 values. */
export const maxPagesPerRequest = 2000;

const count = (description?: string) =>
  Type.Integer({ minimum: 0, maximum: 1e12, ...(description && { description }) });
const kind = OneOf(
  countedKinds,
  "coding: coding agents; answer: assistants that answer a person; search: indexes; training: crawlers for models; program: HTTP clients",
);
const url = Type.String({
  ...shape("^https?://[^/?#]+[^?#]*$", "an http or https URL without a query"),
  maxLength: 2000,
});
const name = Type.String({ minLength: 1, maxLength: 60, description: "What the agent calls itself" });

export const FieldTrafficInput = Type.Object(
  {
    log: Type.String({
      ...shape("^[0-9a-f]{64}$", "a SHA-256 in hexadecimal"),
      description: "SHA-256 of the log: one that is sent again counts once",
    }),
    pages: Type.Array(
      Type.Object(
        {
          month: Type.String(shape("^\\d{4}-(0[1-9]|1[0-2])$", "a month such as 2026-11")),
          kind,
          name,
          url,
          reads: count("Answered requests"),
          markdown: count("Those of them answered with Markdown"),
          missing: count("Requests answered by 404 or 410"),
        },
        { additionalProperties: false },
      ),
      { maxItems: maxPagesPerRequest },
    ),
  },
  {
    title: "FieldTrafficInput",
    additionalProperties: false,
    examples: [
      {
        log: "0f5c".padEnd(64, "0"),
        pages: [
          {
            month: "2026-11",
            kind: "coding",
            name: "Claude Code",
            url: "https://docs.acme.example/upload",
            reads: 120,
            markdown: 118,
            missing: 0,
          },
        ],
      },
    ],
  },
);
export type FieldTrafficInput = Static<typeof FieldTrafficInput>;

export const ReceivedTraffic = Type.Object({ pages: count("Counts that were stored") }, { title: "ReceivedTraffic" });
export type ReceivedTraffic = Static<typeof ReceivedTraffic>;

const sums = { reads: count(), markdown: count(), missing: count() };

/** What agents outside of runs did with the docs of a provider, compared with what runs did. */
export const FieldTraffic = Type.Object(
  {
    since: Time,
    until: Time,
    visitors: Type.Array(Type.Object({ kind, name, ...sums }), { description: "Agents, by requests" }),
    pages: Type.Array(
      Type.Object({
        url: Type.String(),
        coding: count("Reads by coding agents"),
        answer: count("Reads by assistants"),
        other: count("Reads by all others"),
        markdown: count(),
        runs: count("Published runs that read the page"),
      }),
      { description: "Pages that were read, most read by coding agents and assistants first" },
    ),
    untested: Type.Array(Type.Object({ url: Type.String(), reads: count() }), {
      description: "Pages that coding agents and assistants read, and no run",
    }),
    missing: Type.Array(Type.Object({ url: Type.String(), requests: count(), guesses: count("Of agents in runs") }), {
      description: "URLs that agents asked for and that don't exist",
    }),
    unread: Type.Array(Type.Object({ url: Type.String(), runs: count() }), {
      description: "Pages that runs read, and no coding agent or assistant outside",
    }),
    llmsTxt: Type.Array(Type.Object({ url: Type.String(), kind, name, ...sums }), {
      description: "Who fetched llms.txt",
    }),
  },
  { title: "FieldTraffic" },
);
export type FieldTraffic = Static<typeof FieldTraffic>;
