import { type Static, Type } from "@sinclair/typebox";
import { archiveKinds } from "../db/tables/prompts.ts";
import { Id, OneOf, shape, Time } from "../schema.ts";

export const digest = shape("^[0-9a-f]{64}$", "64 lowercase hexadecimal digits");

export const Archive = Type.Object(
  {
    id: Id,
    digest: Type.String({ ...digest, description: "SHA-256 of the file, in hexadecimal" }),
    bytes: Type.Integer({ minimum: 1, description: "Size of the compressed file" }),
    kind: OneOf(
      archiveKinds,
      "workspace: the files that a workspace starts with; site: a built docs site, deleted 7 days after its last run",
    ),
    files: Type.Integer({ minimum: 1, description: "Number of files in it" }),
    createdAt: Time,
  },
  {
    title: "Archive",
    description: "Files that a workspace starts with, or a built docs site",
    examples: [
      {
        id: "0199f3a1-7b21-7f02-9d11-2c9d4e5f6a70",
        digest: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        bytes: 20_480,
        kind: "workspace",
        files: 14,
        createdAt: "2026-11-21T09:30:00.000Z",
      },
    ],
  },
);
export type Archive = Static<typeof Archive>;
