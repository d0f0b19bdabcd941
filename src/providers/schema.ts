import { type Static, Type } from "@sinclair/typebox";
import { HttpUrl, Id, Nullable, notBlank, Time } from "../schema.ts";

const name = Type.String({ minLength: 1, maxLength: 200, ...notBlank, description: "Name of the developer tool" });
const docsUrl = Nullable(HttpUrl("URL of its docs"));
const productUrl = Nullable(HttpUrl("Base URL of its product or API"));

const example = { name: "Acme", docsUrl: "https://docs.acme.example/", productUrl: "https://api.acme.example/" };

export const Provider = Type.Object(
  { id: Id, name: Type.String(), docsUrl, productUrl, createdAt: Time },
  {
    title: "Provider",
    examples: [{ id: "0199f3a1-2c44-7d0a-8f10-6a7b8c9d0e1f", ...example, createdAt: "2026-11-21T09:30:00.000Z" }],
  },
);
export type Provider = Static<typeof Provider>;

export const ProviderInput = Type.Object(
  { name, docsUrl: Type.Optional(docsUrl), productUrl: Type.Optional(productUrl) },
  { title: "ProviderInput", examples: [example] },
);
export type ProviderInput = Static<typeof ProviderInput>;

export const ProviderPatch = Type.Partial(ProviderInput, {
  title: "ProviderPatch",
  examples: [{ docsUrl: "https://docs.acme.example/v2/" }],
});
export type ProviderPatch = Static<typeof ProviderPatch>;
