import type { ComponentChildren } from "preact";
import { Fact } from "./figures.tsx";
import { ExternalLink, foreignText } from "./layout.tsx";

/** Values that are nested deeper than this are shown as JSON. */
const maxDepth = 3;
const isMap = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === "object" && !Array.isArray(value);
const isPrimitive = (value: unknown): boolean => value === null || typeof value !== "object";

/**
 * The fields of an event. Text is shown as it is. Everything else is shown as colored JSON, such as the `raw` fields of an unreadable milestone. All
 * fields are untrusted data.
 */
export function Payload({ fields, depth = 1 }: { fields: Record<string, unknown>; depth?: number }) {
  return (
    <dl class="payload">
      {Object.entries(fields).map(([name, value]) => (
        <Fact key={name} name={name}>
          <Value value={value} depth={depth === 1 && name === "raw" ? maxDepth : depth} />
        </Fact>
      ))}
    </dl>
  );
}

function Value({ value, depth }: { value: unknown; depth: number }) {
  if (typeof value === "string") {
    if (/^https?:\/\/\S+$/.test(value)) return <ExternalLink url={value} />;
    return value.includes("\n") || value.length > 200 ? (
      <pre {...foreignText}>{value}</pre>
    ) : (
      <span class="s" {...foreignText}>
        {value || "“”"}
      </span>
    );
  }
  if (isMap(value) && depth < maxDepth && Object.keys(value).length > 0)
    return <Payload fields={value} depth={depth + 1} />;
  if (isPrimitive(value)) return <code class={kindOf(String(value))}>{String(value)}</code>;
  const json = JSON.stringify(value, null, 2);
  return json.includes("\n") ? <pre>{highlightJson(json)}</pre> : <code>{json}</code>;
}

const jsonString = /"(?:[^"\\]|\\.)*"/.source;
const jsonWord = /\b(?:true|false|null)\b/.source;
const jsonNumber = /-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/.source;
/** Matches the tokens of JSON: strings (including the colon after a key), words and numbers. */
const tokens = new RegExp(`(${jsonString})(\\s*:)?|${jsonWord}|${jsonNumber}`, "gi");

const kindOf = (token: string): string => (/^-?\d/.test(token) ? "n" : "b");

/** JSON with syntax colors. Its CSS classes are `k` for keys, `s` for strings, `n` for numbers, and `b` for booleans and null. */
function highlightJson(json: string): ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  let at = 0;
  for (const match of json.matchAll(tokens)) {
    const [whole, text, colon] = match;
    parts.push(json.slice(at, match.index));
    const stringKind = colon === undefined ? "s" : "k";
    parts.push(<span class={text === undefined ? kindOf(whole) : stringKind}>{whole}</span>);
    at = match.index + whole.length;
  }
  return [...parts, json.slice(at)];
}
