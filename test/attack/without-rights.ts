import type { Sandbox } from '../../src/worker/sandbox-command.ts';
import { attackInspector, attackWorker } from './hostile-attempt.ts';
import { startHostileSource } from './hostile-source.ts';

// Runs one attack and prints its outcome: the arguments are `attempt` or `inspection`, the sandbox, and the text of the taken-over yt-dlp.
const [kind, sandbox, text] = process.argv.slice(2) as [string, Sandbox, string];
const source = await startHostileSource();
const run = kind === 'attempt' ? attackWorker : attackInspector;
const { outcome, left } = await run({ source, sandbox, url: source.lay(text), seconds: 60 });
await source.stop();
process.stdout.write(JSON.stringify({ outcome, left }));
