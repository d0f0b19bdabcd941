import { parseObject } from "../agents/fields.ts";
import type { LoginEntry } from "../config/agent-entry.ts";
import { invalidField } from "../errors.ts";

/** Largest login file, in bytes. */
const maxLoginBytes = 64 * 1024;
/** Times in seconds since 1970 are below this. Times in milliseconds are above it. */
const maxSeconds = 1e11;

/** A login file as it is stored. `expiresAt`: epoch ms; null: the file doesn't say. */
type LoginFile = { content: string; expiresAt: number | null };

/** Checks the login file of an agent, and empties the fields that the agent's entry lists. Throws bad_request, which quotes nothing of the file. */
export function parseLoginFile(agent: string, text: string, { file, expiry, emptied = [] }: LoginEntry): LoginFile {
  if (text.trim() === "") throw invalidField("file", "is empty");
  if (Buffer.byteLength(text) > maxLoginBytes) throw invalidField("file", `has more than ${maxLoginBytes} bytes`);
  if (expiry === undefined && emptied.length === 0) return { content: text, expiresAt: null };
  const fields = parse(text);
  const expiresAt = expiry === undefined ? null : toTime(fieldOf(fields, expiry));
  if (expiry !== undefined && expiresAt === null)
    throw invalidField("file", `has no time in ${expiry}. Log in with ${agent}, and upload the file ~/${file}`);
  for (const path of emptied) emptyField(fields, path);
  return { content: JSON.stringify(fields), expiresAt };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidField("file", "is not valid JSON");
  }
}

/** The value at a path of names separated by dots; undefined: there is none. */
const fieldOf = (value: unknown, path: string): unknown =>
  path
    .split(".")
    .reduce<unknown>((rest, name) => (isObject(rest) && Object.hasOwn(rest, name) ? rest[name] : undefined), value);

function emptyField(value: unknown, path: string): void {
  const names = path.split(".");
  const last = names.pop() as string;
  const parent = names.length === 0 ? value : fieldOf(value, names.join("."));
  if (isObject(parent) && typeof parent[last] === "string") parent[last] = "";
}

/** A time as programs write it, in epoch ms: a number of seconds or milliseconds, ISO 8601, or the `exp` of a JSON Web Token. */
function toTime(value: unknown): number | null {
  if (typeof value === "number") return value < maxSeconds ? value * 1000 : value;
  if (typeof value !== "string") return null;
  const [, payload] = /^[\w-]+\.([\w-]+)\.[\w-]*$/.exec(value) ?? [];
  const time =
    payload === undefined
      ? Date.parse(value)
      : toTime(fieldOf(parseObject(Buffer.from(payload, "base64url").toString()), "exp"));
  return time === null || Number.isNaN(time) ? null : time;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
