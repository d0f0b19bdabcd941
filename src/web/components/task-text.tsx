import { foreignText } from "./layout.tsx";

type Props = { task: { text: string; endGoal?: string | null }; heading?: "h2" | "h3" };

/** The task of an agent, and its end goal. */
export const TaskText = ({ task: { text, endGoal }, heading: Heading = "h2" }: Props) => (
  <>
    <Heading>Task</Heading>
    <p class="task" {...foreignText}>
      {text}
    </p>
    {endGoal && (
      <>
        <Heading>End goal</Heading>
        <p class="task" {...foreignText}>
          {endGoal}
        </p>
      </>
    )}
  </>
);
