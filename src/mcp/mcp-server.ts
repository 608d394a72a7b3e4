import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { version } from '../base/version.ts';
import { type McpAnswer, type McpService, mcpTools } from './mcp-tools.ts';

const instructions =
  'Downloads video and sound from the URLs of media. `download` waits for the file and answers with a link that works for some ' +
  'hours; when it takes longer, ask `job` with the job_id. A failed download costs nothing.';

const invalidParams = ErrorCode.InvalidParams;

/** Makes a server of the protocol for one caller. */
function makeMcpServer(service: McpService): Server {
  const server = new Server({ name: 'trawl', version }, { capabilities: { tools: {} }, instructions });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: mcpTools.map(({ run: _run, ...tool }) => ({ ...tool, inputSchema: { ...tool.inputSchema } })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, sendNotification }) => {
    const tool = mcpTools.find(({ name }) => name === params.name);
    if (tool === undefined) throw Object.assign(new Error(`There is no tool ${params.name}`), { code: invalidParams });
    const token = params._meta?.progressToken;
    const report = (progress: number, message: string) => {
      if (token === undefined) return;
      const told = { progressToken: token, progress, total: 100, message };
      // A caller that is gone hears nothing; its signal ends the call.
      sendNotification({ method: 'notifications/progress', params: told }).catch(() => {});
    };
    return resultOf(await tool.run(service, params.arguments ?? {}, { report, signal }));
  });
  return server;
}

/** Serves one program on standard input and output until it closes them. */
export async function serveStdio(service: McpService): Promise<void> {
  const server = makeMcpServer(service);
  const ended = new Promise<void>((resolve) => {
    server.onclose = resolve;
    process.stdin.once('end', () => void server.close());
  });
  await server.connect(new StdioServerTransport());
  await ended;
}

/** Answers one message that came by HTTP, without a session; `close` ends what is still under way. */
export async function answerMessage(service: McpService, headers: Readonly<Record<string, string>>, message: unknown) {
  const server = makeMcpServer(service);
  const transport = new WebStandardStreamableHTTPServerTransport();
  await server.connect(transport);
  const request = new Request('http://trawl.invalid/mcp', { method: 'POST', headers });
  const response = await transport.handleRequest(request, { parsedBody: message });
  return { response, close: () => server.close() };
}

function resultOf(answer: McpAnswer) {
  const told = 'error' in answer ? answer : answer.body;
  return {
    content: [{ type: 'text' as const, text: JSON.stringify(told) }],
    ...('error' in answer && { isError: true }),
  };
}
