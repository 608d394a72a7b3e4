import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ConfigError } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import { type ClientTerminal, ClientUsageError, exitCodes } from './client-terminal.ts';
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
export async function runMcp(args: readonly string[], { out, err, env }: ClientTerminal): Promise<number> {
  try {
    const { values } = parse(args);
    if (values.help) {
      out(mcpHelp);
      return exitCodes.done;
    }
    const service = remoteService(findCredentials(env));
    const { serveStdio } = await import('../mcp/mcp-server.ts');
    await serveStdio(service, readVersion());
    return exitCodes.done;
  } catch (error) {
    if (!(error instanceof ClientUsageError || error instanceof ConfigError)) throw error;
    err(`${error.message}\nUsage: ${usage}\n`);
    return exitCodes.usage;
  }
}

function readVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: { help: { type: 'boolean', short: 'h' } } });
  } catch (error) {
    throw new ClientUsageError(messageOf(error));
  }
}
