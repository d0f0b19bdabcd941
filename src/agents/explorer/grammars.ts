import { parser as cpp } from "@lezer/cpp";
import { parser as go } from "@lezer/go";
import { parser as java } from "@lezer/java";
import { parser as javascript } from "@lezer/javascript";
import { parser as php } from "@lezer/php";
import { parser as python } from "@lezer/python";
import { parser as rust } from "@lezer/rust";

/** Parsers that read any text, and say where it isn't of their language. */
export const grammars = { script: javascript.configure({ dialect: "ts jsx" }), python, go, java, rust, cpp, php };
export type GrammarName = keyof typeof grammars;
export const grammarNames = Object.keys(grammars) as GrammarName[];

/** The tag to put before a sample. Without a tag, PHP would be text up to the first tag. A template starts with a tag of either kind. */
export const openingOf = (language: GrammarName, code: string): string =>
  language === "php" && !/^\s*<(?=[\s\S]*<\?|\?)/.test(code) ? "<?php " : "";
