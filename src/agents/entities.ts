/** Common named references with their characters; numeric ones are always decoded. */
const namedReferences = `
  amp &  lt <  gt >  quot "  apos '  copy ©  reg ®  trade ™  hellip …  mdash —  ndash –  lsquo ‘  rsquo ’  ldquo “
  rdquo ”  laquo «  raquo »  bull •  middot ·  para ¶  sect §  times ×  rarr →  larr ←  uarr ↑  darr ↓  le ≤  ge ≥
  ne ≠  equals =  num #  lbrace {  lcub {  rbrace }  rcub }  lsqb [  rsqb ]  lpar (  rpar )  colon :  comma ,
  period .  sol /  bsol \\  grave \`  ast *  lowbar _  dollar $  percnt %  plus +  vert |  auml ä  ouml ö  uuml ü
  Auml Ä  Ouml Ö  Uuml Ü  szlig ß  eacute é  egrave è  ecirc ê  agrave à  aacute á  acirc â  ccedil ç  iacute í
  oacute ó  uacute ú  ntilde ñ
`;
const charactersByName = new Map([
  ["nbsp", " "],
  ["tab", "\t"],
  ["Tab", "\t"],
  ["NewLine", "\n"],
  ...namedReferences.matchAll(/(\w+) (\S)/g).map(([, name, character]): [string, string] => [name!, character!]),
]);

const lastCodePoint = 0x10ffff;

/** Decodes character references. A no-break space becomes a plain space, as when copying from a browser. */
export function decodeEntities(raw: string): string {
  return raw
    .replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z]+));/g, (whole, decimal, hex, name) => {
      if (name) return charactersByName.get(name) ?? whole;
      const point = decimal ? Number(decimal) : Number.parseInt(hex, 16);
      return point > 0 && point <= lastCodePoint ? String.fromCodePoint(point) : whole;
    })
    .replaceAll("\u00a0", " ");
}

/** HTML text as one line. */
export const oneLine = (raw: string) => decodeEntities(raw).replace(/\s+/g, " ").trim();
