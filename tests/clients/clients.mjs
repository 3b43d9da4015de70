// The clients. `package` is what the version is read of; Python ones name the `environment`, a file in requirements/. `brief` are
// those of `--brief`: fast, and schemas broke them before. `absent` says why a check is not there, `emptyRoots` that the client
// can declare roots and have none, `asks` that its program shows what becomes of approvals, and over which transports it does so
// in both eras, `protocol` what wharf's config has under `[protocol]`, `hears` how it has to hear of changes, `note` what the
// table says of it, `optional` why it may be missing.

const ALL = ['stdio', 'http', 'sse'];
// SSE is of revisions that have a handshake.
const BOTH = ['stdio', 'http'];
const OLD_MCP = 'With `mcp` 1.30.0: this version does not work with 2.x.';
/** What makes a client begin with the handshake that could do without. */
const HANDSHAKE = { transports: ['stdio', 'http'], protocol: ['modern = false'], hears: 'told' };

const python = (name, program, more = {}) => ({
  name,
  package: name,
  environment: name,
  program,
  transports: ALL,
  ...more,
});

const javascript = (name, program, more = {}) => ({ name, package: name, program, transports: ALL, ...more });

const FASTMCP = { package: 'fastmcp-slim', environment: 'fastmcp', emptyRoots: true, asks: [] };
const PYDANTIC_AI = { package: 'pydantic-ai-slim', environment: 'pydantic-ai', emptyRoots: true, asks: [] };
const OPENAI = { package: 'openai-agents', environment: 'openai-agents', asks: [] };
const MCP = { package: 'mcp', emptyRoots: true, asks: [] };
const SDK = { emptyRoots: true, asks: [] };

export const CLIENTS = [
  python('smolagents', 'smolagents_tools.py', {
    brief: true,
    asks: [],
    absent: { changed: 'it lists once, when it connects, and cannot list again' },
    note: 'With mcpadapt 0.1.19 and `mcp` 1.30.0.',
  }),
  python('semantic-kernel', 'semantic_kernel_plugin.py', {
    asks: [],
    note: 'With a `message_handler` of the program; its own one waits forever, see below.',
  }),
  python('autogen-ext', 'autogen_tools.py', { brief: true, asks: [], note: OLD_MCP }),
  python('google-genai', 'google_genai.py', { note: 'The program opens the session, with `mcp` 2.3.0, and receives the notifications itself.' }),
  python('pydantic-ai', 'pydantic_ai_toolset.py', {
    ...PYDANTIC_AI,
    note: 'Over stdio and HTTP with `cache_tools=False`; by default it never lists again, see below.',
  }),
  python('pydantic-ai, `modern = false`', 'pydantic_ai_toolset.py', { ...PYDANTIC_AI, ...HANDSHAKE }),
  python('fastmcp', 'fastmcp_client.py', FASTMCP),
  python('fastmcp, `modern = false`', 'fastmcp_client.py', { ...FASTMCP, ...HANDSHAKE }),
  python('langchain-mcp-adapters', 'langchain_adapters.py', { environment: 'langchain', emptyRoots: true, asks: [] }),
  python('mcp (Python)', 'mcp_v2.py', { ...MCP, environment: 'mcp', asks: BOTH, brief: true }),
  python('mcp (Python)', 'mcp_v1.py', { ...MCP, environment: 'mcp-1.26' }),
  python('mcp (Python)', 'mcp_v1.py', { ...MCP, environment: 'mcp-1.8' }),
  python('openai-agents', 'openai_agents.py', OPENAI),
  python('openai-agents, `modern = false`', 'openai_agents.py', { ...OPENAI, ...HANDSHAKE }),
  python('llama-index-tools-mcp', 'llama_index_tools.py', {
    environment: 'llama-index',
    asks: [],
    note: 'Each list and each call uses a new session: over stdio, a new process.',
  }),
  python('strands-agents', 'strands_tools.py', { environment: 'strands', asks: [] }),
  python('agno', 'agno_tools.py', { asks: [] }),
  python('agent-framework', 'agent_framework_tools.py', {
    asks: [],
    package: 'agent-framework-core',
    transports: ['stdio', 'http'],
    note: 'It does not connect without tenacity, which it does not declare as a dependency.',
  }),
  python('dspy', 'dspy_tools.py', { note: 'The program opens the session, with `mcp` 2.3.0, and receives the notifications itself.' }),
  javascript('@modelcontextprotocol/sdk', 'sdk_v1.mjs', SDK),
  javascript('@modelcontextprotocol/sdk', 'sdk_v1.mjs', { ...SDK, package: 'sdk-1.22', brief: true }),
  // Streamable HTTP came later.
  javascript('@modelcontextprotocol/sdk', 'sdk_v1.mjs', { ...SDK, package: 'sdk-1.0', transports: ['stdio', 'sse'] }),
  javascript('@modelcontextprotocol/client', 'sdk_v2.mjs', { ...SDK, asks: BOTH, brief: true }),
  javascript('@modelcontextprotocol/inspector', 'inspector.mjs', {
    note: 'Its command line, which opens a new connection for each list and call.',
  }),
  javascript('@langchain/mcp-adapters', 'langchain.mjs', {
    asks: [],
    note: 'It reports the change but caches its list; the program closes it and lists again.',
  }),
  javascript('@ai-sdk/mcp', 'ai_sdk.mjs', { asks: BOTH }),
  // It has no other side than a client over stdio.
  javascript('mcp-remote', 'remote.mjs', { transports: ['http', 'sse'], emptyRoots: true, asks: [] }),
];

/** What was looked at and left out. */
export const LEFT_OUT = [
  'crewai-tools: 148 packages, including two vector databases, for tools that mcpadapt makes; smolagents also uses mcpadapt.',
];
