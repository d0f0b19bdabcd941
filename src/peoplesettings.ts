import { ConfigError } from "./errors.ts";
import { httpUrl } from "./schema.ts";

type Oidc = {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** What the button to it says. */
  name: string;
  /** The domain of mail whose people become members of an organisation by themselves. */
  join: { domain: string; orgName: string } | null;
};

/** How people come in, beside the passwords that they have here. */
export type PeopleSettings = Readonly<{
  /** Whether people may make organisations of their own. */
  mayFound: boolean;
  /** Where mail is handed over, and from whom it is; null: none is sent. */
  mail: { url: string; from: string } | null;
  /** The identity provider; null: none. */
  oidc: Oidc | null;
}>;

const bad = (expected: string): never => {
  throw new ConfigError(expected);
};

const text = (value: string) => value.trim();

/** The settings of people, in the order of the README's table. */
export const peopleSettings = {
  EVALD_PEOPLE_MAKE_ORGS: {
    default: "0",
    means: "1: people who are signed in may make organisations of their own",
    parse: (value: string) => (value === "1" ? true : value === "0" ? false : bad("0 or 1")),
  },
  EVALD_SMTP_URL: {
    default: "",
    means: "where mail is handed over, as in smtp://user:password@mail.example.com:587; smtps for TLS from the start",
    parse: (value: string) =>
      value === "" || /^smtps?:$/.test(URL.parse(value)?.protocol ?? "")
        ? value
        : bad("an address as smtp://user:password@mail.example.com:587"),
    secret: true,
  },
  EVALD_MAIL_FROM: {
    default: "",
    means: "sender of mail, as in evald@example.com or evald <evald@example.com>",
    parse: (value: string) =>
      value === "" || /^[^\r\n]*[^\s@<>]+@[^\s@<>]+>?$/.test(value) ? value : bad("an address of mail"),
  },
  EVALD_OIDC_ISSUER: {
    default: "",
    means: "identity provider with OpenID Connect, by its issuer address",
    parse: (value: string) =>
      value === "" || httpUrl(value) ? value.replace(/\/+$/, "") : bad("an http or https address"),
  },
  EVALD_OIDC_CLIENT_ID: { default: "", means: "id of this service at the identity provider", parse: text },
  EVALD_OIDC_CLIENT_SECRET: {
    default: "",
    means: "secret of this service at the identity provider",
    parse: text,
    secret: true,
  },
  EVALD_OIDC_NAME: {
    default: "single sign-on",
    means: "name of the identity provider on the sign-in page",
    parse: text,
  },
  EVALD_OIDC_JOIN: {
    default: "",
    means: "domain of mail whose people become members of an organisation by themselves, as in example.com=Acme",
    parse(value: string) {
      const [, domain = "", orgName = ""] = /^([a-z0-9-]+(?:\.[a-z0-9-]+)+)=(.*\S.*)$/i.exec(value.trim()) ?? [];
      if (value !== "" && domain === "") return bad("a domain and an organisation, as in example.com=Acme");
      return domain === "" ? null : { domain: domain.toLowerCase(), orgName: orgName.trim() };
    },
  },
};

type Read = <N extends keyof typeof peopleSettings>(name: N) => ReturnType<(typeof peopleSettings)[N]["parse"]>;

/** The settings together. Throws ConfigError where one is of no use without another. */
export function readPeopleSettings(read: Read): PeopleSettings {
  const [url, from] = [read("EVALD_SMTP_URL"), read("EVALD_MAIL_FROM")];
  if ((url === "") !== (from === "")) return bad("EVALD_SMTP_URL and EVALD_MAIL_FROM must be set together");
  const issuer = read("EVALD_OIDC_ISSUER");
  const clientId = read("EVALD_OIDC_CLIENT_ID");
  const clientSecret = read("EVALD_OIDC_CLIENT_SECRET");
  const join = read("EVALD_OIDC_JOIN");
  if (issuer === "" ? clientId || clientSecret || join : !clientId || !clientSecret)
    return bad("EVALD_OIDC_ISSUER, EVALD_OIDC_CLIENT_ID and EVALD_OIDC_CLIENT_SECRET must be set together");
  return {
    mayFound: read("EVALD_PEOPLE_MAKE_ORGS"),
    mail: url === "" ? null : { url, from },
    oidc: issuer === "" ? null : { issuer, clientId, clientSecret, name: read("EVALD_OIDC_NAME"), join },
  };
}
