/** The result of an import `with { type: "file" }`: a path, also inside the executable. */
declare module "*.wasm" {
  const path: string;
  export default path;
}

declare module "*.bin.gz" {
  const path: string;
  export default path;
}

/** The result of an import `with { type: "text" }`. */
declare module "*.cjs" {
  const text: string;
  export default text;
}
declare module "*.txt" {
  const text: string;
  export default text;
}

/** An entry of a coding agent; test/agent-entries.test.ts checks it against the schema. */
declare module "*.jsonc" {
  const entry: import("../config/agent-entry.ts").AgentEntry;
  export default entry;
}
