import { codeOf, type Defect, type ForeignSite } from "./site.ts";
import { answerPage, changePart, inScripts, inShell, withApi } from "./third-plant.ts";
import { credentialOf, requiredHeaderOf } from "./third-samples.ts";
import { partsOf } from "./third-sites.ts";

type Change = (code: string, site: ForeignSite, nth: number) => string;
/** Products whose requests are read with their headers and bodies. */
const readable = [...inShell, ...inScripts];

/** The request of the answer contradicts the API description. */
const contradicting = (change: Change, words: RegExp, products = readable): Defect => ({
  promised: true,
  products,
  plant(site, nth) {
    const before = partsOf(site).request!.code.split("\n");
    const { code } = changePart(site, "request", (each) => change(each, site, nth));
    const line = code.split("\n").find((each) => !before.includes(each));
    return { path: site.answer, categories: ["wrong_contract"], words, line: line!.trim() };
  },
});

const fieldOf = (site: ForeignSite) => Object.keys(partsOf(site).task.body)[0]!;
/** A field of a body in JSON, or in a literal of another language. */
const field = (name: string) => new RegExp(`(["{\\s,])(${name})("?: ?)`);
const renamedField = (name: string, nth: number) =>
  [`${name}Value`, `${name[0]!.toUpperCase()}${name.slice(1)}`, `new_${name}`][nth % 3]!;

/** A method that no operation has at the path of the task. */
const otherMethod = (site: ForeignSite) => (partsOf(site).task.method === "POST" ? "PATCH" : "POST");
const withMethod: Change = (code, site) => {
  const { method } = partsOf(site).task;
  const other = otherMethod(site);
  return code
    .replace(`-X ${method}`, `-X ${other}`)
    .replace(`--request ${method}`, `--request ${other}`)
    .replace(new RegExp(`^${method} `), `${other} `)
    .replace(`method: "${method}"`, `method: "${other}"`)
    .replace(new RegExp(`(axios|got|httpx)\\.${method.toLowerCase()}\\(`), `$1.${other.toLowerCase()}(`);
};

const paths: ((code: string) => string)[] = [
  (code) => code.replace(/(\/v4\/[\w-]+?)(e?s)\//, "$1/"),
  (code) => code.replace(/(\/v4\/)/, "$1projects/p1/"),
  (code) => code.replace(/(\/v4\/[\w-]+\/[\w.-]+)/, "$1/actions"),
];

/** Kinds of samples that contradict the API description. */
export const thirdApiDefects: Record<string, Defect> = {
  api_method: contradicting(withMethod, /PATCH|POST|method/i, withApi),
  api_path: contradicting((code, _, nth) => paths[nth % paths.length]!(code), /path|operation|endpoint|\/v4/i, withApi),
  api_base_path: contradicting(
    (code) => code.replace("/v4/", "/api/v4/"),
    /path|base|server|operation|\/api\/v4/i,
    withApi,
  ),
  api_query: contradicting(
    (code, _, nth) => code.replace(/(\/v4\/[\w/.-]+)/, `$1?${["dryrun=true", "notify=1", "include=steps"][nth % 3]}`),
    /dryrun|notify|include|query|parameter/i,
  ),
  api_auth_header: contradicting((code, site, nth) => {
    const [name] = credentialOf(site.product, "");
    const other = ["X-Auth-Token", "Api-Key", "X-Access-Key"][nth % 3]!;
    return code.replace(new RegExp(`"?${name}"?: (["\`]?)(Bearer |Token )?`), (all, quote: string) => {
      const isArgument = all.startsWith('"') && !all.slice(1).includes('"');
      return isArgument ? `"${other}: ` : all.startsWith('"') || quote ? `"${other}": ${quote}` : `${other}: `;
    });
  }, /X-Auth-Token|Api-Key|X-Access-Key|auth|header|key/i),
  api_required_header: {
    promised: true,
    products: ["mail", "payments", "flags", "maps"],
    plant(site) {
      const [name] = requiredHeaderOf(site.product)!;
      const sample = changePart(site, "request", (code) => code.replace(new RegExp(`.*${name}.*\\n`), ""));
      const line = sample.code.split("\n").find((each) => each.includes("/v4/"));
      return {
        path: site.answer,
        categories: ["wrong_contract"],
        words: /Idempotency-Key|header/i,
        line,
        sample: true,
      };
    },
  },
  api_field: contradicting(
    (code, site, nth) => code.replace(field(fieldOf(site)), `$1${renamedField(fieldOf(site), nth)}$3`),
    /field|property|body|Value|new_/i,
  ),
  api_type: contradicting((code, site, nth) => {
    const name = fieldOf(site);
    const value = partsOf(site).task.body[name]!;
    const wrong = typeof value === "string" ? ["42", '["a"]', "{}"][nth % 3]! : ['"many"', "[1]", '"yes"'][nth % 3]!;
    return code.replace(new RegExp(`(["{\\s,]${name}"?: ?)("[^"]*"|[\\w.]+|\\{[^}]*\\})`), `$1${wrong}`);
  }, /type|string|integer|array|object|boolean|number/i),
  version_mismatch: {
    promised: true,
    products: ["mail", "auth", "sms", "flags", "maps"],
    plant(site, nth) {
      const old = ["/v2/", "/v3/", "/2024-06/"][nth % 3]!;
      for (const sample of codeOf(answerPage(site))) sample.code = sample.code.replaceAll("/v4/", old);
      const words = /v2|v3|2024|version|path/i;
      return { path: site.answer, categories: ["wrong_contract", "misleading_docs"], words, line: old };
    },
  },
};
