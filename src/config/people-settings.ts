import { ConfigError } from "../errors.ts";
import { httpUrl } from "../schema.ts";

type Oidc = {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Label of its sign-in button. */
  name: string;
  /** Users with an email address of this domain join this organization automatically. */
  join: { domain: string; org: { id: string } | { name: string } } | null;
};

/** Sign-in and email settings. */
export type PeopleSettings = Readonly<{
  /** Whether users may create organizations. */
  canCreateOrgs: boolean;
  /** SMTP server and sender; null: no email is sent. */
  mail: { url: string; from: string } | null;
  /** The identity provider; null: none. */
  oidc: Oidc | null;
}>;

const bad = (expected: string): never => {
  throw new ConfigError(expected);
};

const text = (value: string) => value.trim();

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Sign-in and email settings, in the order of the documentation. */
export const peopleSettings = {
  EVALD_PEOPLE_MAKE_ORGS: {
    default: "0",
    description: "1: anyone signed in may create organizations",
    parse: (value: string) => (value === "1" ? true : value === "0" ? false : bad("0 or 1")),
  },
  EVALD_SMTP_URL: {
    default: "",
    description:
      "SMTP server for outgoing email, such as smtp://user:password@mail.example.com:587; smtps for implicit TLS",
    parse: (value: string) =>
      value === "" || /^smtps?:$/.test(URL.parse(value)?.protocol ?? "")
        ? value
        : bad("an SMTP URL such as smtp://user:password@mail.example.com:587"),
    secret: true,
  },
  EVALD_MAIL_FROM: {
    default: "",
    description: "Sender of email, such as evald@example.com or evald <evald@example.com>",
    parse: (value: string) =>
      value === "" || /^[^\r\n]*[^\s@<>]+@[^\s@<>]+>?$/.test(value) ? value : bad("an email address"),
  },
  EVALD_OIDC_ISSUER: {
    default: "",
    description: "Issuer URL of an OpenID Connect identity provider",
    parse: (value: string) =>
      value === "" || httpUrl(value) ? value.replace(/\/+$/, "") : bad("an http or https URL"),
  },
  EVALD_OIDC_CLIENT_ID: { default: "", description: "Client ID at the identity provider", parse: text },
  EVALD_OIDC_CLIENT_SECRET: {
    default: "",
    description: "Client secret at the identity provider",
    parse: text,
    secret: true,
  },
  EVALD_OIDC_NAME: {
    default: "single sign-on",
    description: "Name of the identity provider on the sign-in page",
    parse: text,
  },
  EVALD_OIDC_JOIN: {
    default: "",
    description:
      "Email domain whose users join an organization automatically, and the name or ID of the organization, such as example.com=Acme",
    parse(value: string) {
      const [, domain = "", given = ""] = /^([a-z0-9-]+(?:\.[a-z0-9-]+)+)=(.*\S.*)$/i.exec(value.trim()) ?? [];
      if (value !== "" && domain === "") return bad("a domain and an organization, such as example.com=Acme");
      if (domain === "") return null;
      const name = given.trim();
      return { domain: domain.toLowerCase(), org: uuid.test(name) ? { id: name.toLowerCase() } : { name } };
    },
  },
};

type Read = <N extends keyof typeof peopleSettings>(name: N) => ReturnType<(typeof peopleSettings)[N]["parse"]>;

/** Combines the settings. Throws ConfigError if one is set without another that it needs. */
export function readPeopleSettings(read: Read): PeopleSettings {
  const [url, from] = [read("EVALD_SMTP_URL"), read("EVALD_MAIL_FROM")];
  if ((url === "") !== (from === "")) return bad("EVALD_SMTP_URL and EVALD_MAIL_FROM must be set together.");
  const issuer = read("EVALD_OIDC_ISSUER");
  const clientId = read("EVALD_OIDC_CLIENT_ID");
  const clientSecret = read("EVALD_OIDC_CLIENT_SECRET");
  const join = read("EVALD_OIDC_JOIN");
  if (issuer === "" ? clientId || clientSecret || join : !clientId || !clientSecret)
    return bad("EVALD_OIDC_ISSUER, EVALD_OIDC_CLIENT_ID and EVALD_OIDC_CLIENT_SECRET must be set together.");
  return {
    canCreateOrgs: read("EVALD_PEOPLE_MAKE_ORGS"),
    mail: url === "" ? null : { url, from },
    oidc: issuer === "" ? null : { issuer, clientId, clientSecret, name: read("EVALD_OIDC_NAME"), join },
  };
}
