import { familyOf } from "../agents/languages.ts";
import { overlapOf, type Phrase, thirdPerson } from "./phrases.ts";
import type { DropReason, ProposalSource, TaskProposal } from "./proposal.ts";

/** A proposal before it is ranked. `isWeak`: it says too little without its page, and is only proposed where there are few others. */
export type Candidate = { proposal: TaskProposal; score: number; isWeak?: boolean };

/** Counts candidates that are dropped. */
export type Drop = (reason: DropReason) => void;

type Product = { kind: "program" | "script" | "configuration"; what: string; file: string };

const program = (what: string, file: string): Product => ({ kind: "program", what, file });
const shellScript: Product = { kind: "script", what: "a shell script", file: "solution.sh" };
const configuration = (file: string): Product => ({ kind: "configuration", what: "a configuration", file });

/** What the agent writes, and to which file, by the language of the samples: its own name, else its family. */
const products: Record<string, Product> = {
  script: program("a JavaScript program", "solution.js"),
  ...Object.fromEntries(
    ["ts", "typescript", "mts", "cts"].map((each) => [each, program("a TypeScript program", "solution.ts")]),
  ),
  jsx: program("a JavaScript program", "solution.jsx"),
  mjs: program("a JavaScript program", "solution.mjs"),
  tsx: program("a TypeScript program", "solution.tsx"),
  python: program("a Python program", "solution.py"),
  go: program("a Go program", "main.go"),
  rust: program("a Rust program", "main.rs"),
  java: program("a Java program", "Solution.java"),
  ruby: program("a Ruby program", "solution.rb"),
  php: program("a PHP program", "solution.php"),
  csharp: program("a C# program", "Solution.cs"),
  kotlin: program("a Kotlin program", "Solution.kt"),
  scala: program("a Scala program", "Solution.scala"),
  dart: program("a Dart program", "solution.dart"),
  swift: program("a Swift program", "solution.swift"),
  lua: program("a Lua program", "solution.lua"),
  elixir: program("an Elixir program", "solution.exs"),
  c: program("a C program", "solution.c"),
  cpp: program("a C++ program", "solution.cpp"),
  svelte: program("a Svelte component", "solution.svelte"),
  vue: program("a Vue component", "solution.vue"),
  sql: { kind: "script", what: "an SQL script", file: "solution.sql" },
  shell: shellScript,
  session: shellScript,
  yaml: configuration("config.yaml"),
  json: configuration("config.json"),
  toml: configuration("config.toml"),
  ini: configuration("config.ini"),
  xml: configuration("config.xml"),
  hcl: configuration("config.hcl"),
  nginx: configuration("nginx.conf"),
  dockerfile: configuration("Dockerfile"),
};

/** What is done once, with commands, rather than written down as a program or a configuration. */
const oneTimeVerbs =
  /^(build|check|clean|clear|clone|deploy|discover|display|download|dump|fetch|find|inspect|install|list|print|query|remove|restart|run|search|show|start|stop|test|uninstall|update|verify|view|watch)$/;
/** What is written into a configuration rather than done with commands. */
const settingVerbs =
  /^(allow|configure|customize|declare|define|disable|enable|exclude|ignore|limit|map|override|restrict|set|specify)$/;

const cleanup =
  /^(delete|remove|uninstall|revoke|purge|prune|clean|clear|unsubscribe|drop|shut down|discard|reset|cancel)\b/;
const onboarding =
  /^(install|set up|authenticate|connect|create (an?|your) (new )?(project|app|application|account|repository|client)\b)/;
const errors = /\b(errors?|exceptions?|fail\w*|retry|retries|timeouts?|recover|debug|invalid|reject)\b/;
/** What costs money, destroys what others have or writes to people. */
const delicate =
  /\b(buy|purchase|order|pay|charge|refund|invite|e-?mails?|sms|text messages?|newsletter|notify|tweet|post to)\b|\b(delete|remove|purge|drop|erase)\b.*\b(users?|accounts?|members?|customers?|databases?|organi[sz]ations?|production|buckets?)\b/i;

/** What a person must provide, by the task and the text that it rests on. */
export function needsOf(task: string, basis: string): TaskProposal["needs"] {
  const needs: TaskProposal["needs"] = [];
  if (/\b(sign up|create an account|your account|dashboard)\b/i.test(basis)) needs.push("account");
  if (/\b(api[ _-]?keys?|access tokens?|client[ _-]secret|_TOKEN\b|_API_KEY\b|bearer)\b/i.test(basis))
    needs.push("secret");
  if (delicate.test(task)) needs.push("approval");
  return needs;
}

/** The kind of task, as a tag. */
const tagOf = (task: string): string => {
  const text = task.toLowerCase();
  if (cleanup.test(text)) return "cleanup";
  if (onboarding.test(text)) return "onboard";
  return errors.test(text) ? "errors" : "core";
};

/**
 * What the agent writes to show that it did a task, by the languages of the samples; null if they don't agree, or if a task of this kind is not
 * shown in this way. Then the agent writes down what it did.
 */
function productOf(verb: string, languages: (string | null)[]): Product | null {
  const known = languages.flatMap((label) => products[label ?? ""] ?? products[familyOf(label ?? "") ?? ""] ?? []);
  if (known.length * 2 < languages.length) return null;
  const byKind = Map.groupBy(known, ({ kind }) => kind);
  const mostOf = (kind: Product["kind"]): Product | null => {
    const byFile = Map.groupBy(byKind.get(kind) ?? [], ({ file }) => file);
    return [...byFile.values()].sort((a, b) => b.length - a.length)[0]?.[0] ?? null;
  };
  const [programOf, script, settings] = [mostOf("program"), mostOf("script"), mostOf("configuration")];
  if (programOf) return settings || oneTimeVerbs.test(verb) ? null : programOf;
  if (script && settings) return settingVerbs.test(verb) ? settings : null;
  if (script) return settingVerbs.test(verb) ? null : script;
  return oneTimeVerbs.test(verb) ? null : settings;
}

type Basis = Pick<TaskProposal, "source" | "why"> & {
  /** Languages of its samples. */
  languages: (string | null)[];
  text: string;
  /** What the page is about, if the task alone doesn't say it. */
  topic: string | null;
};

/** A proposal from rules: the docs' own words, with the subject, the product's name, and a file that holds the result. */
export function toProposal(phrase: Phrase, { product, docsUrl }: ProposalSource, basis: Basis): TaskProposal {
  const task = `${phrase.verb} ${phrase.rest}`;
  const { topic } = basis;
  const namesProduct = isNamedIn(product, `${topic ?? ""} ${task}`);
  const ending = namesProduct ? "" : / with /.test(task) ? `, using ${product}` : ` with ${product}`;
  const title = capitalized(task).slice(0, 200);
  const result = productOf(phrase.verb, basis.languages);
  const subject = topic === null ? "" : ` (${topic})`;
  const [order, goal] =
    result === null
      ? [
          "Put all commands, code and settings that it takes into solution.md.",
          `solution.md has all commands, code and settings that it takes to ${task}${ending}${subject}.`,
        ]
      : [
          `Write ${result.what} that does it to ${result.file}.`,
          `${result.file} contains ${result.what} that ${thirdPerson(phrase.verb)} ${phrase.rest}${ending}${subject}.`,
        ];
  return {
    title,
    text: `${title}${ending}${subject}. ${order}`,
    endGoal: goal,
    additionalUrls: [{ url: docsUrl }],
    tags: [tagOf(task)],
    declaredChecks: [],
    checksNotRun: null,
    hints: [],
    needs: needsOf(task, basis.text),
    by: "rules",
    source: basis.source,
    docsOwnWords: overlapOf(task, basis.source.quote) > maxOwnWords,
    why: basis.why,
  };
}

const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** Whether a text has a name as it is written, because some products are called like what they are about, such as Requests. */
const isNamedIn = (name: string, text: string): boolean =>
  ` ${text} `.replaceAll(/[“”"'’,.]/g, " ").includes(` ${name} `);

/** A goal that shares more of its words with the quoted text is in the docs' own words. */
export const maxOwnWords = 0.6;
