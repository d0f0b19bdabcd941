import type { MilestoneDetail } from "../milestones.ts";

/** A skill in the workspace. `digest`: SHA-256 of its files. */
export type Skill = MilestoneDetail<"workspace_prepared">["skills"][number];

const maxSkills = 100;
const maxMib = 10;
const maxHeadBytes = 16 * 1024;

/**
 * Copies skills to the folder `$2` of the workspace, from which the agent reads them. For each skill, prints a line with its name, its digest, and
 * the start of its SKILL.md in base64. The skills come from the folder `$1` of the workspace or, if `$1` is empty, from an archive on stdin.
 */
const script = `set -eu
fail() { echo "$1" >&2; exit 1; }
if [ -z "$1" ]; then
  from=/tmp/skills; mkdir "$from"
  tar -xzf - -C "$from" --no-same-owner --no-same-permissions
else
  from=$(realpath -e -- "/workspace/$1" 2>/dev/null) && [ -d "$from" ] || fail "the folder $1 does not exist in the workspace"
  case $from in /workspace|/workspace/*) ;; *) fail "the folder $1 is a link to a path outside the workspace";; esac
fi
bytes=$(du -sb -- "$from" | cut -f1)
[ "$bytes" -le ${maxMib * 1024 ** 2} ] || fail "the skills have $((bytes / 1048576)) MiB, more than the limit of ${maxMib} MiB"
to=/workspace/$2
mkdir -p "$to"
count=0
for file in "$from/SKILL.md" "$from"/*/SKILL.md; do
  [ -f "$file" ] || continue
  folder=$(dirname "$file")
  name=$(head -c ${maxHeadBytes} "$file" | sed -n 's/^name:[[:space:]]*//p' | head -n 1 | tr -d "\\"'\\r")
  [ -n "$name" ] || name=$(basename "$folder")
  case $name in *[!A-Za-z0-9._-]*|.*|-*) fail "the skill $(basename "$folder") has an invalid name: use letters, digits, dots, hyphens and underscores";; esac
  [ "$((count += 1))" -le ${maxSkills} ] || fail "there are more than ${maxSkills} skills"
  if ! [ "$folder" -ef "$to/$name" ]; then rm -rf "$to/$name"; cp -R -- "$folder" "$to/$name"; fi
  digest=$(cd "$folder" && find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-64)
  printf '%s %s %s\\n' "$name" "$digest" "$(head -c ${maxHeadBytes} "$file" | base64 -w 0)"
done
[ "$count" -gt 0 ] || fail "there is no SKILL.md in it or in one of its folders"`;

/** The command that copies the skills of `folder`, or of an archive on stdin, to `skillsFolder`, and prints what `readSkills` reads. */
export const skillsCommand = (folder: string, skillsFolder: string): string[] => [
  ...["sh", "-c", script, "sh"],
  folder,
  skillsFolder,
];

/** Reads the output of the command. */
export const readSkills = (output: string): Skill[] =>
  output
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [name = "", digest = "", head = ""] = line.split(" ");
      const text = Buffer.from(head, "base64").toString();
      return { name, digest, description: descriptionIn(text), ...openingIn(text) };
    });

const minOpeningChars = 20;
const maxOpeningChars = 300;

/** The first line of the instructions that is long enough to recognize them. */
function openingIn(text: string): { opening?: string } {
  const lines = text.replace(/^---\r?\n.*?\r?\n---/s, "").split("\n");
  const line = lines.map((each) => each.trim()).find(({ length }) => length >= minOpeningChars);
  return line === undefined ? {} : { opening: line.slice(0, maxOpeningChars).toWellFormed() };
}

/** Whether a path or URL leads to the main file of a skill. */
export const isSkillFile = (path: string): boolean => /(^|\/)SKILL\.md$/.test(path);

/** The description in the front matter of a SKILL.md; empty if it has none. */
export function descriptionIn(text: string): string {
  const [, front = ""] = /^---\r?\n(.*?)\r?\n---/s.exec(text) ?? [];
  try {
    const { description } = (Bun.YAML.parse(front) ?? {}) as { description?: unknown };
    return typeof description === "string" ? description.trim().slice(0, 1024) : "";
  } catch {
    return "";
  }
}
