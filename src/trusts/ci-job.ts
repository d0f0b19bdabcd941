import type { trusts } from "../db/tables/keys.ts";
import type { Claims } from "./id-token.ts";

type Trust = typeof trusts.$inferSelect;

/**
 * Where a job runs, according to its token. `ref`: the full ref, such as `refs/heads/main`. null: unknown, because the token may name a ref of the
 * repository while code of a fork runs.
 */
export type CiJob = {
  repository: string | null;
  repositoryId: string | null;
  ref: string | null;
  environment: string | null;
};

const textOf = (claim: unknown): string | null => (typeof claim === "string" ? claim : null);
/** GitLab sends IDs as strings or numbers, depending on its version. */
const idOf = (claim: unknown): string | null => (Number.isSafeInteger(claim) ? String(claim) : textOf(claim) || null);

/** Events that pull requests of forks cause. For these, the token names a branch of the repository itself. */
const foreignEvents = ["pull_request_target", "workflow_run"];

/**
 * Sources of pipelines whose token may name the branch of a fork. Child pipelines don't say what their parent was.
 * https://docs.gitlab.com/ci/secrets/id_token_authentication/
 */
const foreignSources = ["merge_request_event", "external_pull_request_event", "parent_pipeline"];

function gitlabRefOf({ ref, ref_type, ref_protected, pipeline_source }: Claims): string | null {
  if (typeof ref !== "string" || typeof pipeline_source !== "string") return null;
  if (ref_type === "tag") return `refs/tags/${ref}`;
  // A pipeline for a merge request is protected only if both branches are protected branches of this project.
  const isProtected = ref_protected === true || ref_protected === "true";
  return ref_type === "branch" && (isProtected || !foreignSources.includes(pipeline_source))
    ? `refs/heads/${ref}`
    : null;
}

const readers: Record<Trust["provider"], (claims: Claims) => CiJob> = {
  github: ({ repository, repository_id, ref, environment, event_name }) => ({
    repository: textOf(repository),
    repositoryId: idOf(repository_id),
    ref: foreignEvents.includes(String(event_name)) ? null : textOf(ref),
    environment: textOf(environment),
  }),
  gitlab: (claims) => ({
    repository: textOf(claims.project_path),
    repositoryId: idOf(claims.project_id),
    ref: gitlabRefOf(claims),
    environment: textOf(claims.environment),
  }),
};

/** The job of a token, as a CI provider describes it. */
export const toCiJob = (provider: Trust["provider"], claims: Claims): CiJob => readers[provider](claims);

/** The full ref of a trust. On GitLab, a mere name is the name of a branch. */
const toFullRef = (provider: Trust["provider"], ref: string): string =>
  provider === "gitlab" && !ref.startsWith("refs/") ? `refs/heads/${ref}` : ref;

/**
 * Whether a trust covers a job. Upper and lower case don't matter in repositories and environments, but they do in refs. If a repository has the
 * trusted name but another ID, it is another repository that took the name.
 */
export function covers(trust: Trust, job: CiJob): boolean {
  const isSameName = (pinned: string, actual: string | null) => pinned.toLowerCase() === actual?.toLowerCase();
  const { repository, repositoryId, environment } = trust;
  const ref = trust.ref === null ? null : toFullRef(trust.provider, trust.ref);
  return (
    isSameName(repository, job.repository) &&
    (repositoryId === null || repositoryId === job.repositoryId) &&
    (ref === null || (job.ref !== null && matchesRef(job.ref, ref))) &&
    (environment === null || isSameName(environment, job.environment))
  );
}

/** `pattern`: a ref, or the beginning of a ref followed by `*`. */
const matchesRef = (ref: string, pattern: string): boolean =>
  pattern.endsWith("*") ? ref.startsWith(pattern.slice(0, -1)) : ref === pattern;
