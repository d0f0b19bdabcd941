import type { Context, OrgId } from "../context.ts";
import type { SkippedBuild } from "../db/tables/bisects.ts";
import { badRequest, invalidField } from "../errors.ts";
import { createGuard, GuardError } from "../net/guarded.ts";
import type { PromptRow } from "../prompts/prompt-check.ts";
import { defaultStartUrls } from "../prompts/start-urls.ts";
import { getProvider } from "../providers/providers.ts";
import { checkHttpUrl } from "../schema.ts";
import { placeholder } from "./schema.ts";

/** How long a build may take to answer, and how many times it is asked. */
const timeoutMs = 20_000;
const tries = 2;

/** Where runs of a prompt start. Throws bad_request if it has no docs, which a build could replace. */
function startOf(ctx: Context, org: OrgId, prompt: PromptRow): URL {
  const provider = prompt.targetProviderId === null ? null : getProvider(ctx, org, prompt.targetProviderId);
  const [first] = defaultStartUrls(prompt, provider);
  if (first === undefined) throw badRequest("The prompt names no docs that a build could replace.");
  return new URL(first);
}

/** The address of the build of a commit. */
const toAddress = (urlTemplate: string, commit: string): string =>
  urlTemplate.replaceAll(placeholder, encodeURIComponent(commit));

/** Throws bad_request, which names the field, for an invalid template. */
export function checkTemplate(urlTemplate: string): void {
  if (!urlTemplate.includes(placeholder)) throw invalidField("urlTemplate", `it must contain ${placeholder}`);
  checkHttpUrl("urlTemplate", toAddress(urlTemplate, "a1b2c3d"));
}

/**
 * The urlMap that puts the build of a commit in the place of the docs. If an address ends with the path at which the docs start, such as /docs, it is
 * the address of that page in the build. Any other address is the root of the build.
 */
export function urlMapOf(
  ctx: Context,
  org: OrgId,
  prompt: PromptRow,
  { urlTemplate, commit }: { urlTemplate: string; commit: string },
): Record<string, string> {
  const start = startOf(ctx, org, prompt);
  const target = new URL(toAddress(urlTemplate, commit));
  const pathOf = ({ pathname }: URL) => pathname.replace(/\/+$/, "");
  const [path, startPath] = [pathOf(target), pathOf(start)];
  target.pathname = startPath !== "" && path.endsWith(startPath) ? path.slice(0, -startPath.length) : path;
  return { [start.host]: target.href.replace(/\/$/, "") };
}

/** Requests the first page of a build. Returns why the build can't be run; null: it answers. */
export async function findBuildProblem(
  ctx: Context,
  org: OrgId,
  prompt: PromptRow,
  urlMap: Record<string, string>,
): Promise<Omit<SkippedBuild, "build"> | null> {
  const guard = createGuard({ allow: ctx.allow(), urlMap, now: ctx.now, keepsAlive: false });
  const { href } = startOf(ctx, org, prompt);
  let problem: Omit<SkippedBuild, "build"> | null = null;
  for (let i = 0; i < tries; i++) {
    try {
      const init = { timeoutMs, maxBytes: 65_536, cutsBody: true, signal: ctx.stopping };
      const { status } = await guard.request(href, init);
      if (status < 400) return null;
      problem = { reason: "http_error", status };
    } catch (error) {
      if (!(error instanceof GuardError)) throw error;
      ctx.stopping.throwIfAborted();
      problem = { reason: "no_answer", status: null };
    }
  }
  return problem;
}
