import { readFileSync } from "node:fs";

/**
 * What the workflow runs for: the pull request and commit, and the URL of a deployment. Never the code of the pull request.
 * @typedef {{ number: number | null, sha: string, branch: string, deploymentUrl: string | null }} Context
 */

/**
 * Reads the event of the workflow.
 * @param {Record<string, string | undefined>} env
 * @param {{ getPull: (n: number) => Promise<any>, findPull: (owner: string, branch: string) => Promise<number | null>, findPullOf: (sha: string) => Promise<number | null> }} github
 * @returns {Promise<Context>}
 */
export async function readContext(env, github) {
  const event = env.GITHUB_EVENT_PATH ? JSON.parse(readFileSync(env.GITHUB_EVENT_PATH, "utf8")) : {};
  const rest = { branch: env.GITHUB_HEAD_REF || env.GITHUB_REF_NAME || "", deploymentUrl: null };
  if (event.pull_request)
    return {
      ...rest,
      number: event.pull_request.number,
      sha: event.pull_request.head.sha,
      branch: event.pull_request.head.ref,
    };
  if (event.issue?.pull_request) {
    const { head } = await github.getPull(event.issue.number);
    return { ...rest, number: event.issue.number, sha: head.sha, branch: head.ref };
  }
  if (event.deployment_status) {
    const { sha, ref } = event.deployment;
    const deploymentUrl = event.deployment_status.environment_url || event.deployment_status.target_url || null;
    return { number: await github.findPullOf(sha), sha, branch: ref, deploymentUrl };
  }
  if (event.workflow_run) {
    // From GitHub, not from the artifact: the job of a fork could name any pull request.
    const { head_sha: sha, head_branch: branch, head_repository: from } = event.workflow_run;
    // A deleted fork has no repository any more, but its pull request can be open.
    const number = from?.owner ? await github.findPull(from.owner.login, branch) : await github.findPullOf(sha);
    return { ...rest, number, sha, branch };
  }
  if (event.merge_group) {
    const { head_sha: sha, head_ref: ref } = event.merge_group;
    // refs/heads/gh-readonly-queue/main/pr-7-0123abcd
    const number = Number(/\/pr-(\d+)-[^/]*$/.exec(ref)?.[1] ?? Number.NaN);
    return { ...rest, number: Number.isInteger(number) ? number : null, sha };
  }
  return { ...rest, number: null, sha: env.GITHUB_SHA ?? "" };
}
