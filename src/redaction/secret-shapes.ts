/**
 * Formats of credentials, from the documentation of their issuers and the rules of gitleaks: a distinctive prefix, then the characters and
 * length of the rest. All start at a word boundary.
 */
const tokens: readonly string[] = [
  // GitHub, GitLab, Bitbucket, Docker Hub
  "gh[pousr]_[A-Za-z0-9]{36,255}",
  "github_pat_[A-Za-z0-9_]{60,255}",
  "gl(?:pat|dt|ft|oas|rt|cbt|soat|ptt|imt|agent)-[A-Za-z0-9_=-]{20,255}",
  "ATBB[A-Za-z0-9]{24,}",
  "ATATT3[A-Za-z0-9_=-]{100,}",
  "dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}",
  // Package registries
  "npm_[A-Za-z0-9]{36}",
  "pypi-[A-Za-z0-9_-]{50,}",
  "rubygems_[a-f0-9]{48}",
  "cio[A-Za-z0-9]{32}",
  // Model providers
  "sk-(?:ant|proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}",
  "sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}",
  "sk-[A-Za-z0-9]{32,64}",
  "hf_[A-Za-z0-9]{30,}",
  "gsk_[A-Za-z0-9]{40,}",
  "r8_[A-Za-z0-9]{30,}",
  "pplx-[A-Za-z0-9]{40,}",
  "xai-[A-Za-z0-9]{60,}",
  // Clouds and hosting
  "AIza[A-Za-z0-9_-]{35}",
  "ya29\\.[A-Za-z0-9_-]{20,}",
  "GOCSPX-[A-Za-z0-9_-]{28}",
  "(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
  "LTAI[A-Za-z0-9]{20}",
  "[A-Za-z0-9_~.]{3}\\dQ~[A-Za-z0-9_~.-]{31,34}",
  "do[opr]_v1_[a-f0-9]{64}",
  "hvs\\.[A-Za-z0-9_-]{24,}",
  "HRKU-AA[A-Za-z0-9_-]{58}",
  "nfp_[A-Za-z0-9]{36}",
  "pul-[a-f0-9]{40}",
  "dapi[a-f0-9]{32}",
  "sbp_[a-f0-9]{40}",
  "pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}",
  "tskey-[a-z]{1,20}-[A-Za-z0-9]{10,}-[A-Za-z0-9]{10,}",
  "fo1_[A-Za-z0-9_-]{40,}",
  "fm[12][ar]?_[A-Za-z0-9+/=_-]{80,}",
  "sb_secret_[A-Za-z0-9_-]{20,}",
  "[A-Za-z0-9]{14}\\.atlasv1\\.[A-Za-z0-9_=-]{60,}",
  // Payments, mail, chat
  "(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,255}",
  "whsec_[A-Za-z0-9+/=]{24,}",
  "sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43}",
  "shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
  "SG\\.[A-Za-z0-9_-]{16,32}\\.[A-Za-z0-9_-]{32,64}",
  "xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}",
  "key-[a-f0-9]{32}",
  "xox[abeoprs]-[A-Za-z0-9-]{10,}",
  "xapp-\\d-[A-Za-z0-9]{8,16}-\\d{8,16}-[a-f0-9]{32,}",
  "https:\\/\\/hooks\\.slack\\.com\\/(?:services|workflows)\\/[A-Za-z0-9+/]{43,56}",
  "(?:bot)?\\d{8,10}:AA[A-Za-z0-9_-]{33}",
  "[MNO][A-Za-z0-9]{23,27}\\.[A-Za-z0-9_-]{6}\\.[A-Za-z0-9_-]{27,38}",
  "SK[a-f0-9]{32}",
  "AC[a-f0-9]{32}:[a-f0-9]{32}",
  "re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}",
  // Tools
  "glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}",
  "sntry[su]_[A-Za-z0-9+/=_-]{40,}",
  "PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
  "lin_api_[A-Za-z0-9]{40}",
  "ntn_[A-Za-z0-9]{40,}",
  "secret_[A-Za-z0-9]{43}",
  "NRAK-[A-Z0-9]{27}",
  "NRII-[A-Za-z0-9_-]{32}",
  "[a-f0-9]{36}NRAL",
  "dp\\.(?:pt|ct|sa|scim|audit)\\.[A-Za-z0-9]{40,}",
  "dp\\.st\\.(?:[a-z0-9_-]{2,35}\\.)?[A-Za-z0-9]{40,}",
  "glc_[A-Za-z0-9+/]{32,400}={0,2}",
  "pat[A-Za-z0-9]{14}\\.[a-f0-9]{64}",
  "dt0c01\\.[A-Z0-9]{24}\\.[A-Z0-9]{64}",
  "figd_[A-Za-z0-9_-]{40,}",
  "AGE-SECRET-KEY-1[A-Z0-9]{58}",
];

/** Where a token starts: at a word boundary, or in JSON directly after the letter of an escape such as \\n. */
const tokenStart = "(?<=^|[^A-Za-z0-9_-]|\\\\[nrt])";

/** Every format in one expression, so that a text is read once. */
export const tokenShape = new RegExp(`${tokenStart}(?:${tokens.join("|")})(?![A-Za-z0-9])`, "g");

/** Names that are only used for secrets, also behind a prefix, as in `DATABASE_PASSWORD`. */
const certainNames = [
  "(?:access|refresh|auth|id|bearer|session|private)[_-]?token",
  "(?:api|auth|app|application|service|role|master|signing|encryption|license|subscription|functions|host)[_-]?key",
  "client[_-]?secret",
  "secret[_-]?(?:access[_-]?)?key",
  "private[_-]?key",
  "(?:account|access)[_-]?key",
  "shared[_-]?access[_-]?key",
  "pass(?:word|wd|phrase)",
  "x-(?:amz|goog)-signature",
  "x-amz-security-token",
].join("|");
/** Names that are used for other things too. */
const possibleNames = `(?:${certainNames}|secret|token|jwt|mysql_pwd)`;

export const minValueLength = 4;
/** `valueRest` matches the rest of a longer value. */
export const maxValueLength = 1000;
/** Characters of a value. */
const valuePart = "[^\\s\"'`<>\\\\]";

/** `DB_PASSWORD=…`, `"api_key": "…"`, `X-Auth-Token: …`, `--token=…`, `?token%3D…`: name, separator, value. See `isNamedSecret`. */
export const namedShape = new RegExp(
  `(${possibleNames}|sig)(\\\\?["']?\\s{0,3}(?:=>|[:=]|%3D)\\s{0,3}\\\\?["']?)(${valuePart}{${minValueLength},${maxValueLength}})`,
  "gi",
);
/** The rest of a long value. */
export const valueRest = new RegExp(`${valuePart}*`, "y");

/** `--token …`, `--api-key …`: option, value. */
export const optionShape = new RegExp(
  `((?<![\\w-])--(?:[a-z0-9]{1,20}-){0,4}${possibleNames}["']?,?[ \\t]{1,3}["']?)(${valuePart}{6,})`,
  "gi",
);

/** A character of a command. A newline is one only if it is escaped, and `;` or `&` only within a word, such as a URL. */
const commandCharacter = "(?:[^\\n;|&]|\\\\\\n|[;&](?![\\s&]))";
/** Some program with its arguments up to an option. */
const programUpTo = (programs: string, option: string) =>
  `\\b(?:${programs})(?=\\s)${commandCharacter}{0,300}?\\s(?:${option})["']?`;
const httpPrograms = "curl|https?|xh|wget";
const userOption = "-u\\s{0,3}|-[Ua]\\s{1,3}|--(?:proxy-)?user[= ]\\s{0,3}|--auth[= ]\\s{0,3}";
const password = "([^\\s\"'-][^\\s\"']{3,})";
/** `curl -u name:…`, `mysql -p…`, `docker login -p …`: what precedes the password, then the password. */
export const commandShapes: readonly RegExp[] = [
  `(${programUpTo(httpPrograms, userOption)}[^\\s:"'/]{0,100}:)([^\\s"']{4,})`,
  `(${programUpTo("(?:mysql|mariadb)[a-z_-]{0,20}", "-p")})${password}`,
  `(${programUpTo("login", "-p\\s{1,3}")})${password}`,
  `(${programUpTo("sshpass", "-p\\s{0,3}")})${password}`,
  `(${programUpTo("redis-cli", "-a\\s{1,3}")})${password}`,
].map((shape) => new RegExp(shape, "g"));

const beforePassword = "(?:login|user|account)[ \\t]{1,9}\\S{1,100}\\s{1,9}|(?:^|\\n)[ \\t]{0,9}";
/** `login name password …` and a line `password …`, as in .netrc: what precedes the password, then the password. */
export const netrcShape = new RegExp(`((?<=${beforePassword})password[ \\t]{1,9})(${valuePart}{4,})(?=\\s|$)`, "g");

/** `Bearer …`: scheme, then token. */
export const bearerShape = /(\bbearer\s{1,9})([A-Za-z0-9._~+/=-]{8,})/gi;

/** `scheme://name:password@host` and `scheme://key@host`: what precedes the name, name or key, colon and password. */
export const userShape = /((?<=[a-z0-9]):\/\/)([^\s/:@"'`<>]{0,300})(?::([^\s/"'`<>]{1,500}))?(?=@)/gi;

/** `Cookie: name=value; …`: header, then value. */
export const cookieShape =
  /(\b(?:set-)?cookie["']?\s{0,3}:\s{0,3}["']?)([\w.$-]+=[^;\s"'\\]{4,}(?:;\s?[^;\r\n"'\\]+)*)/gi;

/** How words begin that docs use in placeholders, such as `your-api-key` or `my_password`. */
const firstWords = [
  "your|my|the|an?|some|any|new|old|insert|replace|enter|put|change|changeme",
  "example|sample|test|demo|dummy|fake|foo|bar|user|guest|root|admin",
  "secret|pass(?:word|wd|phrase)?|token|key|api|postgres|mysql|mariadb|redis",
  "string|null|none|undefined|true|false|required|optional",
].join("|");

/** What docs write in place of a secret. */
const placeholders = [
  new RegExp(`^(?:${firstWords})(?:[ _-][a-z]+){0,5}$`, "i"),
  /^(?:your|my)[a-z]+$/i,
  /(?:^|[_-])your[_-]/,
  // Template syntax, variables and brackets: `<key>`, `$KEY`, `%KEY%`, `key(…)`.
  /^[<{[$%(*@#]|[(){}[\]]/,
  // A path.
  /^~?\/(?:$|[a-z._-]+(?:\/|$)|Users\/)/,
  // A character reference of HTML.
  /^&(?:#|lt;|quot;)/,
  // Characters in their order.
  /^(?:abc|0?123|1234)[a-z0-9]{0,3}$|^0123456789/,
  // An ellipsis, or characters that hide a value.
  /\.{3}|…|x{4}|X{4}|\*{3}/,
  // A member in code: `process.env`.
  /^(?:process|os|config|env|import)\./,
  // The name of an environment variable.
  /^[A-Z]+(?:_[A-Z]+)+$|^[A-Z]{2,12}\d{0,3}_[A-Z]{2,12}$/,
];

/** Whether a value is what docs write in place of a secret, or has hardly any different characters. */
export const isPlaceholder = (value: string): boolean =>
  placeholders.some((placeholder) => placeholder.test(value)) || new Set(value).size < 4;

/** Whether a token of a known format is one that docs made up, such as `ghp_xxxxxxxx`. */
export const isMadeUp = (token: string): boolean =>
  /\.{3}|…|x{6}|X{6}|\*{3}/.test(token) || new Set(token.slice(-16)).size < 4;

/** Words in a camel-case name. */
const wordsOf = (value: string): string[] => value.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? [];
/** Whether a part of a name is too short for a word, apart from the usual short words. */
const isScrap = (word: string): boolean =>
  word.length < 3 && !/^(?:id|my|to|of|in|is|by|on|or|as|at|no|ok|db|ui|ip|xo)$/i.test(word);

/** Whether capitals and small letters alternate as in random characters. */
const looksRandom = (value: string): boolean =>
  value.length >= 12 && /^[\x21-\x7e]+$/.test(value) && wordsOf(value.slice(0, 60)).filter(isScrap).length > 2;

/** Whether a value could be a secret by its own looks: letters with digits, or random letters. */
export const looksSecret = (value: string): boolean =>
  !isPlaceholder(value) && /[A-Za-z]/.test(value) && (/\d/.test(value) || looksRandom(value));

/** Words before `token` and `key` with which a name doesn't mean a secret. */
const harmlessPrefixes = [
  // The position in a list.
  "page|next|prev(?:ious)?|continu(?:e|ation)|cursor|sync",
  // A token of a language model, or a number of such tokens.
  "start|end|special|[beupm]os|pad|unk|mask|stop",
  "max|min|num|n|per|total|input|output|prompt|cached?",
  // A public key, or a key of a table.
  "public|primary|foreign|sort|partition",
];
const harmlessPrefix = new RegExp(`(?:${harmlessPrefixes.join("|")})[_-]?$`, "i");

const numberedTypes = "u?int|big(?:u?int)?|float|utf|base|sha|md|aes|rsa|hmac|ed|x|oauth|str|char|varchar|bytes?|v";
/** Values with letters and digits that occur in any code. */
const ordinaryValues = [
  // `Uint8Array`, `sha256`.
  new RegExp(`^(?:${numberedTypes})-?\\d{1,5}(?:[._-]?[A-Za-z]{1,15}|[_-]\\d{1,4}){0,3}$`, "i"),
  // `16-byte`.
  /^\d{1,5}-?[a-z]+$/i,
  // `2026-01-01T00:00:00Z`.
  /^\d{4}-\d\d-\d\d/,
  // `v1.2.3`.
  /^v?\d+(?:\.\d+){1,3}$/i,
  // `id=npm`, as in `docker build --secret id=npm`.
  /^(?:id|type|src|env)=/i,
];
const isOrdinary = (value: string): boolean => ordinaryValues.some((ordinary) => ordinary.test(value));
/** `settings.token2`, `args.api_key`. */
const memberExpression = /^[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){1,6}$/;

/** Whether a value is made of words, as identifiers are: `oauth2Token`, `my_key_1`. */
function isIdentifier(value: string): boolean {
  if (value.length > 60 || !/^[A-Za-z_][\w.-]*$/.test(value) || (value.match(/\d+/g) ?? []).length > 1) return false;
  return !wordsOf(value).some(isScrap) && !/[bcdfghjklmnpqrstvwxz]{6}/.test(value);
}

/** Whether a value without quotes is a secret, and not code or prose. `name`: its name, if it has one. */
export const isBareSecret = (value: string, name = ""): boolean =>
  value.length >= 8 &&
  looksSecret(value) &&
  !isOrdinary(value) &&
  !memberExpression.test(value) &&
  (/pass(?:word|wd|phrase)$/i.test(name) || !isIdentifier(value));

type NamedValue = { before: string; name: string; separator: string; value: string; after: string };

/**
 * Whether a match of `namedShape` is a secret. The value of a variable in capitals, a header or a URL parameter is a secret unless it is a
 * placeholder. Other names also occur in code and prose, so their value has to look like a secret. `before`, `after`: some text around the match.
 */
export function isNamedSecret({ before, name, separator, value, after }: NamedValue): boolean {
  if (harmlessPrefix.test(before) && /(?:token|key)$/i.test(name)) return false;
  const hasTightSeparator = /^(?:=|%3D)$/i.test(separator);
  const isParameter = hasTightSeparator && /(?:[?&]|%3F|%26)[\w.-]*$/i.test(before);
  // A word of its own, as in a shell.
  const isAssignment = hasTightSeparator && /(?:^|[;\s"'`])$/.test(before) && !/^secret$/i.test(name);
  // An argument in code.
  if (isAssignment && after.startsWith(",") && isIdentifier(value)) return false;
  if (isParameter || isAssignment) {
    // A value before a closing bracket may be an argument in code. It counts as a placeholder, so it has to look like a secret.
    const brackets = /^[)\]}]*/.exec(after)?.[0] ?? "";
    return !isPlaceholder(value + brackets) || isBareSecret(value, name);
  }
  if (/^sig$/i.test(name)) return false;
  const isVariable = /^=["']?$/.test(separator) && name === name.toUpperCase() && !/^\d{1,7}$/.test(value);
  if (isVariable) return !isPlaceholder(value) && !memberExpression.test(value);
  const isQuoted = /["']$/.test(separator) && /^\\?["']/.test(after);
  if (isQuoted) return value.length >= 8 && looksSecret(value);
  const isOnNextLine = /[\r\n]/.test(separator);
  if (isOnNextLine) return false;
  const isHeader = separator.includes(":") && /(?:^|[^\w-])x-[\w-]*$/i.test(before);
  if (isHeader) return looksSecret(value);
  const isOption = hasTightSeparator && /(?:^|[^\w-])--[\w-]*$/.test(before);
  if (isOption) return looksSecret(value) && !isOrdinary(value);
  return isBareSecret(value, name);
}

const certainName = new RegExp(`^${certainNames}$`, "i");
const possibleName = new RegExp(`(?<before>.{0,30})${possibleNames}$`, "is");
/** Headers whose value is always a secret. */
const secretHeaders = [
  /^(?:proxy-)?authorization$/i,
  /^(?:set-)?cookie$/i,
  /^x-(?:goog-)?api-key$/i,
  /^(?:x-(?:auth|access|vault)|private)-token$/i,
];

/** Whether the value of a property or header is a secret, by its name and looks. */
export function isSecretProperty(name: string, value: string): boolean {
  if (secretHeaders.some((header) => header.test(name))) return true;
  if (certainName.test(name)) return looksSecret(value);
  const match = possibleName.exec(name.slice(-80));
  return match !== null && !harmlessPrefix.test(match.groups?.before ?? "") && isBareSecret(value, name);
}
