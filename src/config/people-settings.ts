import { ConfigError } from "../errors.ts";
import { httpUrl, isId } from "../schema.ts";
import { parseFlag, type SettingValues, setting, throwExpected } from "./setting.ts";

/** The organization that users with an email address of this domain join automatically. */
type OidcJoin = { domain: string; org: { id: string } | { name: string } };

const trimText = (value: string) => value.trim();

/** Parses a domain and its organization, which is named by ID or name; null if empty. */
function parseOidcJoin(value: string): OidcJoin | null {
  if (value === "") return null;
  const shape = /^(?<domain>[a-z0-9-]+(?:\.[a-z0-9-]+)+)=(?<organization>.*\S.*)$/i;
  const { domain = "", organization = "" } = shape.exec(value.trim())?.groups ?? {};
  if (domain === "") return throwExpected("a domain and an organization, such as example.com=Acme");
  const name = organization.trim();
  return { domain: domain.toLowerCase(), org: isId(name) ? { id: name.toLowerCase() } : { name } };
}

const isSmtp = (value: string) => /^smtps?:$/.test(URL.parse(value)?.protocol ?? "");

/** Sign-in and email settings, in the order of the documentation. */
export const peopleSettings = {
  /** Whether users may create organizations. */
  canCreateOrgs: setting("EVALD_PEOPLE_MAKE_ORGS", "0", "1: anyone signed in may create organizations", parseFlag),
  smtpUrl: setting(
    "EVALD_SMTP_URL",
    "",
    "SMTP server for outgoing email, such as smtp://user:password@mail.example.com:587; smtps for implicit TLS",
    (value) =>
      value === "" || isSmtp(value)
        ? value
        : throwExpected("an SMTP URL such as smtp://user:password@mail.example.com:587"),
    { isSecret: true },
  ),
  mailFrom: setting(
    "EVALD_MAIL_FROM",
    "",
    "Sender of email, such as evald@example.com or evald <evald@example.com>",
    (value) =>
      value === "" || /^[^\r\n]*[^\s@<>]+@[^\s@<>]+>?$/.test(value) ? value : throwExpected("an email address"),
  ),
  oidcIssuer: setting("EVALD_OIDC_ISSUER", "", "Issuer URL of an OpenID Connect identity provider", (value) =>
    value === "" || httpUrl(value) ? value.replace(/\/+$/, "") : throwExpected("an http or https URL"),
  ),
  oidcClientId: setting("EVALD_OIDC_CLIENT_ID", "", "Client ID at the identity provider", trimText),
  oidcClientSecret: setting("EVALD_OIDC_CLIENT_SECRET", "", "Client secret at the identity provider", trimText, {
    isSecret: true,
  }),
  oidcName: setting("EVALD_OIDC_NAME", "single sign-on", "Name of the identity provider on the sign-in page", trimText),
  oidcJoin: setting(
    "EVALD_OIDC_JOIN",
    "",
    "Email domain whose users join an organization automatically, and the name or ID of the organization, such as example.com=Acme",
    parseOidcJoin,
  ),
};

/** Combines the settings. Throws ConfigError if a setting needs another one that is missing. */
export function toPeopleSettings(values: SettingValues<typeof peopleSettings>) {
  const { canCreateOrgs, smtpUrl, mailFrom, oidcIssuer: issuer, oidcName: name, oidcJoin: join } = values;
  const { oidcClientId: clientId, oidcClientSecret: clientSecret } = values;
  if ((smtpUrl === "") !== (mailFrom === ""))
    throw new ConfigError("EVALD_SMTP_URL and EVALD_MAIL_FROM must be set together.");
  const lacksIssuer = issuer === "" && Boolean(clientId || clientSecret || join);
  const lacksClient = issuer !== "" && !(clientId && clientSecret);
  if (lacksIssuer || lacksClient)
    throw new ConfigError("EVALD_OIDC_ISSUER, EVALD_OIDC_CLIENT_ID and EVALD_OIDC_CLIENT_SECRET must be set together.");
  return {
    canCreateOrgs,
    /** SMTP server and sender; null: no email is sent. */
    mail: smtpUrl === "" ? null : { url: smtpUrl, from: mailFrom },
    /** The identity provider; null: none. `name`: the label of its sign-in button. */
    oidc: issuer === "" ? null : { issuer, clientId, clientSecret, name, join },
  };
}
