import { fromSkillText, intervalText, wrongText } from "../../experiments/labels.ts";
import type { Experiment } from "../../experiments/schema.ts";
import { Fold, List } from "./figures.tsx";
import { foreignText } from "./layout.tsx";

/** Whether agents used the skill or server when they should, and the prompts for which they didn't. */
export const TriggeringTable = ({ experiment, base }: { experiment: Experiment; base: string }) => {
  const { prompts, triggerOf, analysis } = experiment;
  if (analysis.triggering.length === 0) return null;
  const promptsById = new Map(prompts.map((prompt) => [prompt.id, prompt]));
  const wrongPrompts = analysis.triggering.flatMap(({ arm, agent, wrong }) =>
    wrong.map((run) => ({ ...run, arm, agent })),
  );
  const skillText = fromSkillText(experiment);
  return (
    <section id="triggering">
      <h2>
        Triggering <small {...foreignText}>{triggerOf}</small>
      </h2>
      <p>Whether agents used the skill or MCP server when they should, and left it alone when they should not.</p>
      <List
        label="Triggering"
        isStacked
        labels={["Arm", "Agent"]}
        numbers={[
          "Precision (95% CI)",
          "Recall (95% CI)",
          "F1 (95% CI)",
          "Used, should",
          "Used, should not",
          "Missed",
          "Left alone",
        ]}
      >
        {analysis.triggering.map((each) => (
          <tr key={`${each.arm} ${each.agent}`}>
            <th scope="row" {...foreignText}>
              {each.arm}
            </th>
            <td data-label="Agent">{each.agent}</td>
            <td class="number" data-label="Precision (95% CI)">
              {intervalText(each.precision)}
            </td>
            <td class="number" data-label="Recall (95% CI)">
              {intervalText(each.recall)}
            </td>
            <td class="number" data-label="F1 (95% CI)">
              {intervalText(each.f1)}
            </td>
            <td class="number" data-label="Used, should">
              {each.truePositives}
            </td>
            <td class="number" data-label="Used, should not">
              {each.falsePositives}
            </td>
            <td class="number" data-label="Missed">
              {each.falseNegatives}
            </td>
            <td class="number" data-label="Left alone">
              {each.trueNegatives}
            </td>
          </tr>
        ))}
      </List>
      {skillText && <p class="muted">{skillText}</p>}
      {wrongPrompts.length > 0 && (
        <Fold id="wrong-prompts" title="Prompts that went wrong" count={wrongPrompts.length}>
          <List label="Prompts that went wrong" isStacked labels={["Prompt", "Arm", "Agent", "Wrong"]}>
            {wrongPrompts.map((each) => (
              <tr key={`${each.promptId} ${each.arm} ${each.agent}`}>
                <th scope="row" {...foreignText}>
                  <a href={`${base}/prompts/${each.promptId}`}>
                    {promptsById.get(each.promptId)?.title ?? "Deleted prompt"}
                  </a>
                  {promptsById.get(each.promptId)?.fromSkill && <small> derived from the skill’s description</small>}
                </th>
                <td data-label="Arm" {...foreignText}>
                  {each.arm}
                </td>
                <td data-label="Agent">{each.agent}</td>
                <td data-label="Wrong">{wrongText(each)}</td>
              </tr>
            ))}
          </List>
        </Fold>
      )}
    </section>
  );
};
