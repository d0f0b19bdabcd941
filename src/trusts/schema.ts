import { type Static, Type } from "@sinclair/typebox";
import { ciProviders } from "../db/tables/keys.ts";
import { type Scope, scopes } from "../http/operation.ts";
import { HttpUrl, Id, Nullable, OneOf, shape, Time } from "../schema.ts";

/** Issuers of ID tokens on the public servers. */
export const defaultIssuers: Record<(typeof ciProviders)[number], string> = {
  github: "https://token.actions.githubusercontent.com",
  gitlab: "https://gitlab.com",
};

export const maxMinutes = 360;
export const defaultMinutes = 60;
/** The scopes of the keys that CI jobs get, unless a trust names others. */
export const defaultScopes: Scope[] = ["read", "run"];

const unspaced = shape("^\\S+$", "a non-empty string without whitespace");
const text = (description: string) => Type.String({ minLength: 1, maxLength: 255, ...unspaced, description });

const fields = {
  provider: OneOf(ciProviders, "github: GitHub Actions; gitlab: GitLab CI"),
  issuer: HttpUrl(`Issuer of the ID tokens. Default: ${Object.values(defaultIssuers).join(" or ")}`),
  repository: text("Repository or project, such as acme/docs"),
  repositoryId: Nullable(
    text(
      "ID of the repository or project, which never changes: the claim repository_id on GitHub, project_id on GitLab. null: that of the first job that gets a key",
    ),
  ),
  ref: Nullable(
    text(
      "Ref of the job, such as refs/heads/main or refs/tags/v1; on GitLab, also the name of a branch. A * at the end matches any rest, as in refs/pull/*. null: any",
    ),
  ),
  environment: Nullable(text("Environment that the job deploys to. null: any")),
  scopes: Type.Array(OneOf(scopes), {
    title: "TrustScopes",
    minItems: 1,
    uniqueItems: true,
    description: "Scopes of its API keys",
  }),
  minutes: Type.Integer({ minimum: 1, maximum: maxMinutes, description: "Minutes until its API keys expire" }),
};

const example = {
  provider: "github",
  issuer: defaultIssuers.github,
  repository: "acme/docs",
  repositoryId: "74321905",
  ref: "refs/pull/*",
  environment: null,
  scopes: defaultScopes,
  minutes: defaultMinutes,
};

export const TrustInput = Type.Object(
  {
    provider: fields.provider,
    issuer: Type.Optional(fields.issuer),
    repository: fields.repository,
    repositoryId: Type.Optional(fields.repositoryId),
    ref: Type.Optional(fields.ref),
    environment: Type.Optional(fields.environment),
    scopes: Type.Optional(fields.scopes),
    minutes: Type.Optional(fields.minutes),
  },
  { title: "TrustInput", examples: [{ provider: "github", repository: "acme/docs", ref: "refs/pull/*" }] },
);
export type TrustInput = Static<typeof TrustInput>;

export const Trust = Type.Object(
  { id: Id, ...fields, createdAt: Time },
  {
    title: "Trust",
    description: "CI jobs that may exchange an ID token for an API key",
    examples: [{ id: "0199f3a1-6a10-7f3e-8d02-4b5c6d7e8f90", ...example, createdAt: "2026-11-21T09:30:00.000Z" }],
  },
);
export type Trust = Static<typeof Trust>;

export const ExchangeInput = Type.Object(
  {
    token: Type.String({
      minLength: 1,
      maxLength: 10_000,
      description: "ID token of a GitHub Actions or GitLab CI job",
    }),
    organization: Type.Optional(
      Type.String({ maxLength: 200, description: "ID or name; required if the server has several organizations" }),
    ),
  },
  { title: "ExchangeInput", examples: [{ token: "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ…", organization: "Acme" }] },
);

export const ExchangedKey = Type.Object(
  {
    key: Type.String({ description: "API key" }),
    expiresAt: Time,
    scopes: fields.scopes,
    organization: Type.Object({ id: Id, name: Type.String() }),
  },
  {
    title: "ExchangedKey",
    examples: [
      {
        key: "evals_4oW1uVb0Qm8r2ZtXc5Yk7NhGjD3pLs9a0B1c2D",
        expiresAt: "2026-11-21T10:30:00.000Z",
        scopes: ["read", "run"],
        organization: { id: "0199f3a0-11aa-7c00-9d11-2c9d4e5f6a70", name: "Acme" },
      },
    ],
  },
);
export type ExchangedKey = Static<typeof ExchangedKey>;
