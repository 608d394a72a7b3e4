import { posix } from 'node:path';
import { expect } from 'chai';
import { findPlaces, read } from '../support/tree.ts';
import { texts } from '../support/tree-files.ts';
import { blank, listImports } from '../support/typescript-source.ts';

interface Folder {
  /** The other folders of src that it may import. */
  readonly may: readonly string[];
  /** The packages that only it, and others that name them, may import; `*` stands for the rest of a name. */
  readonly owns: readonly string[];
}

/** The folders of src. What is not here is not allowed; ARCHITECTURE.md shows the same table. */
const folders: Record<string, Folder> = {
  'main.ts': { may: ['all'], owns: [] },
  roles: { may: ['all'], owns: [] },
  base: { may: [], owns: ['prom-client', '@opentelemetry/*'] },
  model: { may: ['base'], owns: ['ajv', 'ipaddr.js'] },
  store: { may: ['base', 'model'], owns: ['@redis/client'] },
  objects: { may: ['base', 'model'], owns: ['@aws-sdk/*'] },
  egress: { may: ['base', 'model'], owns: [] },
  media: { may: ['base', 'model'], owns: [] },
  worker: { may: ['base', 'model', 'media'], owns: [] },
  runners: { may: ['base', 'model'], owns: ['@kubernetes/client-node', 'undici', 'jose'] },
  billing: {
    may: ['base', 'model', 'store'],
    owns: ['stripe', 'nodemailer', 'pdfkit', 'dejavu-fonts-ttf', '@fontsource/unifontex'],
  },
  webhooks: { may: ['base', 'model', 'store'], owns: [] },
  archive: { may: ['base', 'model', 'store', 'objects'], owns: [] },
  backup: { may: ['base', 'model', 'store', 'objects'], owns: [] },
  controller: { may: ['base', 'model', 'store', 'objects', 'runners', 'billing', 'webhooks', 'archive'], owns: [] },
  mcp: { may: ['base', 'model'], owns: ['@modelcontextprotocol/sdk'] },
  api: {
    may: ['base', 'model', 'mcp', 'store', 'objects'],
    owns: ['express', 'swagger-ui-dist'],
  },
  dashboard: {
    may: ['base', 'model', 'store', 'objects', 'api', 'billing'],
    owns: ['express', 'htm', 'openid-client', '@simplewebauthn/server', 'uplot'],
  },
  client: { may: ['base', 'model', 'mcp'], owns: [] },
  admin: {
    may: ['base', 'model', 'store', 'objects', 'billing', 'runners', 'media', 'egress', 'archive', 'backup', 'client'],
    owns: [],
  },
};
/** Modules of Node that model may import: it does no I/O and reads no clock. */
const pure: Record<string, readonly string[]> = {
  'node:net': ['BlockList', 'isIP', 'isIPv4', 'isIPv6'],
  'node:crypto': ['hash'],
  'node:zlib': ['crc32'],
};
const impure =
  /\b(?:Date\.now|Math\.random|performance|process|console|fetch|crypto|setTimeout|setInterval|setImmediate|queueMicrotask)\b|\bDate\(\s*\)|\bimport\s*\(/g;

/** Longest chain of imports between the folders and top-level files of src/store. */
const maxStoreDepth = 6;

const sources = [...texts].filter(([path]) => /^src\/.*\.ts$/.test(path));
const imports = sources.flatMap(([path, text]) => listImports(text).map((found) => ({ path, ...found })));

describe('imports', () => {
  it('ARCHITECTURE.md shows this table', () => {
    expect(readTable(read('ARCHITECTURE.md'))).to.deep.equal(folders);
  });

  it('ARCHITECTURE.md says which folders are there', () => {
    const said = /^Folders: (.*)\.$/m.exec(read('ARCHITECTURE.md'))?.[1] ?? '';
    const there = new Set(sources.map(([path]) => homeOf(path)));
    expect(listCode(said).sort()).to.deep.equal([...there].sort());
  });

  it('stay within the table', () => {
    const wrong = imports.filter(({ path, from }) => !isAllowed(path, from));
    expect(wrong.map(({ path, line, from }) => `${path}:${line} imports ${from}`)).to.deep.equal([]);
  });

  it('never lead from a file back to it', () => {
    const left = new Map(sources.map(([path]) => [path, neighbours(path)]));
    // A file that imports none of the others, or that none of them imports, is in no circle.
    for (let before = 0; before !== left.size; ) {
      before = left.size;
      for (const [path, wanted] of left) {
        const isImported = [...left.values()].some((others) => others.includes(path));
        if (!isImported || !wanted.some((from) => left.has(from))) left.delete(path);
      }
    }
    expect([...left.keys()]).to.deep.equal([]);
  });

  it(`folders of store import one another without a cycle, in chains of at most ${maxStoreDepth}`, () => {
    const subjects = new Map<string, Set<string>>();
    for (const { path, from } of imports.filter(({ path }) => path.startsWith('src/store/'))) {
      const [own, other] = [path, posix.join(posix.dirname(path), from)].map(
        (at) => /^src\/store\/([^/]+)/.exec(at)?.[1],
      );
      const others = subjects.get(own!) ?? new Set();
      subjects.set(own!, from.startsWith('.') && other && other !== own ? others.add(other) : others);
    }
    expect(depthOf(subjects)).to.be.at.most(maxStoreDepth);
  });

  it('name what they import, so that this can be checked', () => {
    const code = sources.map(([path, text]) => [path, blank(text)] as const);
    expect(findPlaces(/\b(?:import|require)\s*\(\s*[^'"\s].*/g, code)).to.deep.equal([]);
  });

  it('every package of package.json has an owner', () => {
    const { dependencies } = JSON.parse(read('package.json'));
    expect(Object.keys(dependencies).filter((name) => ownersOf(name).length === 0)).to.deep.equal([]);
  });

  it('package-lock.json holds every package that it names, for every platform', () => {
    const { packages } = JSON.parse(read('package-lock.json'));
    const named = Object.values<{ optionalDependencies?: object }>(packages).flatMap((entry) =>
      Object.keys(entry.optionalDependencies ?? {}),
    );
    expect(named.filter((name) => !packages[`node_modules/${name}`])).to.deep.equal([]);
  });

  it('the API loads no runner, and nothing of a cluster', () => {
    const seen = loadedWith('src/roles/run-api.ts');
    expect(seen).to.include('src/roles/serve-api.ts');
    expect(seen.filter((from) => /^src\/(?:runners|worker|media)\/|kubernetes/.test(from))).to.deep.equal([]);
  });

  it('trawl get loads neither the record nor what workers run', () => {
    const seen = loadedWith('src/client/get.ts');
    expect(seen).to.include('src/base/config.ts');
    expect(seen.filter((from) => !/^(?:node:|src\/(?:client|base|model)\/)/.test(from))).to.deep.equal([]);
  });

  it('no role loads OpenTelemetry at its start', () => {
    const roles = sources.map(([path]) => path).filter((path) => /^src\/roles\/run-.*\.ts$/.test(path));
    expect(loadedWith('src/roles/run-up.ts')).to.include('@opentelemetry/sdk-trace');
    const seen = roles.flatMap((role) => loadedWith(role, 'at its start').map((from) => `${role}: ${from}`));
    expect(seen.filter((from) => /opentelemetry|otlp/.test(from))).to.deep.equal([]);
  });

  it('a worker loads no package and neither HTTP nor TLS, which would cost each job processor time', () => {
    const seen = loadedWith('src/roles/run-worker.ts', 'at its start');
    expect(seen).to.include('src/worker/gateway-client.ts');
    expect(seen.filter((from) => !/^(?:node:(?!https?$|tls$)|src\/)/.test(from))).to.deep.equal([]);
  });

  it('no role and no command of the operator loads a compiler of schemas or all clients of Redis at its start', () => {
    const roles = sources.map(([path]) => path).filter((path) => /^src\/roles\/run-.*\.ts$/.test(path));
    expect(roles).to.include('src/roles/run-up.ts');
    for (const first of [...roles, 'src/admin/admin.ts']) {
      const seen = loadedWith(first, 'at its start');
      expect(seen).to.include('src/base/config.ts');
      expect(seen.filter((from) => from === 'ajv' || from === '@redis/client')).to.deep.equal([]);
    }
  });

  it('trawl up loads nothing of a cluster where it runs workers as processes', () => {
    expect(loadedWith('src/roles/run-up.ts')).to.include('undici');
    const seen = loadedWith('src/roles/run-up.ts', 'at its start');
    expect(seen.filter((from) => /kubernetes|undici|jose/.test(from))).to.deep.equal([]);
  });

  it('model is pure', () => {
    const model = sources.filter(([path]) => path.startsWith('src/model/'));
    const code = model.map(([path, text]) => [path, blank(text)] as const);
    expect([...model.flatMap(listImpure), ...findPlaces(impure, code)]).to.deep.equal([]);
  });
});

function isAllowed(path: string, from: string): boolean {
  const here = homeOf(path);
  if (from.startsWith('node:')) return true;
  if (!from.startsWith('.')) return ownersOf(from).includes(here);
  const target = posix.join(posix.dirname(path), from);
  const may = folders[here]?.may ?? [];
  return target.startsWith('src/') && (homeOf(target) === here || may.includes(homeOf(target)) || may.includes('all'));
}

/** The files of src and the packages that are loaded with a file: by imports alone at its start, later by `import()` too. */
function loadedWith(first: string, when: 'at its start' | 'ever' = 'ever'): string[] {
  const left = when === 'ever' ? /^import type .*?;$/gms : /^import type .*?;$|\bawait import\([^)]*\)/gms;
  const found = new Set([first]);
  for (const path of found) {
    const text = texts.get(path)?.replace(left, '') ?? '';
    for (const { from } of listImports(text)) {
      found.add(from.startsWith('.') ? posix.join(posix.dirname(path), from) : from);
    }
  }
  return [...found];
}

/** The files of src that a file of src imports, types too. */
function neighbours(path: string): string[] {
  return imports.flatMap((found) =>
    found.path === path && found.from.startsWith('.') ? [posix.join(posix.dirname(path), found.from)] : [],
  );
}

/** The row of the table that a file of src belongs to. */
function homeOf(path: string): string {
  return path.split('/')[1]!;
}

function ownersOf(from: string): string[] {
  const name = from.split('/', from.startsWith('@') ? 2 : 1).join('/');
  const owns = ({ owns }: Folder) =>
    owns.some((owned) => owned === name || (owned.endsWith('*') && name.startsWith(owned.slice(0, -1))));
  return Object.keys(folders).filter((folder) => owns(folders[folder]!));
}

/** Everything that a file of model takes from Node and that is not known to be pure. */
function listImpure([path, text]: readonly [string, string]): string[] {
  const statements = text.matchAll(/^import (?:type )?(.*?) from '(node:[^']+)';$/gms);
  return [...statements].flatMap(([, what, from]) => {
    const names = what!.replace(/[{}\s]/g, '').split(',');
    return names.filter((name) => !pure[from!]?.includes(name)).map((name) => `${path}: ${name} from ${from}`);
  });
}

/** The table of folders of ARCHITECTURE.md: `| folder | what is in it | may import | owns |`. */
function readTable(text: string): Record<string, Folder> {
  const rows = [...text.matchAll(/^\| `([^`]+)` \|[^|\n]*\|([^|\n]*)\|([^|\n]*)\|$/gm)];
  return Object.fromEntries(
    rows.map(([, name, may, owns]) => [
      name,
      { may: may!.includes('all') ? ['all'] : listCode(may!), owns: listCode(owns!) },
    ]),
  );
}

function listCode(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, word]) => word!);
}

/** Returns the length of the longest chain of imports; Infinity for a cycle. */
function depthOf(imported: ReadonlyMap<string, ReadonlySet<string>>): number {
  const below = (name: string, way: readonly string[]): number => {
    if (way.includes(name)) return Infinity;
    const others = [...(imported.get(name) ?? [])];
    return 1 + Math.max(0, ...others.map((other) => below(other, [...way, name])));
  };
  return Math.max(...[...imported.keys()].map((name) => below(name, [])));
}
