import type { ListedTool } from "../agents/explorer/mcp-listing.ts";
import { type Candidate, type Drop, needsOf, toProposal } from "./candidate.ts";
import { isClear, type Phrase, toPhrase } from "./phrases.ts";
import type { HelpText, ProposalSource } from "./proposal.ts";

const commandName = /([a-z][\w:.-]{1,30})/;
/** For example ` <file>` or `, rm`. */
const argumentsOrAlias = /(?:[ ,|<[][^A-Z]{0,40}?)?/;
const blanksOrDash = /(?:\s{2,}|\s+[-–—]\s+)/;
const sentenceStart = /([A-Z][^.]{6,120})/;
/** A line of help about a command. The groups are its name and a sentence. */
const commandLine = new RegExp(
  `^\\s{1,12}${[commandName, argumentsOrAlias, blanksOrDash, sentenceStart].map(({ source }) => source).join("")}`,
);

/** A line that continues the sentence of the line before it. */
const continuation = /^\s{10,}(\S.*)/;

/** Candidates from the commands in help and manual pages. Each task says what to do, without naming the command to use. */
export function candidatesOfCommands(source: ProposalSource, drop: Drop): Candidate[] {
  return source.helpTexts.flatMap((help) => commandsOf(help, source, drop));
}

function commandsOf({ url, text, command }: HelpText, source: ProposalSource, drop: Drop): Candidate[] {
  return text.split("\n").flatMap((line, index, lines): Candidate[] => {
    const [, rest = ""] = continuation.exec(lines[index + 1] ?? "") ?? [];
    const [, name, description] = commandLine.exec(`${line} ${rest}`.slice(0, 300)) ?? [];
    if (!name || !description || /^(help|version|completion)$/.test(name)) return [];
    const phrase = phraseOf(description, drop);
    if (phrase === null) return [];
    const basis = { source: { url, line: index + 1, quote: line.trim() }, why: "command" as const };
    const proposal = toProposal(phrase, source, { ...basis, text: description });
    // Help shows the more important commands first. So a command loses a little score for each line before it.
    const score = 3 - index / 1000;
    return [{ proposal: { ...proposal, hints: [`The docs name ${command} ${name}.`] }, score }];
  });
}

/** Candidates from the tools of MCP servers. */
export function candidatesOfTools(source: ProposalSource, drop: Drop): Candidate[] {
  return source.mcpServers.flatMap((server) =>
    server.tools.flatMap((tool) => candidateOfTool(server.url, tool, source, drop)),
  );
}

function candidateOfTool(
  url: string,
  { name, description, isReadOnly }: ListedTool,
  source: ProposalSource,
  drop: Drop,
): Candidate[] {
  const sentence = description.split(/(?<=\.)\s|\n/)[0] ?? "";
  const phrase = phraseOf(sentence, drop);
  if (phrase === null) return [];
  const task = `${phrase.verb} ${phrase.rest}`;
  const basis = { source: { url, line: 1, quote: sentence }, why: "tool" as const };
  const proposal = toProposal(phrase, source, { ...basis, text: description });
  return [
    {
      score: isReadOnly ? 2 : 2.5,
      proposal: {
        ...proposal,
        text: `${proposal.title} with the MCP tools of ${source.product}. Write what you did and the result to result.md.`,
        endGoal: `result.md has the result of this task: ${task}.`,
        hints: [`The server has the tool ${name}.`],
        needs: needsOf(task, description),
      },
    },
  ];
}

/** The task that a description names first, without alternatives to its object. null: there is no clear task, which is counted as dropped. */
function phraseOf(description: string, drop: Drop): Phrase | null {
  const [first = ""] = description.split(/,\s|\s+or\s/);
  const phrase = toPhrase(first, () => true) ?? thirdPersonPhrase(first);
  if (phrase !== null && isClear(phrase)) return phrase;
  drop(phrase === null ? "no_action" : "needs_page");
  return null;
}

/** The task in "Creates a backup", in its base form; null if the text has none. */
export function thirdPersonPhrase(text: string): Phrase | null {
  const [first = "", ...rest] = text.split(" ");
  if (!first.endsWith("s")) return null;
  // These cover "copies", "creates" and "pushes".
  for (const verb of [first.replace(/ies$/i, "y"), first.replace(/s$/i, ""), first.replace(/es$/i, "")]) {
    const phrase = toPhrase([verb, ...rest].join(" "), () => true);
    if (phrase !== null) return phrase;
  }
  return null;
}
