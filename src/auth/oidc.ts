import { genericOAuth } from "better-auth/plugins/generic-oauth";
import type { Context } from "../context.ts";
import { isEmail } from "./person.ts";

export type OidcConfig = NonNullable<Context["config"]["people"]["oidc"]>;

/**
 * The identity provider as a plugin of better-auth. If there is an ID token, better-auth verifies its signature, issuer, audience and nonce. OpenID
 * Connect Core 1.0 §3.1.3.7 also requires that there is an ID token, and that its expiry and authorized party are checked. §5.3.2 requires that the
 * user info has the same subject.
 */
export function oidcPlugin(oidc: OidcConfig | undefined) {
  const plugin = genericOAuth({ config: oidc ? [toProvider(oidc)] : [] });
  return {
    ...plugin,
    async init(context: Parameters<typeof plugin.init>[0]) {
      const initialized = await plugin.init(context);
      for (const provider of initialized.context.socialProviders) {
        const { getUserInfo } = provider;
        provider.getUserInfo = async (tokens) => {
          const subject = subjectOf(tokens.idToken, oidc?.clientId);
          const info = subject === null ? null : await getUserInfo(tokens);
          const claims = info?.data as { sub?: unknown; email_verified?: unknown } | undefined;
          if (!info || claims?.sub !== subject || !isEmail(String(info.user.email))) return null;
          return { ...info, user: { ...info.user, emailVerified: claims?.email_verified === true } };
        };
      }
      return initialized;
    },
  };
}

const toProvider = ({ issuer, clientId, clientSecret }: OidcConfig) => ({
  providerId: "oidc",
  discoveryUrl: `${issuer}/.well-known/openid-configuration`,
  clientId,
  clientSecret,
  scopes: ["openid", "email", "profile"],
  pkce: true,
  requireIdTokenVerification: true,
});

/** The subject of an ID token; null unless the token has an expiry and no other authorized party. better-auth verifies everything else. */
function subjectOf(idToken: string | undefined, clientId: string | undefined): string | null {
  if (idToken === undefined) return null;
  try {
    const [, payload = ""] = idToken.split(".");
    const { sub, exp, aud, azp } = JSON.parse(Buffer.from(payload, "base64url").toString());
    const hasSeveralAudiences = Array.isArray(aud) && aud.length > 1;
    const isForUs = azp === clientId || (azp === undefined && !hasSeveralAudiences);
    const isValid = typeof sub === "string" && sub !== "" && typeof exp === "number" && isForUs;
    return isValid ? sub : null;
  } catch {
    return null;
  }
}
