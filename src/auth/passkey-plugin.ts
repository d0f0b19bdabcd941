import { passkey } from "@better-auth/passkey";
import { APIError } from "better-auth/api";

export type PasskeyPlugin = ReturnType<typeof createPasskeyPlugin>;

/**
 * Passkeys as a plugin of better-auth. better-auth accepts devices that don't verify who uses them, but we don't. A passkey replaces the password and
 * the second factor, so it must be unlocked with a PIN, a face or a fingerprint.
 */
export function createPasskeyPlugin(origin: string) {
  const plugin = passkey({
    rpName: "evald",
    origin,
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
    registration: {
      afterVerification: async ({ verification }) => requireVerified(verification.registrationInfo?.userVerified),
    },
    authentication: {
      afterVerification: async ({ verification }) => requireVerified(verification.authenticationInfo.userVerified),
    },
    advanced: { webAuthnChallengeCookie: "passkey" },
  });
  const { fields } = plugin.schema.passkey;
  return {
    ...plugin,
    schema: {
      ...plugin.schema,
      passkey: {
        fields: {
          ...fields,
          userId: { ...fields.userId, fieldName: "personId" },
          credentialID: { ...fields.credentialID, fieldName: "credentialId" },
        },
      },
    } as typeof plugin.schema,
  };
}

function requireVerified(isVerified: boolean | undefined): void {
  if (!isVerified)
    throw new APIError("BAD_REQUEST", {
      code: "USER_NOT_VERIFIED",
      message: "The passkey was not unlocked by a PIN, a face or a fingerprint.",
    });
}
