import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { driver, python } from '../media.ts';
import { seed } from '../seed.ts';
import { root } from '../tree.ts';
import { type Campaign, findings } from './campaign.ts';

const folder = join(root, 'test', 'fuzz');
/** Beginning of the names of failing inputs. */
const artifact = 'python-';
const cache = process.env.XDG_CACHE_HOME ?? join(process.env.HOME ?? '', '.cache');
const list = readFileSync(join(folder, 'atheris-requirements.txt'));
/** Made by `.ci/setup` for the long form; it has atheris where there is one for this machine. */
const guided = join(cache, 'trawl', 'venv', hash('sha256', list).slice(0, 16), 'bin', 'python');

/** Fuzzes the Python of the driver for some time, guided by coverage where atheris is installed and wanted. */
export async function fuzzPython(ms: number, wantsGuide: boolean): Promise<Campaign> {
  const [packages = ''] = globSync(join(dirname(dirname(python)), 'lib', 'python3*', 'site-packages'));
  const interpreter = wantsGuide && existsSync(guided) ? guided : python;
  const file = process.env.FUZZ_REPEAT;
  const isOurs = file !== undefined && basename(file).startsWith(artifact);
  const repeated = isOurs ? [file] : [];
  const place = [
    dirname(driver),
    packages,
    String(file === undefined ? ms / 1000 : 1),
    String(seed),
    join(findings, artifact),
    ...repeated,
  ];
  const child = spawn(interpreter, ['-I', '-B', '-X', 'utf8', join(folder, 'fuzz-driver.py'), ...place]);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (piece) => {
      said = (said + piece).slice(-20_000);
    });
  }
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`SEED=${seed}, what fails is in ${findings}:\n${said.slice(-4000)}`);
  const [, executions = repeated.length] =
    /number_of_executed_units: (\d+)|^(\d+)\n$/m.exec(said)?.filter(Boolean) ?? [];
  return { executions: Number(executions), seed };
}
