import { generateKeyPairSync, sign } from "node:crypto";

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
/** A key of an issuer. Making one takes long, so the issuers of many tests can share it. */
export const newKey = (kid: string) => ({ kid, ...generateKeyPairSync("rsa", { modulusLength: 2048 }) });

/** An issuer of ID tokens of CI jobs on loopback: discovery document, keys and tokens as GitHub Actions and GitLab CI issue them. */
export function startCiIssuer({
  now = Date.now,
  firstKey = newKey("1"),
}: {
  now?: () => number;
  firstKey?: ReturnType<typeof newKey>;
} = {}) {
  const seen: string[] = [];
  let key = firstKey;
  let isAway = false;
  let published: ((own: object) => unknown) | undefined;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request): Response {
      const { pathname: path } = new URL(request.url);
      seen.push(path);
      // Every path below /tenants is a separate issuer.
      const [, tenant = "", pathname = ""] = /^(\/tenants\/[^/]+)?(\/.*)$/.exec(path) ?? [];
      const own = issuer + tenant;
      if (isAway) return new Response("away", { status: 503 });
      if (pathname === "/.well-known/openid-configuration")
        return Response.json({ issuer: own, jwks_uri: `${own}/jwks` });
      const publicKey = { ...key.publicKey.export({ format: "jwk" }), kid: key.kid, alg: "RS256" };
      if (pathname === "/jwks") return Response.json(published ? published(publicKey) : { keys: [publicKey] });
      // This is the endpoint that a job asks: ACTIONS_ID_TOKEN_REQUEST_URL.
      const audience = new URL(request.url).searchParams.get("audience");
      if (pathname !== "/token" || request.headers.get("authorization") !== "Bearer runner" || audience === null)
        return new Response("", { status: 401 });
      return Response.json({ value: token({ aud: audience }) });
    },
  });
  const issuer: string = server.url.origin;

  /** A token of a job; undefined claims are left out. */
  function token(claims: Record<string, unknown>, { alg = "RS256", signer = key } = {}): string {
    const iat = Math.floor(now() / 1000);
    const job = { repository: "acme/docs", ref: "refs/heads/main", jti: crypto.randomUUID() };
    const signed = `${encode({ alg, kid: signer.kid, typ: "JWT" })}.${encode({ iss: issuer, iat, exp: iat + 300, ...job, ...claims })}`;
    const signature =
      alg === "none" ? "" : sign("sha256", Buffer.from(signed), signer.privateKey).toString("base64url");
    return `${signed}.${signature}`;
  }

  return {
    issuer,
    /** Paths of all requests. */
    seen,
    token,
    /** A key that the issuer doesn't publish, with the ID of the published one. */
    foreignKey: () => newKey(key.kid),
    /** From now on, the issuer publishes the result of this function on its key. */
    publish(make: (own: object) => unknown): void {
      published = make;
    },
    rotate(): void {
      key = newKey(String(Number(key.kid) + 1));
    },
    goAway(): void {
      isAway = true;
    },
    close: () => server.stop(true),
  };
}
