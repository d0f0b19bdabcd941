import type { SandboxProcess } from "../sandbox/sandbox.ts";

/** Characters that are kept of each text. */
const maxChars = 1000;
const newline = 10;

/** The end of what an agent has printed that is no part of its stream. */
export type Printed = {
  /** Lines of stdout that its stream doesn't explain. */
  lines: string;
  /** The last line of stdout, which has not ended. */
  openLine: string;
  stderr: string;
};

/** The state before anything was printed. */
export const startPrinted = (): Printed => ({ lines: "", openLine: "", stderr: "" });

/** Adds a line of stdout that can't be read. */
export function addLine(printed: Printed, line: string): void {
  printed.lines = `${printed.lines}${line}\n`.slice(-maxChars);
  // If it is the last line and has no end, it was also read as the open line.
  printed.openLine = "";
}

/** The output of an agent, with what it prints recorded as it passes. `stderr` resolves when that has ended. */
export function recordPrinted({ stdout, stderr }: SandboxProcess, printed: Printed) {
  const decoder = new TextDecoder();
  const errorDecoder = new TextDecoder();
  const readErrors = async () => {
    for await (const bytes of stderr)
      printed.stderr = (printed.stderr + errorDecoder.decode(bytes, { stream: true })).slice(-maxChars);
  };
  return {
    stdout: stdout.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(bytes, out) {
          const lineStart = bytes.lastIndexOf(newline) + 1;
          const lastBytes = bytes.subarray(Math.max(lineStart, bytes.length - maxChars));
          const earlierText = lineStart > 0 ? "" : printed.openLine;
          printed.openLine = (earlierText + decoder.decode(lastBytes)).slice(-maxChars);
          out.enqueue(bytes);
        },
      }),
    ),
    stderr: readErrors().catch(() => {}),
  };
}

/** What was printed to stdout and stderr, without colors. */
export const textsOf = ({ lines, openLine, stderr }: Printed) => ({
  stdout: clean(lines + openLine),
  stderr: clean(stderr),
});

const clean = (text: string): string => Bun.stripANSI(text).replace(/\r/g, "").trim();
