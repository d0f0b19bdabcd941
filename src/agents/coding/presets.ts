import { type Preset, presetDefaults } from "./preset.ts";

const codexConfig = `model = "{model}"
model_provider = "evald"
approval_policy = "never"
sandbox_mode = "danger-full-access"
web_search = "disabled"
check_for_update_on_startup = false

[model_providers.evald]
name = "evald"
base_url = "{gateway}/openai/v1"
env_key = "EVALD_TOKEN"
wire_api = "responses"
supports_websockets = false

[features]
apps = false
plugins = false
remote_plugin = false
image_generation = false

[agents]
enabled = false

[analytics]
enabled = false

[feedback]
enabled = false

[otel]
metrics_exporter = "none"

[projects."/workspace"]
trust_level = "trusted"
`;

const words = (line: string): string[] => line.split(" ");

type DefaultField = keyof typeof presetDefaults | "revision" | "install";
/** The fields of a preset for a package of npm; those with a default may be left out. */
type PackagePreset = Omit<Preset, DefaultField> & Partial<Pick<Preset, DefaultField>> & { packageName: string };

/** A preset for a package of npm: it is installed in the version with which a full session was tested. */
const preset = (fields: PackagePreset): Preset => ({
  ...presetDefaults,
  revision: "preset.1",
  install: `npm install -g ${fields.packageName}@${fields.triedVersions[0]}`,
  ...fields,
});

/** The supported coding agents, in list order. */
export const presets: readonly Preset[] = [
  preset({
    id: "claude",
    name: "Claude Code",
    triedVersions: ["2.1.330"],
    command: "claude",
    packageName: "@anthropic-ai/claude-code",
    providers: { anthropic: {} },
    stream: "claude",
    args: words(
      "-p --output-format stream-json --verbose --model {model} --dangerously-skip-permissions --strict-mcp-config",
    ),
    env: {
      ANTHROPIC_BASE_URL: "{gateway}/anthropic",
      ANTHROPIC_API_KEY: "{token}",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      ANTHROPIC_MODEL: "{model}",
      ANTHROPIC_SMALL_FAST_MODEL: "{model}",
      ANTHROPIC_DEFAULT_HAIKU_MODEL: "{model}",
      ANTHROPIC_DEFAULT_SONNET_MODEL: "{model}",
      ANTHROPIC_DEFAULT_OPUS_MODEL: "{model}",
      CLAUDE_CODE_SUBAGENT_MODEL: "{model}",
    },
    files: { ".claude/settings.json": { skipWebFetchPreflight: true } },
    contextFile: "CLAUDE.md",
    skillsFolder: ".claude/skills",
    mcp: {
      file: ".evald/mcp.json",
      format: "claude",
      args: ["--mcp-config", "{home}/.evald/mcp.json"],
      toolPrefix: "mcp__{server}__",
    },
    firstRequestTokens: 12_000,
  }),
  preset({
    id: "codex",
    name: "Codex",
    triedVersions: ["0.169.0"],
    command: "codex",
    packageName: "@openai/codex",
    native: "@openai/codex-linux-*/vendor/*/bin/codex",
    providers: { openai: {} },
    stream: "codex",
    args: words("exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -m {model} -"),
    env: { CODEX_HOME: "{home}/.codex", EVALD_TOKEN: "{token}" },
    files: { ".codex/config.toml": codexConfig },
    mcp: { file: ".codex/config.toml", format: "codex", toolPrefix: "mcp__{server}__" },
    firstRequestTokens: 10_000,
  }),
  preset({
    id: "gemini",
    name: "Gemini CLI",
    triedVersions: ["0.61.0"],
    command: "gemini",
    packageName: "@google/gemini-cli",
    minNode: 20,
    providers: { google: {} },
    stream: "gemini",
    args: words("-o stream-json --approval-mode yolo -m {model}"),
    env: {
      GEMINI_API_KEY: "{token}",
      GOOGLE_GEMINI_BASE_URL: "{gateway}/google",
      GEMINI_TELEMETRY_ENABLED: "false",
      GEMINI_CLI_TRUST_WORKSPACE: "true",
      // It would restart itself with half of the machine's memory as its heap.
      GEMINI_CLI_NO_RELAUNCH: "true",
      NODE_OPTIONS: "--max-old-space-size=512",
    },
    files: {
      ".gemini/settings.json": {
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false, disableAutoUpdate: true },
        telemetry: { enabled: false },
        // Otherwise pages are fetched by Google, not from the sandbox.
        experimental: { directWebFetch: true },
      },
    },
    contextFile: "GEMINI.md",
    mcp: { file: ".gemini/settings.json", format: "gemini", toolPrefix: "mcp_{server}_" },
    memoryMb: 1536,
    firstRequestTokens: 11_500,
  }),
  preset({
    id: "opencode",
    name: "opencode",
    triedVersions: ["1.18.33"],
    command: "opencode",
    packageName: "opencode-ai",
    providers: { anthropic: { sdk: "@ai-sdk/anthropic" } },
    stream: "opencode",
    args: words("run --dir /workspace --format json --thinking --auto --pure -m evald/{model}"),
    env: {
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_CONFIG_CONTENT: {
        share: "disabled",
        autoupdate: false,
        enabled_providers: ["evald"],
        model: "evald/{model}",
        small_model: "evald/{model}",
        permission: "allow",
        provider: {
          evald: {
            npm: "{sdk}",
            name: "evald",
            options: { baseURL: "{gateway}/{provider}/v1", apiKey: "{token}" },
            models: {
              "{model}": {
                name: "{model}",
                tool_call: true,
                reasoning: true,
                limit: { context: 200_000, output: 32_000 },
              },
            },
          },
        },
      },
    },
    mcp: {
      file: ".evald/opencode.json",
      format: "opencode",
      env: { OPENCODE_CONFIG: "{home}/.evald/opencode.json" },
      toolPrefix: "{server}_",
    },
    firstRequestTokens: 8_000,
  }),
  preset({
    id: "qwen",
    name: "Qwen Code",
    revision: "preset.2",
    triedVersions: ["0.24.4"],
    command: "qwen",
    packageName: "@qwen-code/qwen-code",
    minNode: 22,
    providers: { "openai-compatible": {}, openai: {} },
    // Qwen Code writes the same stream as Claude Code.
    stream: "claude",
    args: words("-o stream-json --approval-mode yolo --auth-type openai -m {model}"),
    env: {
      OPENAI_BASE_URL: "{gateway}/{provider}/v1",
      OPENAI_API_KEY: "{token}",
      OPENAI_MODEL: "{model}",
      QWEN_TELEMETRY_ENABLED: "false",
    },
    files: {
      ".qwen/settings.json": {
        security: { auth: { selectedType: "openai" } },
        privacy: { usageStatisticsEnabled: false },
        general: { disableAutoUpdate: true, enableAutoUpdate: false },
        telemetry: { enabled: false },
      },
    },
    mcp: {
      file: ".evald/mcp.json",
      format: "qwen",
      args: ["--mcp-config", "{home}/.evald/mcp.json"],
      toolPrefix: "mcp__{server}__",
    },
    memoryMb: 3072,
    firstRequestTokens: 19_000,
  }),
  preset({
    id: "copilot",
    name: "GitHub Copilot CLI",
    triedVersions: ["1.0.102"],
    command: "copilot",
    packageName: "@github/copilot",
    minNode: 20,
    native: "@github/copilot-linux-*/copilot",
    providers: { openai: {} },
    stream: "copilot",
    args: words(
      "--output-format json --allow-all-tools --allow-all-paths --allow-all-urls --disable-builtin-mcps --no-ask-user --no-auto-update --disable-client-telemetry",
    ),
    env: {
      COPILOT_PROVIDER_BASE_URL: "{gateway}/openai/v1",
      COPILOT_PROVIDER_API_KEY: "{token}",
      COPILOT_PROVIDER_TYPE: "openai",
      COPILOT_PROVIDER_WIRE_API: "responses",
      COPILOT_MODEL: "{model}",
    },
    mcp: { file: ".copilot/mcp-config.json", format: "copilot", toolPrefix: "{server}-" },
    firstRequestTokens: 13_500,
  }),
  preset({
    id: "pi",
    name: "pi",
    triedVersions: ["0.73.1"],
    command: "pi",
    packageName: "@mariozechner/pi-coding-agent",
    minNode: 20,
    providers: { anthropic: { api: "anthropic-messages" } },
    stream: "pi",
    args: words("--mode json -p --provider evald --model {model} --no-session"),
    env: { PI_SKIP_VERSION_CHECK: "1", PI_OFFLINE: "1", PI_TELEMETRY: "0", EVALD_TOKEN: "{token}" },
    files: {
      ".pi/agent/models.json": {
        providers: {
          evald: {
            baseUrl: "{gateway}/{provider}",
            api: "{api}",
            apiKey: "EVALD_TOKEN",
            models: [
              {
                id: "{model}",
                name: "{model}",
                reasoning: true,
                input: ["text"],
                contextWindow: 200_000,
                maxTokens: 32_000,
                cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
              },
            ],
          },
        },
      },
      ".pi/agent/settings.json": { defaultProvider: "evald", defaultModel: "{model}" },
    },
    firstRequestTokens: 1_400,
  }),
];
