import { renderToString } from "preact-render-to-string";

/** Average width of a character in Verdana at 11 px. */
const charWidth = 6.6;
const padding = 6;

const colors = { A: "#2e7d32", B: "#558b2f", C: "#9a6700", D: "#bf5b04", F: "#b3261e" } as const;
const gray = "#57606a";

/** The color of a grade such as `B+`. Without a grade, it is gray. */
const colorOf = (grade: string | null) => colors[grade?.charAt(0) as keyof typeof colors] ?? gray;

const widthOf = (text: string) => Math.ceil(text.length * charWidth) + 2 * padding;

const label = "evald";

/** What a badge says about a prompt. `grade`: gives the color; null for gray. */
export type Badge = { message: string; grade: string | null };

/** The badge as JSON of a Shields endpoint. */
export const toShields = ({ message, grade }: Badge) => ({
  schemaVersion: 1,
  label,
  message,
  color: colorOf(grade).slice(1),
});

/** The badge as SVG, with `message` in the color of its grade. */
export function renderBadge({ message, grade }: Badge): string {
  const [left, right] = [widthOf(label), widthOf(message)];
  const part = (text: string, from: number, width: number) => (
    <text x={from + width / 2} y="14" textLength={width - 2 * padding} lengthAdjust="spacingAndGlyphs">
      {text}
    </text>
  );
  return renderToString(
    <svg
      xmlns="http://www.w3.org/2000/svg"
      width={left + right}
      height="20"
      viewBox={`0 0 ${left + right} 20`}
      role="img"
      aria-label={`${label}: ${message}`}
    >
      <title>{`${label}: ${message}`}</title>
      <clipPath id="round">
        <rect width={left + right} height="20" rx="3" />
      </clipPath>
      <g clip-path="url(#round)">
        <rect width={left} height="20" fill="#24292f" />
        <rect x={left} width={right} height="20" fill={colorOf(grade)} />
      </g>
      <g fill="#fff" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
        {part(label, 0, left)}
        {part(message, left, right)}
      </g>
    </svg>,
  );
}
