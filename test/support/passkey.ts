import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";

type Options = { challenge: string };

const sha256 = (data: string | Uint8Array) => createHash("sha256").update(data).digest();
const text = (value: object) => Buffer.from(JSON.stringify(value));

/** A byte string in CBOR. */
const bytes = (data: Uint8Array) => Buffer.concat([Buffer.from([0x58, data.length]), data]);

/** A device that has a passkey for a site and always verifies its user, written after the Web Authentication specification, level 3. */
export function createPasskeyDevice(origin: string) {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const id = randomBytes(32);
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  // {1: 2, 3: -7, -1: 1, -2: x, -3: y}: an elliptic curve key for ES256.
  const coseKey = Buffer.concat([
    Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21]),
    bytes(Buffer.from(x, "base64url")),
    Buffer.from([0x22]),
    bytes(Buffer.from(y, "base64url")),
  ]);
  const rpIdHash = sha256(new URL(origin).hostname);
  let uses = 0;
  /** `flags`: 1 present, 4 verified, 64 with the key. */
  const authData = (flags: number, rest = Buffer.alloc(0)) => {
    const count = Buffer.alloc(4);
    count.writeUInt32BE(++uses);
    return Buffer.concat([rpIdHash, Buffer.from([flags]), count, rest]);
  };
  const clientData = (type: string, { challenge }: Options) => text({ type, challenge, origin, crossOrigin: false });
  const toCredential = (response: Record<string, Uint8Array>) =>
    JSON.stringify({
      ...{ id: id.toString("base64url"), rawId: id.toString("base64url"), type: "public-key" },
      response: Object.fromEntries(
        Object.entries(response).map(([name, value]) => [name, Buffer.from(value).toString("base64url")]),
      ),
      clientExtensionResults: {},
    });
  return {
    /** The answer to the options of a new passkey. */
    create(options: Options): string {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(id.length);
      const data = authData(1 | 4 | 64, Buffer.concat([Buffer.alloc(16), length, id, coseKey]));
      // {"fmt": "none", "attStmt": {}, "authData": data}
      const attestationObject = Buffer.concat([
        Buffer.from([0xa3, 0x63]),
        Buffer.from("fmt"),
        Buffer.from([0x64]),
        Buffer.from("none"),
        Buffer.from([0x67]),
        Buffer.from("attStmt"),
        Buffer.from([0xa0, 0x68]),
        Buffer.from("authData"),
        bytes(data),
      ]);
      return toCredential({ clientDataJSON: clientData("webauthn.create", options), attestationObject });
    },
    /** The answer to the options of a sign-in. */
    get(options: Options): string {
      const clientDataJSON = clientData("webauthn.get", options);
      const authenticatorData = authData(1 | 4);
      const signature = sign("sha256", Buffer.concat([authenticatorData, sha256(clientDataJSON)]), privateKey);
      return toCredential({ clientDataJSON, authenticatorData, signature });
    },
  };
}
