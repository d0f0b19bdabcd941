import type { Block, ForeignPage, Product } from "./site.ts";
import type { Domain } from "./third-products.ts";
import { credentialOf, hostOf, setupOf, version } from "./third-samples.ts";

export const text = (content: string): Block => ({ kind: "text", text: content });
export const heading = (content: string, level = 2): Block => ({ kind: "heading", level, text: content });
export const code = (language: string | null, content: string): Block => ({ kind: "code", language, code: content });
export const list = (...items: string[]): Block => ({ kind: "list", items });
/** Steps have their number in the text, as in docs that were pasted from a mail. */
const steps = (...items: string[]): Block => list(...items.map((item, at) => `${at + 1}. ${item}`));

/** The pages that a site has whatever it documents. */
export type Role =
  | "install"
  | "auth"
  | "quickstart"
  | "concepts"
  | "errors"
  | "changelog"
  | "faq"
  | "pricing"
  | "migration"
  | "reference";
export const roles: Role[] = [
  "install",
  "auth",
  "quickstart",
  "concepts",
  "errors",
  "changelog",
  "faq",
  "pricing",
  "migration",
  "reference",
];

/** Where a site keeps these pages and its guides. */
export const layouts: Record<Role | "guides", string>[] = [
  {
    install: "docs/installation",
    auth: "docs/authentication",
    quickstart: "docs/quickstart",
    concepts: "docs/concepts",
    errors: "docs/reference/errors",
    changelog: "docs/changelog",
    faq: "docs/faq",
    pricing: "docs/billing",
    migration: "docs/upgrade-to-v4",
    reference: "docs/reference/overview",
    guides: "docs/guides",
  },
  {
    install: "learn/get-the-tools",
    auth: "learn/secrets-and-keys",
    quickstart: "learn/hello",
    concepts: "learn/how-it-works",
    errors: "look-up/failures",
    changelog: "news",
    faq: "questions",
    pricing: "costs",
    migration: "learn/from-3-to-4",
    reference: "look-up/everything",
    guides: "do",
  },
  {
    install: "en/stable/setup/install",
    auth: "en/stable/setup/credentials",
    quickstart: "en/stable/tutorial/part1",
    concepts: "en/stable/topics/architecture",
    errors: "en/stable/topics/exceptions",
    changelog: "en/stable/whatsnew",
    faq: "en/stable/topics/faq",
    pricing: "en/stable/topics/plans",
    migration: "en/stable/topics/upgrading",
    reference: "en/stable/ref/index",
    guides: "en/stable/howto",
  },
];

export type Context = {
  product: Product;
  domain: Domain;
  /** 0 is terse, 1 is chatty, 2 is formal. */
  tone: number;
  to(role: Role): string;
  /** The first call of the quickstart. */
  hello: Block;
  first: ForeignPage;
};

type Written = { title: string; blocks: Block[] };
const toned = (tone: number, ...texts: string[]) => text(texts[tone % texts.length]!);

/** One of these pages. */
export const framePage = (role: Role, context: Context): Written => writers[role](context);

const writers: Record<Role, (context: Context) => Written> = {
  install: ({ product, domain, tone, to }) => {
    const setups = setupOf(product);
    const shown: Block[] =
      setups.length > 1 && tone !== 2
        ? [{ kind: "tabs", shown: null, tabs: setups }]
        : setups.flatMap((each) => [heading(each.name, 3), code(each.language, each.code)]);
    return {
      title: ["Installation", `Get ${product.name} onto your computer`, `Installing ${product.name}`][tone]!,
      blocks: [
        toned(
          tone,
          `Current version: ${version}.`,
          `It takes a minute, promise. This is version ${version}, and you don't need administrator rights for it.`,
          `This document describes the installation of the ${domain.sdk}, version ${version}.`,
        ),
        heading(["Packages", "Pick your favorite", "Procedure"][tone]!),
        ...shown,
        heading(["Next", "What now?", "Subsequent steps"][tone]!),
        text(`Continue with [your credentials](${to("auth")}), then [make a first call](${to("quickstart")}).`),
      ],
    };
  },
  auth: ({ product, domain, tone, to }) => ({
    title: ["Authentication", "Secrets and keys", "Credentials"][tone]!,
    blocks: [
      toned(
        tone,
        "One secret per environment.",
        `Before ${product.name} does anything for you, it wants to know who you are. That is what the secret is for.`,
        `All access to ${product.name} requires a secret. Secrets are issued per environment.`,
      ),
      heading("Create a secret"),
      steps(
        `Open the console at https://console.${product.package}.example.`,
        "Choose **Settings**, then **Secrets**.",
        "Choose **Create**, and copy the value. It is shown once.",
      ),
      heading("Tell your program"),
      text(`Set \`${product.variable}\` to that value:`),
      code("bash", `export ${product.variable}="sk_live_81c2e"`),
      {
        kind: "table",
        head: ["Variable", "Meaning", "Default"],
        rows: [[product.variable, "The secret of the environment", "none, it is required"]],
      },
      text(
        domain.form
          ? `In plain HTTP, the secret belongs in the header \`${credentialOf(product, "sk_live_81c2e").join(": ")}\`. A rejected one is explained under [errors](${to("errors")}).`
          : `A rejected secret is explained under [errors](${to("errors")}).`,
      ),
    ],
  }),
  quickstart: ({ product, domain, tone, to, hello, first }) => ({
    title: ["Quickstart", `Say hello to ${product.name}`, "Tutorial, part 1: a first call"][tone]!,
    blocks: [
      toned(
        tone,
        "Five minutes, start to finish.",
        "Grab a coffee, but don't expect to finish it: this is quick.",
        "This tutorial assumes that you can use a terminal.",
      ),
      steps(
        `[Install what you need](${to("install")}).`,
        `[Create a secret](${to("auth")}) and export it.`,
        `Run what follows.`,
      ),
      hello,
      text(`That is all. The ${domain.sdk} can do much more: go on with [${first.title}](${first.path}).`),
    ],
  }),
  concepts: ({ product, domain, tone, to }) => ({
    title: ["Concepts", "How it works", "Architecture"][tone]!,
    blocks: [
      text(`${product.name} ${domain.what}.`),
      heading("What you will meet"),
      {
        kind: "table",
        head: ["Term", "Meaning"],
        rows: domain.things.map((thing, at) => [
          thing,
          [
            `Where most of the work happens`,
            `Belongs to exactly one project`,
            `Can be shared between projects`,
            `Exists only while it is needed`,
          ][at % 4]!,
        ]),
      },
      heading("Consistency"),
      toned(
        tone,
        "Reads after writes are consistent within a region.",
        "If you write something and read it right away, you get what you wrote. From the other side of the world, give it a second.",
        "Within one region, a read that follows a write returns the written state. Between regions, the delay is one second at most.",
      ),
      text(`Names and limits are listed in [the reference](${to("reference")}).`),
    ],
  }),
  errors: ({ product, tone, to }) => ({
    title: ["Errors", "When something fails", "Exceptions and failures"][tone]!,
    blocks: [
      text("Whatever goes wrong has a code. Codes never change, messages may."),
      code(
        "json",
        JSON.stringify(
          { error: { code: "E_LOCKED", message: "Somebody else is editing this.", trace: "7f-2" } },
          null,
          2,
        ),
      ),
      {
        kind: "table",
        head: ["Code", "HTTP", "What to do"],
        rows: [
          ["E_SECRET", "401", `[Create another secret](${to("auth")})`],
          ["E_SCOPE", "403", "Ask an owner of the project"],
          ["E_GONE", "404", "Check the ID"],
          ["E_LOCKED", "409", "Wait and try again"],
          ["E_SLOW_DOWN", "429", "Wait as long as `Retry-After` says"],
        ],
      },
      heading("Ask for help"),
      text(`Write to help@${product.package}.example and quote the trace. We answer on working days.`),
    ],
  }),
  changelog: ({ product, to }) => ({
    title: "Changelog",
    blocks: [
      heading(version),
      list("Fixed: times before 1970 were rounded up.", "Faster start on machines with many cores."),
      heading("4.2.0"),
      list("Added: dry runs.", "Deprecated: the old spelling of time zones. It keeps working."),
      heading("4.0.0"),
      list(
        `Changed: ${product.name} reads its secret from \`${product.variable}\`. See [how to upgrade](${to("migration")}).`,
        "Removed: everything that 3.9 warned about.",
      ),
    ],
  }),
  faq: ({ product, tone, to }) => ({
    title: ["FAQ", "Questions that people ask", "Frequently asked questions"][tone]!,
    blocks: [
      heading("Is there a free plan?", 3),
      text(`Yes. See [what it costs](${to("pricing")}).`),
      heading("Why do I see 'page not found'?", 3),
      text(
        "Somebody deleted what you are looking for, or you are signed in to another organization. Sign in again, then reload.",
      ),
      heading("Does it work behind a proxy?", 3),
      text("It does. The usual variables, such as `HTTPS_PROXY`, are respected."),
      heading(`Where does ${product.name} store data?`, 3),
      text("In the region that you chose for the project. You can't change it later."),
    ],
  }),
  pricing: ({ tone }) => ({
    title: ["Billing", "What it costs", "Plans"][tone]!,
    blocks: [
      {
        kind: "table",
        head: ["Plan", "Calls a month", "Price"],
        rows: [
          ["Free", "10,000", "0 €"],
          ["Team", "1,000,000", "49 €"],
          ["Company", "as agreed", "as agreed"],
        ],
      },
      text("Prices exclude taxes. You are charged on the first day of a month for the month before."),
      heading("Cancel"),
      text("You can cancel at any time, in the console, under Billing. Your data is kept for thirty days."),
    ],
  }),
  migration: ({ product, tone, to }) => ({
    title: ["Upgrade to version 4", "From 3 to 4", "Upgrading from version 3"][tone]!,
    blocks: [
      text("Version 3 gets security fixes until the end of 2027. There is no need to hurry."),
      steps(
        `[Install version 4](${to("install")}) next to the old one.`,
        `Rename the variable of your secret to \`${product.variable}\`.`,
        "Run your tests, then remove the old version.",
      ),
      heading("What was renamed"),
      {
        kind: "table",
        head: ["Version 3", "Version 4"],
        rows: [
          ["token", "secret"],
          ["workspace", "project"],
          ["cursor", "page"],
        ],
      },
    ],
  }),
  reference: ({ product, domain, tone, to }) => ({
    title: ["Reference", "Everything, in one list", "Reference overview"][tone]!,
    blocks: [
      domain.form
        ? text(
            `The base URL is \`https://${hostOf(product)}/v4\`. The machine-readable description is in [openapi.json](/openapi.json).`,
          )
        : text("Names are case-sensitive. Times are in UTC unless they say otherwise."),
      {
        kind: "table",
        head: ["Limit", "Value"],
        rows: [
          ["Calls a second", "40"],
          ["Length of a name", "120 characters"],
          ["Items in a list", "500"],
        ],
      },
      heading("Types"),
      list("Texts are UTF-8.", "Dates look like 2027-02-03.", "Amounts are integers."),
      text(`Failures are explained under [errors](${to("errors")}).`),
    ],
  }),
};
