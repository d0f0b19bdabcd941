import { invalidField } from "../errors.ts";
import type { TrustInput } from "./schema.ts";

type Shape = {
  repository: RegExp;
  path: string;
  /** Whether a ref, whose end may be a *, can match. */
  matches: (ref: string) => boolean;
  ref: string;
};

/** What the ID tokens of a provider can name: a trust with anything else would never match. */
const shapes: Record<TrustInput["provider"], Shape> = {
  github: {
    repository: /^[\w-]+\/[\w.-]+$/,
    path: "OWNER/NAME of the repository, such as acme/docs",
    matches: (ref) => ref.startsWith("refs/") || (ref.endsWith("*") && "refs/".startsWith(ref.slice(0, -1))),
    ref: "a full ref, such as refs/heads/main or refs/pull/*",
  },
  gitlab: {
    repository: /^[\w.-]+(\/[\w.-]+)+$/,
    path: "path of the project with its groups, such as acme/docs",
    matches: (ref) => !ref.startsWith("refs/"),
    ref: "the name of a branch or tag, such as main or release-*",
  },
};

/** Throws bad_request that names the field if no job of the provider could match. */
export function checkTrust({ provider, repository, ref = null }: TrustInput): void {
  const shape = shapes[provider];
  if (!shape.repository.test(repository) || repository.endsWith(".git"))
    throw invalidField("repository", `must be the ${shape.path}, not a URL`);
  if (ref !== null && !shape.matches(ref)) throw invalidField("ref", `must be ${shape.ref}`);
}
