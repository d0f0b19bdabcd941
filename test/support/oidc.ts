import { createHash, generateKeyPairSync, sign } from "node:crypto";

type Claims = { sub: string; email: string; email_verified?: unknown; name?: string } & Record<string, unknown>;
type Asked = { redirectUri: string; challenge: string; nonce: string; claims: Claims };

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** The settings of a service that lets people sign in at a provider. */
export const oidcEnv = (issuer: string, client: { id: string; secret: string }) => ({
  EVALD_OIDC_ISSUER: issuer,
  EVALD_OIDC_CLIENT_ID: client.id,
  EVALD_OIDC_CLIENT_SECRET: client.secret,
});

/**
 * An OpenID provider on loopback: one client, the code flow with PKCE, RS256. `signsInAs` is the person at the browser.
 * End it with `close()`.
 */
export function startOidc(client: { id: string; secret: string }) {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const codes = new Map<string, Asked>();
  const seen: string[] = [];
  let claims: Claims = { sub: "none", email: "none@example.com" };
  let otherKey = false;
  let sendsIdToken = true;
  let keys: unknown[] = [{ ...publicKey.export({ format: "jwk" }), kid: "1", alg: "RS256", use: "sig" }];

  function authorize({ searchParams: ask }: URL): Response {
    const back = new URL(ask.get("redirect_uri") ?? "");
    const right = ask.get("client_id") === client.id && ask.get("response_type") === "code";
    if (!right || ask.get("code_challenge_method") !== "S256" || !ask.get("scope")?.split(" ").includes("openid"))
      return new Response("bad request", { status: 400 });
    const code = crypto.randomUUID();
    const challenge = ask.get("code_challenge") ?? "";
    codes.set(code, { redirectUri: back.href, challenge, nonce: ask.get("nonce") ?? "", claims });
    back.searchParams.set("code", code);
    back.searchParams.set("state", ask.get("state") ?? "");
    return Response.redirect(back.href, 303);
  }

  async function token(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text());
    const asked = codes.get(form.get("code") ?? "");
    codes.delete(form.get("code") ?? "");
    const basic = request.headers.get("authorization") === `Basic ${btoa(`${client.id}:${client.secret}`)}`;
    const posted = form.get("client_id") === client.id && form.get("client_secret") === client.secret;
    const proof = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (!asked || !(basic || posted) || proof !== asked.challenge || form.get("redirect_uri") !== asked.redirectUri)
      return Response.json({ error: "invalid_grant" }, { status: 400 });
    const now = Math.floor(Date.now() / 1000);
    const times = { iat: now, exp: now + 60 };
    const payload = { iss: issuer, aud: client.id, nonce: asked.nonce, ...times, ...asked.claims };
    const signed = `${encode({ alg: "RS256", kid: "1", typ: "JWT" })}.${encode(payload)}`;
    const key = otherKey ? generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey : privateKey;
    const idToken = `${signed}.${sign("sha256", Buffer.from(signed), key).toString("base64url")}`;
    return Response.json({
      access_token: "a-token",
      token_type: "Bearer",
      expires_in: 60,
      ...(sendsIdToken && { id_token: idToken }),
    });
  }

  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request): Response | Promise<Response> {
      const url = new URL(request.url);
      seen.push(url.pathname);
      if (url.pathname === "/authorize") return authorize(url);
      if (url.pathname === "/token") return token(request);
      if (url.pathname === "/userinfo") return Response.json(claims);
      if (url.pathname === "/jwks") return Response.json({ keys });
      return Response.json({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        userinfo_endpoint: `${issuer}/userinfo`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["RS256"],
      });
    },
  });
  const issuer: string = server.url.origin;
  return {
    issuer,
    seen,
    signsInAs(person: Claims): void {
      claims = person;
    },
    /** From now on, tokens are signed with a key that isn't the provider's. */
    forge(): void {
      otherKey = true;
    },
    /** From now on, the provider publishes these keys. */
    publish(others: unknown[]): void {
      keys = others;
    },
    /** Whether responses contain an ID token. */
    sendIdToken(sends: boolean): void {
      sendsIdToken = sends;
    },
    close: () => server.stop(true),
  };
}
