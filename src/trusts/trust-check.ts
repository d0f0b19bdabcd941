import { invalidField } from "../errors.ts";
import type { TrustInput } from "./schema.ts";

type ProviderShape = {
  repository: RegExp;
  /** The form of repositories and refs, for error messages. */
  repositoryHint: string;
  refHint: string;
  /** Whether the ref of some job can match this ref, which may end with a *. */
  mayMatch: (ref: string) => boolean;
};

/** What the ID tokens of each provider can name. A trust with anything else would never match. */
const shapes: Record<TrustInput["provider"], ProviderShape> = {
  github: {
    repository: /^[\w-]+\/[\w.-]+$/,
    repositoryHint: "OWNER/NAME of the repository, such as acme/docs",
    // For example `ref*`.
    mayMatch: (ref) => ref.startsWith("refs/") || (ref.endsWith("*") && "refs/".startsWith(ref.slice(0, -1))),
    refHint: "a full ref, such as refs/heads/main or refs/pull/*",
  },
  gitlab: {
    repository: /^[\w.-]+(\/[\w.-]+)+$/,
    repositoryHint: "path of the project with its groups, such as acme/docs",
    mayMatch: (ref) => !ref.startsWith("refs/") || /^refs\/(heads\/|tags\/|\*$)/.test(ref),
    refHint: "the name of a branch, such as main or release-*, or a tag, such as refs/tags/v*",
  },
};

/** Throws bad_request, which names the field, if no job of the provider could match. */
export function checkTrust({ provider, repository, ref = null }: TrustInput): void {
  const shape = shapes[provider];
  if (!shape.repository.test(repository) || repository.endsWith(".git"))
    throw invalidField("repository", `must be the ${shape.repositoryHint}, not a URL`);
  if (ref !== null && !shape.mayMatch(ref)) throw invalidField("ref", `must be ${shape.refHint}`);
}
