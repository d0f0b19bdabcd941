import {
  answerOf,
  type Block,
  changeCode,
  codeOf,
  type Defect,
  type ForeignSite,
  type Planted,
  pageAt,
} from "./site.ts";

const text = (content: string): Block => ({ kind: "text", text: content });
const withApi = ["sdk-js", "rest", "sdk-rust"];

/** A defect of a request in the answering page that the API description contradicts. */
const contradicting = (change: (code: string) => string, words: RegExp, line = "curl"): Defect => ({
  promised: true,
  products: withApi,
  plant(site) {
    changeCode(site, "bash", change);
    return { path: site.answer, categories: ["wrong_contract"], words, line };
  },
});

/** A defect of the first sample of the answering page, in the wording of its language. */
const inFirstSample = (
  products: string[],
  change: (code: string, site: ForeignSite) => string,
  named: Omit<Planted, "path">,
  promised = false,
): Defect => ({
  promised,
  products,
  plant(site) {
    const { code } = codeOf(answerOf(site))[0]!;
    changeCode(site, site.product.language, () => change(code, site));
    return { path: site.answer, ...named };
  },
});

const secretOf = (site: ForeignSite) => `${site.product.package.toUpperCase()}_SIGNING_SECRET`;
const usesOfSecret: Record<string, (code: string, secret: string) => string> = {
  bash: (code, secret) => `${code} \\\n  -H "X-Signature: $${secret}"`,
  js: (code, secret) => `${code}\nclient.sign(process.env.${secret});`,
  python: (code, secret) => `${code}\nsdk.sign(os.environ["${secret}"])`,
  php: (code, secret) => `${code}\n$client->sign(getenv('${secret}'));`,
  ruby: (code, secret) => `${code}\nclient.sign(ENV.fetch("${secret}"))`,
  rust: (code, secret) => code.replace("    println!", `    client.sign(std::env::var("${secret}")?);\n    println!`),
};
const missingSecret = (products: string[]): Defect =>
  inFirstSample(
    products,
    (code, site) => usesOfSecret[site.product.language]!(code, secretOf(site)),
    { categories: ["missing_docs"], words: /SIGNING_SECRET/, line: "SIGNING_SECRET" },
    true,
  );

/** Kinds of defects of samples that a parser doesn't notice. */
export const firstSampleDefects: Record<string, Defect> = {
  api_method: {
    ...contradicting((code) => code.replace("-X POST", "-X PUT"), /PUT/, "-X PUT"),
    products: ["sdk-js", "rest", "sdk-go"],
  },
  api_path: contradicting((code) => code.replace(/\/v2\/(\w+)s\//, "/v2/$1/"), /path/i),
  api_query: contradicting((code) => code.replace(/(item-7\/\w+)/, "$1?dry-run=yes"), /dry-run/i),
  api_auth_header: contradicting((code) => code.replace("Authorization: Bearer ", "X-Api-Key: "), /X-Api-Key|auth/i),
  api_field: contradicting((code) => code.replace(/"(\w+)":(?=[^ ])/, '"$1_name":'), /_name/),
  api_type: contradicting(
    (code) =>
      code.replace(/:("?)([\w-]+)"?\}'/, (_, quote: string, value: string) =>
        quote ? `:{"value":"${value}"}}'` : `:"many"}'`,
      ),
    /type|string|integer|object/i,
  ),
  version_mismatch: {
    promised: true,
    products: ["sdk-go", "sdk-js", "rest"],
    plant(site) {
      for (const sample of codeOf(answerOf(site))) sample.code = sample.code.replaceAll("/v2", "/v1");
      return { path: site.answer, categories: ["wrong_contract", "misleading_docs"], words: /v1|version/i };
    },
  },
  version_mismatch_sdk: {
    promised: false,
    products: ["sdk-go", "sdk-python", "sdk-ruby"],
    plant(site) {
      site.api = null;
      pageAt(site, "reference").blocks.shift();
      const answer = answerOf(site);
      for (const sample of codeOf(answer))
        sample.code =
          sample.language === "go" ? sample.code.replace('/v2"', '"') : sample.code.replace("client.", "client.v1.");
      answer.blocks.unshift(text("This guide is for version 1."));
      const words = /version|v1/i;
      return { path: site.answer, categories: ["wrong_contract", "misleading_docs", "missing_docs"], words };
    },
  },
  placeholder: {
    promised: false,
    products: ["sdk-js", "rest", "sdk-python"],
    plant(site, nth) {
      const placeholder = ["YOUR_WORKSPACE_ID", "<tenant-id>", "{account_ref}"][nth % 3]!;
      changeCode(site, "bash", (code) => code.replace("item-7", placeholder));
      const words = new RegExp(placeholder.replace(/\W/g, "."));
      const categories: Planted["categories"] = ["missing_docs", "broken_sample", "misleading_docs"];
      return { path: site.answer, categories, words, line: placeholder };
    },
  },
  renamed_function: inFirstSample(
    ["sdk-js", "sdk-python", "sdk-go"],
    (code) => code.replace(/s\.(\w+)\((?=("|context))/i, "s.perform_$1("),
    { categories: ["wrong_contract", "misleading_docs", "broken_sample"], words: /perform_/, line: "perform_" },
  ),
  missing_secret: missingSecret(["sdk-js", "sdk-python", "rest"]),
  missing_secret_other: missingSecret(["sdk-php", "sdk-ruby", "sdk-rust"]),
  missing_import: inFirstSample(
    ["sdk-js", "sdk-python", "sdk-java"],
    (code) =>
      code
        .split("\n")
        .filter((line) => !line.startsWith("import "))
        .join("\n")
        .trim(),
    { categories: ["broken_sample", "missing_docs"], words: /import/i },
  ),
  prompt_signs: {
    promised: false,
    products: ["rest", "cli", "sdk-js"],
    plant(site) {
      changeCode(site, "bash", (code) => code.replace(/^(?!\s)/, "$ "));
      return { path: site.answer, categories: ["broken_sample", "misleading_docs"], words: /prompt|\$ /i, line: "$ " };
    },
  },
};
