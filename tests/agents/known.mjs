// The agents: the name of each for `wharf install`, how it is told which model to use, and how it is run with one question.
//
// `program` is below the folder of its packages. `files` are its settings, below its home: they are there before wharf is installed.
// `pastes` is the config to which a person adds the lines that `wharf install` prints, because wharf does not edit YAML.
// What it would send to its makers is turned off. `before` are runs that set it up, `person` is a program that talks to it in place of
// a person, `stops` says that it does not start if one of its servers does not.
//
// `deferred`: the tool with which a model asks for tools of which it knows only the names, and `through`, the tool that calls them.
//
// `expected` is what the agent was seen to do, which wharf cannot change; a difference is a failure, because README.md
// and docs/clients.md say so. `encodes`: it writes every result as JSON. `reasons`: it shows why a server does not start.

import { fileURLToPath } from 'node:url';
import { PROMPT } from './script.mjs';

const HOOK = fileURLToPath(new URL('people/hook.mjs', import.meta.url));
const CODEX = fileURLToPath(new URL('people/codex.mjs', import.meta.url));

const answer = ({ asked }) => `"${process.execPath}" "${HOOK}" "${asked}"`;
const CLAUDE = ['--print', '--verbose', '--output-format', 'stream-json'];

const json = (value) => `${JSON.stringify(value, null, 2)}\n`;

export const AGENTS = [
  {
    name: 'Claude Code',
    client: 'claude-code',
    package: '@anthropic-ai/claude-code',
    program: `@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`,
    brief: true,
    deferred: { search: 'ToolSearch' },
    files: (url, place) => ({
      '.claude/settings.json': json({ hooks: { Elicitation: [{ hooks: [{ type: 'command', command: answer(place) }] }] } }),
    }),
    env: (url) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'sk-scripted',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      // On a busy machine it would begin without the servers.
      CLAUDE_CODE_MCP_STARTUP_WAIT_MS: '60000',
    }),
    expected: { instructions: true, roots: true, hears: true, asks: true, reasons: true },
    args: () => [...CLAUDE, '--allowedTools', 'mcp__wharf', 'mcp__opened', 'mcp__asked', '--', PROMPT],
  },
  {
    name: 'Codex',
    client: 'codex',
    package: '@openai/codex',
    program: '.bin/codex',
    brief: true,
    files: (url) => ({
      '.codex/config.toml': [
        'model = "gpt-5-codex"',
        'model_provider = "scripted"',
        'approval_policy = "on-request"',
        'check_for_update_on_startup = false',
        '',
        '[analytics]',
        'enabled = false',
        '',
        '[model_providers.scripted]',
        'name = "Scripted"',
        `base_url = "${url}/v1"`,
        'wire_api = "responses"',
        'env_key = "SCRIPTED_KEY"',
        '',
      ].join('\n'),
    }),
    env: () => ({ SCRIPTED_KEY: 'scripted' }),
    expected: { instructions: true, asks: true, reasons: true },
    person: CODEX,
    args: (place) => [place.asked, PROMPT],
  },
  {
    name: 'Gemini CLI',
    client: 'gemini-cli',
    package: '@google/gemini-cli',
    program: '.bin/gemini',
    files: () => ({
      '.gemini/settings.json': json({
        security: { auth: { selectedType: 'gemini-api-key' } },
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
      }),
    }),
    env: (url) => ({ GEMINI_API_KEY: 'scripted', GOOGLE_GEMINI_BASE_URL: url }),
    expected: { instructions: true, roots: true, hears: true },
    args: () => ['--model', 'gemini-2.5-flash', '--yolo', '--skip-trust', '--output-format', 'json', '--prompt', PROMPT],
  },
  {
    name: 'Copilot CLI',
    client: 'copilot-cli',
    package: '@github/copilot',
    program: '.bin/copilot',
    files: () => ({}),
    env: (url) => ({
      COPILOT_OFFLINE: 'true',
      COPILOT_AUTO_UPDATE: 'false',
      COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
      COPILOT_MODEL: 'scripted',
    }),
    expected: { hears: true },
    args: () => ['--allow-all-tools', '--disable-builtin-mcps', '--prompt', PROMPT],
  },
  {
    name: 'opencode',
    client: 'opencode',
    package: 'opencode-ai',
    program: `opencode-${process.platform}-${process.arch}/bin/opencode`,
    files: (url) => ({
      '.config/opencode/opencode.json': json({
        $schema: 'https://opencode.ai/config.json',
        autoupdate: false,
        share: 'disabled',
        provider: {
          scripted: {
            npm: '@ai-sdk/openai-compatible',
            name: 'Scripted',
            options: { baseURL: `${url}/v1`, apiKey: 'scripted' },
            models: { scripted: { name: 'Scripted' } },
          },
        },
      }),
    }),
    env: () => ({
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    }),
    expected: { instructions: true, roots: true, hears: true },
    args: () => ['run', '--auto', '--model', 'scripted/scripted', PROMPT],
  },
  {
    name: 'Qwen Code',
    client: 'qwen-code',
    package: '@qwen-code/qwen-code',
    program: '.bin/qwen',
    deferred: { search: 'tool_search', through: 'tool_call' },
    files: () => ({
      '.qwen/settings.json': json({
        general: { enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
      }),
    }),
    env: (url) => ({
      OPENAI_API_KEY: 'scripted',
      OPENAI_BASE_URL: `${url}/v1`,
      OPENAI_MODEL: 'scripted',
      // On a busy machine the model would not get the instructions of servers that answer later.
      QWEN_CODE_LEGACY_MCP_BLOCKING: '1',
    }),
    expected: { instructions: true, roots: true },
    args: () => ['--auth-type', 'openai', '--model', 'scripted', '--yolo', '--output-format', 'json', PROMPT],
  },
  {
    name: 'Cline',
    client: 'cline',
    package: 'cline',
    program: '.bin/cline',
    files: () => ({}),
    env: () => ({ CLINE_NO_AUTO_UPDATE: '1' }),
    before: (url) => [
      ['auth', '--provider', 'openai', '--apikey', 'scripted', '--modelid', 'scripted', '--baseurl', `${url}/v1`],
    ],
    expected: { encodes: true },
    args: () => ['--json', '--auto-approve', 'true', PROMPT],
  },
  {
    name: 'Continue',
    client: 'continue',
    package: '@continuedev/cli',
    program: '.bin/cn',
    stops: true,
    pastes: '.continue/config.yaml',
    files: (url) => ({
      '.continue/config.yaml': [
        'name: Local',
        'version: 1.0.0',
        'schema: v1',
        'models:',
        '  - name: Scripted',
        '    provider: openai',
        '    model: scripted',
        '    apiKey: scripted',
        `    apiBase: ${url}/v1`,
        '    capabilities: [tool_use]',
        '    roles: [chat]',
        '',
      ].join('\n'),
    }),
    env: () => ({ CONTINUE_TELEMETRY_ENABLED: '0' }),
    expected: { encodes: true, reasons: true },
    args: ({ home }) => ['--print', '--auto', '--config', `${home}/.continue/config.yaml`, PROMPT],
  },
];
