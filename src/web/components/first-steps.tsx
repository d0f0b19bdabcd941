import type { Site } from "../site.ts";

/**
 * The steps that are already done. `promptId`: the first prompt, if there is one. `usesKeys`: whether an API key was used. `hasTeam`: whether
 * somebody else is a member or was invited.
 */
export type FirstSteps = {
  promptId: string | null;
  hasRuns: boolean;
  hasReports: boolean;
  hasSchedule: boolean;
  usesKeys: boolean;
  hasTeam: boolean;
};

/** Whether an organization has only the example prompt, provided that its steps are still shown. */
export const hasOnlyExample = (steps: FirstSteps | null): boolean => steps !== null && steps.promptId === null;

/** Whether an organization has taken all first steps. */
export const isComplete = ({ promptId, hasReports, hasSchedule, usesKeys, hasTeam }: FirstSteps): boolean =>
  promptId !== null && hasReports && hasSchedule && usesKeys && hasTeam;

type Step = { name: string; path: string; isDone: boolean };

/**
 * The number of steps at the beginning of the list that need a prompt. Without a prompt, they have no link, because the form for a prompt is on the
 * same page.
 */
const stepsOfPrompt = 3;

/** The setup checklist of an organization. It is shown until all steps are done or the list is hidden. */
export function FirstStepsList({ site: { base }, steps }: { site: Site; steps: FirstSteps }) {
  const { promptId } = steps;
  const prompt = promptId === null ? "/" : `/prompts/${promptId}`;
  const allSteps: Step[] = [
    { name: "Enter the URL of your docs", path: "/prompts/propose", isDone: promptId !== null },
    { name: "Get the first report", path: steps.hasRuns ? "/runs" : prompt, isDone: steps.hasReports },
    { name: "Schedule runs", path: promptId === null ? "/" : `${prompt}/edit#frequency`, isDone: steps.hasSchedule },
    { name: "Connect CI or an editor with an API key", path: "/settings/keys", isDone: steps.usesKeys },
    { name: "Invite your team", path: "/settings/members#invite", isDone: steps.hasTeam },
  ];
  const next = allSteps.findIndex(({ isDone }) => !isDone);
  return (
    <section class="first-steps" aria-labelledby="steps">
      <header class="toolbar">
        <h2 id="steps">
          First steps{" "}
          <small>
            {allSteps.filter(({ isDone }) => isDone).length} of {allSteps.length}
          </small>
        </h2>
        {promptId !== null && (
          <form method="post" action={`${base}/first-steps/hide`} class="end">
            <button type="submit">Hide</button>
          </form>
        )}
      </header>
      <ol>
        {allSteps.map(({ name, path, isDone }, i) => (
          <li key={name} class={isDone ? "done" : undefined} aria-current={i === next ? "step" : undefined}>
            {isDone || (promptId === null && i < stepsOfPrompt) ? name : <a href={base + path}>{name}</a>}
            {isDone && <span class="visually-hidden"> (done)</span>}
          </li>
        ))}
      </ol>
    </section>
  );
}
