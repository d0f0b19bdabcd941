import { RequestError } from "@agentclientprotocol/sdk";
import { type Fields, list, number, object, text } from "../fields.ts";
import type { SandboxProcess } from "../sandbox/sandbox.ts";
import type { TerminalText } from "./acp-updates.ts";

/** A command of the client, in a sandbox of its own with the workspace and the network of the session. */
export type ClientCommand = { argv: string[]; env?: Record<string, string> };

type Terminal = {
  process: SandboxProcess;
  text: TerminalText;
  signal: string | null;
  isCut: boolean;
  maxChars: number;
  /** Resolves when the command has ended and its output has been read. */
  ended: Promise<void>;
};

const maxOutputChars = 256 * 1024;
const maxTerminals = 32;
/** Agents read whole files. */
const maxFileBytes = 4 * 1024 * 1024;
const resourceNotFound = -32_002;
const invalidParams = -32_602;

/** Goes to the folder `$1` and becomes the command after it. */
const inFolder = 'cd -- "$1" || exit 126; shift; exec "$@"';
const readFile = `[ -f "$1" ] || { echo "No such file" >&2; exit 1; }; head -c ${maxFileBytes} -- "$1"`;
const writeFile = 'mkdir -p -- "$(dirname -- "$1")" && cat >"$1"';

/**
 * The files and terminals that a client of the Agent Client Protocol offers to its agent. Everything happens in sandboxes, so an agent can reach no
 * more than with commands of its own. `start` starts a command.
 */
export type ClientMethods = {
  start: (command: ClientCommand) => SandboxProcess;
  terminals: Map<string, Terminal>;
};

/** The methods for a session that has no terminals yet. `start`: starts a command in the workspace. */
export const createClientMethods = (start: ClientMethods["start"]): ClientMethods => ({ start, terminals: new Map() });

/**
 * Runs a command on a file to its end. If it fails, throws a RequestError with what it printed to stderr. The text for a missing file is the one that
 * the protocol's SDKs use, because agents recognize it.
 */
async function run({ start }: ClientMethods, argv: string[], stdin = ""): Promise<string> {
  const process = start({ argv });
  const outputs = Promise.all([new Response(process.stdout).text(), new Response(process.stderr).text()]);
  try {
    process.stdin.write(stdin);
    await process.stdin.end();
  } catch {
    // The command ended before it had read its input.
  }
  const { exitCode } = await process.ended;
  const [stdout, stderr] = await outputs;
  if (exitCode !== 0)
    throw new RequestError(resourceNotFound, `Resource not found: ${argv.at(-1)}: ${stderr.trim().slice(-300)}`);
  return stdout;
}

/** The content of a file; with `line`, 1-based, and `limit`, a part of its lines. Throws a RequestError. */
export async function readTextFile(client: ClientMethods, { path, line, limit }: Fields) {
  const content = await run(client, ["sh", "-c", readFile, "sh", absolutePath(path)]);
  const [first, count] = [number(line), number(limit)];
  if (first === null && count === null) return { content };
  const from = Math.max(0, (first ?? 1) - 1);
  const lines = content.split("\n").slice(from, count === null ? undefined : from + count);
  return { content: lines.join("\n") };
}

/** Writes a file, and the folders that it needs. Throws a RequestError. */
export async function writeTextFile(client: ClientMethods, { path, content }: Fields) {
  await run(client, ["sh", "-c", writeFile, "sh", absolutePath(path)], text(content));
  return {};
}

/** Starts a command. Throws a RequestError if there are too many. */
export function createTerminal(
  { start, terminals }: ClientMethods,
  { command, args, env, cwd, outputByteLimit }: Fields,
) {
  if (terminals.size >= maxTerminals) throw new RequestError(invalidParams, `there are ${maxTerminals} terminals`);
  const variables = list(env).map(object);
  // A command without arguments may be a line for a shell, as agents write it.
  const words = [text(command), ...list(args).map(text)];
  const argv = words.length === 1 ? ["sh", "-c", text(command)] : words;
  const process = start({
    argv: ["sh", "-c", inFolder, "sh", text(cwd) || "/workspace", ...argv],
    env: Object.fromEntries(variables.map(({ name, value }) => [text(name), text(value)])),
  });
  process.stdin.end();
  const terminal: Terminal = {
    process,
    text: { output: "", exitCode: null },
    signal: null,
    isCut: false,
    maxChars: Math.min(number(outputByteLimit) ?? maxOutputChars, maxOutputChars),
    ended: Promise.resolve(),
  };
  terminal.ended = follow(terminal);
  const terminalId = `terminal-${terminals.size + 1}`;
  terminals.set(terminalId, terminal);
  return { terminalId };
}

/** Throws a RequestError. */
function getTerminal({ terminals }: ClientMethods, { terminalId }: Fields): Terminal {
  const terminal = terminals.get(text(terminalId));
  if (!terminal) throw new RequestError(resourceNotFound, `there is no terminal ${text(terminalId)}`);
  return terminal;
}

/** What a terminal has printed, and how it ended; `exitStatus` is null while it runs. Throws a RequestError. */
export function readOutput(client: ClientMethods, params: Fields) {
  const { text: printed, signal, isCut } = getTerminal(client, params);
  const { output, exitCode } = printed;
  const exitStatus = exitCode === null && signal === null ? null : { exitCode, signal };
  return { output, truncated: isCut, exitStatus };
}

/** How a terminal ends. Throws a RequestError. */
export async function waitForExit(client: ClientMethods, params: Fields) {
  const terminal = getTerminal(client, params);
  await terminal.ended;
  return { exitCode: terminal.text.exitCode, signal: terminal.signal };
}

/** Kills the command of a terminal. Its output stays, because a call may still refer to it. Throws a RequestError. */
export function killTerminal(client: ClientMethods, params: Fields) {
  getTerminal(client, params).process.kill();
  return {};
}

/** What a terminal has printed; null: there is none with this ID. */
export const findTerminalText = ({ terminals }: ClientMethods, id: string): TerminalText | null =>
  terminals.get(id)?.text ?? null;

/** Kills what still runs, and waits for its end. */
export async function closeTerminals({ terminals }: ClientMethods): Promise<void> {
  for (const { process } of terminals.values()) process.kill();
  await Promise.all([...terminals.values()].map(({ process }) => process.ended));
}

/** Collects what a terminal prints, and how it ends. */
async function follow(terminal: Terminal): Promise<void> {
  const { process } = terminal;
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) {
      const output = terminal.text.output + decoder.decode(bytes, { stream: true });
      terminal.isCut ||= output.length > terminal.maxChars;
      terminal.text.output = output.slice(-terminal.maxChars);
    }
  };
  await Promise.all([read(process.stdout), read(process.stderr)]).catch(() => {});
  const { exitCode } = await process.ended;
  if (exitCode > 128) terminal.signal = String(exitCode - 128);
  else terminal.text.exitCode = exitCode;
}

function absolutePath(path: unknown): string {
  if (!text(path).startsWith("/")) throw new RequestError(invalidParams, "path must be absolute");
  return text(path);
}
