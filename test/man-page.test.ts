import { expect, test } from "bun:test";
import { toManPage } from "../release/man-page.ts";
import { createProgram } from "../src/cli/program.ts";
import { settingTable } from "../src/config/config.ts";
import { commandsOf } from "./support/generated.ts";

const lines = toManPage(1_790_000_000).split("\n");

test("the man page has every command, option and setting, and only known requests of groff", () => {
  const escaped = (text: string) => text.replaceAll("-", "\\-");
  for (const [name, command] of commandsOf(createProgram({}))) {
    const heading = `.SS "evald ${escaped(name)}`;
    const start = lines.findIndex((line) => line === `${heading}"` || line.startsWith(`${heading} `));
    expect([name, start > 0]).toEqual([name, true]);
    const end = lines.findIndex((line, i) => i > start && /^\.S[SH] /.test(line));
    const flags = command.options.filter(({ hidden }) => !hidden).map((option) => `\\fB${escaped(option.flags)}\\fR`);
    expect(lines.slice(start, end)).toEqual(expect.arrayContaining(flags));
  }
  expect(lines).toEqual(expect.arrayContaining(settingTable.map(({ name }) => `\\fB${name}\\fR`)));
  const requests = lines.filter((line) => /^[.']/.test(line)).map((line) => line.split(" ")[0]);
  expect([...new Set(requests)].sort()).toEqual([".B", ".IR", ".SH", ".SS", ".TH", ".TP"]);
  expect(lines[0]).toContain('"2026-09-21"');
});
