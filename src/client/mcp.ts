import { parseOptions } from '../base/command-line.ts';
import type { Terminal } from '../base/terminal.ts';
import { exitCodes, reportUsage } from './client-command.ts';
import { findCredentials } from './credentials.ts';
import { remoteService } from './remote-service.ts';

const usage = 'trawl mcp';

export const mcpHelp = `Usage: ${usage}

A server of the Model Context Protocol on standard input and output, for programs that act for people. Its tools are metadata,
download, job and usage. Address and key are those of trawl get: TRAWL_API_URL and TRAWL_API_KEY, else what trawl login keeps. No
result holds the key. POST /mcp of the service has the same tools without this command.

  --help  Show this text.
`;

/** Serves the program that started this one, until it closes standard input. */
export async function runCommand(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const { help } = parseOptions(args, { help: { type: 'boolean', short: 'h' } });
    if (help) {
      terminal.out(mcpHelp);
      return exitCodes.done;
    }
    const service = remoteService(findCredentials(terminal.env));
    const { serveStdio } = await import('../mcp/mcp-server.ts');
    await serveStdio(service);
    return exitCodes.done;
  } catch (error) {
    return reportUsage(error, usage, terminal);
  }
}
