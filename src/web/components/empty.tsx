import type { ComponentChildren } from "preact";

type Props = { base: string; heading: string; children: ComponentChildren };

/** A page without runs: its heading, an explanation of what will be shown, and a link to the prompts. */
export const NoRuns = ({ base, heading, children }: Props) => (
  <div class="empty">
    <h2>{heading}</h2>
    <p>{children}</p>
    <p>
      <a class="button main" href={`${base}/prompts`}>
        View prompts
      </a>
    </p>
  </div>
);
