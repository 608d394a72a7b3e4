import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import { python } from '../support/media.ts';
import { seed } from '../support/seed.ts';
import { root } from '../support/tree.ts';

/** Compares the patterns of sites.py with those of Python. */
const script = String.raw`
import contextlib, glob, importlib.util, io, json, os, pathlib, random, re, sys, tempfile
sys.path.insert(0, sys.argv[1])
import driver, sites

def matches(pattern, url):
    return sites.LazyPattern(pattern).match(url) is not None

def compare_table(rows):
    return [{'compiled': re.compile(row[0]).match(row[1]) is not None, 'lazy': matches(*row),
             'needs': sites.has(row[1].lower(), sites.list_needs(row[0]))} for row in rows]

def compare_random(seed, count):
    """Draws patterns of all constructs, and texts that they often match."""
    draw, wrong, matched, skipped = random.Random(seed), [], 0, 0
    letters = ['a', 'b', 'S', '.', '/', '-', ' ', 's', 'k', '\u017f', '\u212a']
    atoms = ['a', 'b', 's', 'K', 'ab', r'\.', '.', '[ab]', '[^]a]', r'\w', r'\x61', r'\-', '/', ' ', '\\\u00e9', '\u017f', '[)|]']
    def pattern(depth):
        return '|'.join(''.join(atom(depth) for _ in range(draw.randint(0, 4))) for _ in range(draw.choice([1, 1, 1, 2, 3])))
    def atom(depth):
        if depth and draw.random() < 0.35:
            said = draw.choice(['(', '(?:', '(?!', '(?=', '(?i:', '(?x:', '(?>', '(?#']) + pattern(depth - 1) + ')'
            # Repeated without end, groups in groups can take for ever to match.
            return said + draw.choice(['', '', '?', '{2}', '{0,1}', '??', ' ', '{'])
        return draw.choice(atoms) + draw.choice(['', '', '', '', '?', '*', '+', '{2}', '{0,1}', '+?', ' ', '{'])
    for _ in range(count):
        text = draw.choice(['', '(?i)', '(?x)', '(?ix)']) + pattern(3)
        if draw.random() < 0.1:
            text = text.replace(' ', ' # a comment (b\n ')
        try:
            compiled = re.compile(text)
        except (re.error, OverflowError):
            continue
        for _ in range(8):
            url = ''.join(draw.choice(letters) for _ in range(draw.randint(0, 5)))
            found = compiled.match(url) is not None
            matched += found
            skipped += not sites.has(url.lower(), sites.list_needs(text))
            if found != matches(text, url):
                wrong.append([text, url])
    return {'wrong': wrong[:5], 'matched': matched, 'skipped': skipped}

def compare_examples(seed, count):
    """Asks the patterns of all sites about URLs that yt-dlp's sources name as examples."""
    urls = set()
    for path in glob.glob(os.path.join(os.path.dirname(driver.yt_dlp.extractor.__file__), '*.py')):
        with open(path, encoding='utf-8') as lines:
            urls.update(re.findall(r"'url': '([^']+)'", lines.read()))
    classes = [site for site in driver.yt_dlp.extractor.gen_extractor_classes() if site.__name__ != 'GenericIE']
    plain = [[re.compile(each) for each in driver.yt_dlp.utils.variadic(site._VALID_URL or ())] for site in classes]
    sites.compile_lazily(classes)
    wrong, matched = [], 0
    for url in random.Random(seed).sample(sorted(urls), count):
        for site, patterns in zip(classes, plain):
            found = next(filter(None, (each.match(url) for each in patterns)), None)
            matched += found is not None
            mine = site._match_valid_url(url)
            if (found and found.groupdict()) != (mine and mine.groupdict()):
                wrong.append([site.__name__, url])
    return {'wrong': wrong[:5], 'urls': len(urls), 'matched': matched}

def count_compiled():
    """Counts the patterns that the driver of a worker compiles for a URL that belongs to no site."""
    nowhere = 'http://127.0.0.1:9'
    order = {'action': 'inspect', 'url': f'{nowhere}/film.mp4', 'folder': '/', 'proxy': nowhere, 'tools': '/', 'node': '/', 'plugins': []}
    sys.stdin = io.StringIO(json.dumps(order) + '\n')
    with contextlib.redirect_stdout(io.StringIO()):
        driver.main()
    return count_patterns(order['url'])

def count_warmed(path):
    """Counts the patterns that the warm parent of the inspector compiles before its first request."""
    spec = importlib.util.spec_from_file_location('inspector_parent', path)
    parent = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(parent)
    parent.warm(driver)
    return count_patterns('http://127.0.0.1:9/film.mp4')

def count_patterns(url):
    classes = driver.yt_dlp.extractor.gen_extractor_classes()
    patterns = [each for site in classes for each in site.__dict__.get('_VALID_URL_RE', ())]
    return {'takers': [site.__name__ for site in classes if site.suitable(url)], 'patterns': len(patterns),
            'compiled': sum(getattr(each, 'compiled', each) is not None for each in patterns)}

def compare_kept():
    """Returns how many patterns are listed anew for a URL, without kept needs, with them, and with those of another version or damaged."""
    listed, list_needs = [], sites.list_needs
    sites.list_needs = lambda pattern: listed.append(pattern) or list_needs(pattern)
    classes = driver.yt_dlp.extractor.gen_extractor_classes()
    def count():
        listed.clear()
        sites.compile_lazily(classes)
        found = [site.__name__ for site in classes if site.suitable('https://vimeo.com/1')]
        return [len(listed) > 1_700 or len(listed), found]
    with tempfile.TemporaryDirectory() as folder:
        sites.KEPT = pathlib.Path(folder, 'kept.json')
        counts = [count()]
        sites.keep(classes)
        names, text = os.listdir(folder), sites.KEPT.read_text()
        counts.append(count())
        for damaged in (text.replace('Compiles the pattern', 'compiles the pattern', 1), text[:-100], '[]', '{}'):
            sites.KEPT.write_text(damaged)
            counts.append(count())
    return {'counts': counts, 'names': names}

def is_compiled_for(url):
    """Returns true when a pattern that does not match the URL is compiled."""
    pattern = sites.LazyPattern('http://site/')
    return pattern.match(url) is None and pattern.compiled is not None

print(json.dumps(globals()[sys.argv[2]](*json.loads(sys.argv[3]))))
`;

/** Returns what one of these functions returns. */
function ask<T>(name: string, ...args: unknown[]): T {
  const words = ['-I', '-c', script, join(root, 'src/media'), name, JSON.stringify(args)];
  // A random pattern may take for ever to match, and mocha's own limit cannot end a synchronous call.
  return JSON.parse(execFileSync(python, words, { encoding: 'utf8', timeout: 250_000 })) as T;
}

interface PatternCounts {
  readonly takers: readonly string[];
  readonly patterns: number;
  readonly compiled: number;
}

type Row = readonly [pattern: string, url: string, matches: boolean, needs: boolean];

const rows: readonly Row[] = [
  [String.raw`https?://(?:www\.)?site\.tv/v/(?P<id>\d+)`, 'https://www.site.tv/v/1', true, true],
  [String.raw`https?://(?:www\.)?site\.tv/v/(?P<id>\d+)`, 'https://www.other.tv/v/1', false, false],
  ['(?i)http://Site/', 'http://sITE/', true, true],
  ['http://one/|http://two/', 'http://two/', true, true],
  ['http://(?:one|two)/', 'http://six/', false, false],
  ['http://(?:one|)/', 'http:///', true, true],
  ['http://sites?/', 'http://site/', true, true],
  ['http://(?:the)?site/', 'http://site/', true, true],
  ['http://(?:the){0}site/', 'http://site/', true, true],
  ['http://site{a|b}cd/', 'http://site{a', true, true],
  ['(?i)http://\\\u017fite/', 'http://site/', true, true],
  ['http://site(?!/list)/', 'http://site/', true, true],
  ['http://site(?=/list)', 'http://site/', false, true],
  ['http://[^)|(]+/', 'http://any/', true, true],
  [String.raw`http://\x73ite/`, 'http://site/', true, true],
  [String.raw`http://((((((((((a))))))))))\10/`, 'http://aa/', true, true],
  ['http://(m)?site/(?(1)mobile|desk)', 'http://site/desk', true, true],
  ['(?x) http:// # a comment (with a mark|\n site ? /', 'http://sit/', true, true],
  ['(?x) http:// site /', 'http://tale/', false, false],
  ['(?x: http:// # sure\n site/ )', 'http://site/', true, true],
  ['http://(?# why )site/', 'http://tale/', false, false],
  ['http://site(?# why )?/', 'http://sit/', true, true],
  ['http://(?:site)(?#)?/', 'http:///', true, true],
  ['(?x) http://site (?# why ) {0}', 'http://sit', true, true],
  [String.raw`http://(?#\)(the)site/`, 'http://site/', true, true],
  ['(?x) http://site # a comment \\\n that goes on\n', 'http://site', true, true],
  ['(?x) http://ab\u001ccd', 'http://ab\u001ccd', true, true],
  [`${'(?:z?'.repeat(200)}site${')'.repeat(200)}`, 'site', true, true],
  ['(?i)http://kiss/', 'http://\u212ai\u017f\u017f/', true, false],
];

describe('The lazy pattern of a site', () => {
  it('matches as the compiled one, and is not compiled where a text is missing', () => {
    const asked = rows.map(([pattern, url]) => [pattern, url]);
    const found = ask<readonly Record<'compiled' | 'lazy' | 'needs', boolean>[]>('compare_table', asked);
    expect(found).to.deep.equal(rows.map(([, , matches, needs]) => ({ compiled: matches, lazy: matches, needs })));
  });

  it('is compiled for a long URL, in which a search of texts would take longer', () => {
    expect(ask<boolean>('is_compiled_for', `http://tale/${'e'.repeat(400)}`)).to.equal(false);
    expect(ask<boolean>('is_compiled_for', `http://tale/${'e'.repeat(600)}`)).to.equal(true);
  });

  it(`matches as the compiled one for random patterns (seed ${seed})`, () => {
    const { wrong, matched, skipped } = ask<{ wrong: string[]; matched: number; skipped: number }>(
      'compare_random',
      seed,
      3_000,
    );
    expect(wrong).to.deep.equal([]);
    expect(matched).to.be.above(100);
    expect(skipped).to.be.above(300);
  });

  it(`matches as the compiled one for the example URLs of yt-dlp (seed ${seed})`, () => {
    const { wrong, urls, matched } = ask<{ wrong: string[]; urls: number; matched: number }>(
      'compare_examples',
      seed,
      100,
    );
    expect(wrong).to.deep.equal([]);
    expect(urls).to.be.above(5_000);
    expect(matched).to.be.above(80);
  });

  for (const [title, name, ...args] of [
    ['a worker for fewer than 50 of 1,700 sites when its URL belongs to none', 'count_compiled'],
    [
      'the warm inspector for fewer than 50 of 1,700 sites',
      'count_warmed',
      join(root, 'src/worker/inspector-parent.py'),
    ],
  ] as const) {
    it(`is compiled by ${title}`, () => {
      const found = ask<PatternCounts>(name, ...args);
      expect(found.takers).to.deep.equal(['GenericIE']);
      expect(found.patterns).to.be.above(1_700);
      expect(found.compiled).to.be.below(50);
    });
  }

  it('takes what it needs from the file of the setup, unless another version wrote that file or it is damaged', () => {
    const takers = ['VimeoIE', 'GenericIE'];
    const anew = [true, takers];
    expect(ask('compare_kept')).to.deep.equal({
      counts: [anew, [0, takers], anew, anew, anew, anew],
      names: ['kept.json'],
    });
  });
});
