/** A command whose words are all plain: nothing in it is expanded, computed, redirected or run in the background. */
export type PlainCommand = { words: string[]; isPiped: boolean };

const plainWord = /^(?:[\w@%+=:,./~{}-]+|'[^']*'|"[^"$`\\!]*")+/;
const gap = /^(?:[ \t]|2>&1|2>\/dev\/null|\\\n)+/;
const separator = /^(?:&&|;|\n|\|(?![|&]))[ \t\n]*/;
const assignment = /^[A-Za-z_]\w*=/;

/**
 * The commands of a shell line that consists of plain commands; null if there is anything else in it. `variables`: names of variables that the prompt
 * set. They are plain as well.
 */
export function plainCommandsOf(line: string, variables: readonly string[] = []): PlainCommand[] | null {
  const isKnown = (name: string) => variables.includes(name);
  // Values of variables don't matter here, so each is replaced by its name. Any other $ is plain only in single quotes.
  let rest = line.trim().replace(/\$\{?([A-Za-z_]\w*)\}?/g, (whole, name) => (isKnown(name) ? name : whole));
  const commands: PlainCommand[] = [];
  let words: string[] = [];
  let isPiped = false;
  const take = (pattern: RegExp) => {
    const token = pattern.exec(rest)?.[0] ?? "";
    rest = rest.slice(token.length);
    return token;
  };
  while (rest !== "") {
    if (take(gap) !== "") continue;
    const end = take(separator);
    const word = end === "" ? take(plainWord) : "";
    if (word !== "") words.push(word.replace(/['"]/g, ""));
    else if (end === "" || words.length === 0) return null;
    else {
      commands.push({ words, isPiped });
      isPiped = end.startsWith("|");
      words = [];
    }
  }
  if (words.length > 0) commands.push({ words, isPiped });
  return commands.some((command) => assignment.test(command.words[0]!)) ? null : commands;
}
