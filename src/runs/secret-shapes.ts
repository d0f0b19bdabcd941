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
  // Tools
  "glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}",
  "sntry[su]_[A-Za-z0-9+/=_-]{40,}",
  "PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
  "lin_api_[A-Za-z0-9]{40}",
  "ntn_[A-Za-z0-9]{40,}",
  "figd_[A-Za-z0-9_-]{40,}",
  "AGE-SECRET-KEY-1[A-Z0-9]{58}",
];

/** A letter may directly precede one in JSON, from an escape such as \\n. */
const start = "(?<=^|[^A-Za-z0-9_-]|\\\\[nrt])";

/** Every format in one expression, so that a text is read once. */
export const tokenShape = new RegExp(`${start}(?:${tokens.join("|")})(?![A-Za-z0-9])`, "g");

/** Names that are only used for secrets. */
const names =
  "(?:access|refresh|auth|id|bearer|session)[_-]?token|api[_-]?key|client[_-]?secret|secret[_-]?(?:access[_-]?)?key|private[_-]?key|account[_-]?key|shared[_-]?access[_-]?key|pass(?:word|wd|phrase)|x-(?:amz|goog)-signature|x-amz-security-token";

/** `?access_token=…` or `password=…`, as in URLs, forms and connection strings: name, then value. */
export const parameterShape = new RegExp(`((?:^|[?&;\\s"'\`])(?:${names}|sig|token)=)([^\\s&;"'\`<>\\\\]{4,})`, "gi");

/** `"password": "…"`, `api_key = '…'`, `PASSWORD=…`: name, then value. */
export const assignmentShape = new RegExp(
  `((?:${names}|secret|token)\\\\?["']?\\s{0,3}(?:[:=]|=>)\\s{0,3}\\\\?["'])([^\\s"'\\\\]{8,})(?=\\\\?["'])`,
  "gi",
);

/** `Bearer …`: scheme, then token. */
export const bearerShape = /(\bbearer\s{1,9})([A-Za-z0-9._~+/=-]{8,})/gi;

/** `scheme://name:password@host`: what precedes the password, the password, and the rest. */
export const urlPasswordShape = /\b([a-z][a-z0-9+.-]{0,20}:\/\/[^\s/:@"']{0,200}:)([^\s/@"']{1,500})(@)/gi;

/** `Cookie: name=value; …`: header, then value. */
export const cookieShape =
  /(\b(?:set-)?cookie["']?\s{0,3}:\s{0,3}["']?)([\w.$-]+=[^;\s"'\\]{4,}(?:;\s?[^;\r\n"'\\]+)*)/gi;

/** Names of properties and headers whose value is a secret. */
export const secretName = new RegExp(
  `^(?:${names}|(?:proxy-)?authorization|(?:set-)?cookie|x-(?:goog-)?api-key|x-auth-token)$`,
  "i",
);

/** Words of which docs make placeholders, such as `your-api-key` or `my_password`. */
const plainWords =
  /^(?:your|my|the|an?|some|any|new|old|insert|replace|enter|put|example|sample|test|demo|dummy|fake|foo|bar|user|guest|change|secret|pass(?:word|wd|phrase)?|token|key|api|string|null|none|undefined|true|false|required|optional)(?:[ _-][a-z]+){0,5}$|^(?:your|my)[a-z]+$/i;
/** Template syntax, variables, ellipses and names of environment variables. */
const templates =
  /^[<{[$%(*@#/]|[(){}[\]]|\.{3}|…|x{4}|X{4}|\*{3}|^(?:process|os|config|env|import)\.|^[A-Z]+(?:_[A-Z]+)+$/;

/** Whether a value is what docs write in place of a secret. */
export const isPlaceholder = (value: string): boolean =>
  plainWords.test(value) || templates.test(value) || new Set(value).size < 4;

/** Whether a token of a known format is one that docs made up, such as `ghp_xxxxxxxx`. */
export const isMadeUp = (token: string): boolean =>
  /\.{3}|…|x{6}|X{6}|\*{3}/.test(token) || new Set(token.slice(-16)).size < 4;

/** Whether a value could be a secret by its own looks: with letters and digits. */
export const looksSecret = (value: string): boolean =>
  !isPlaceholder(value) && /\d/.test(value) && /[A-Za-z]/.test(value);
