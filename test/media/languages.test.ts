import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, openFlashes } from '../support/flashes.ts';

const [yes, selected] = ['DEFAULT=YES,AUTOSELECT=YES,', 'AUTOSELECT=YES,'];

describe('A stream with sound in several languages', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  let sets: readonly string[];
  before(async () => {
    source = await openFlashes();
    // The sound of the film, and a nearly silent one of a higher bit rate.
    const other = ['-f', 'lavfi', '-t', '10', '-i', 'anoisesrc=r=48000:a=0.001'];
    const maps = ['-map', '0:v', '-map', '0:a', '-map', '1:a', '-c:v', 'copy', '-c:a', 'aac'];
    const rates = ['-b:a:0', '64k', '-b:a:1', '192k'];
    const names = [
      '-init_seg_name',
      '$RepresentationID$.mp4',
      '-media_seg_name',
      '$RepresentationID$-$Number%03d$.m4s',
    ];
    const groups = ['-adaptation_sets', 'id=0,streams=0 id=1,streams=1 id=2,streams=2', '-seg_duration', '2'];
    await source.ffmpeg('-i', source.film, ...other, ...maps, ...rates, '-f', 'dash', ...groups, ...names, 'list.mpd');
    sets = readFileSync(source.path('list.mpd'), 'utf8').match(/<AdaptationSet[\s\S]*?<\/AdaptationSet>/g) ?? [];
    for (const [number, name] of ['v', 'film', 'other'].entries()) {
      const pieces = Array.from({ length: 5 }, (_, n) => `#EXTINF:2,\n${number}-00${n + 1}.m4s\n`).join('');
      const head = `#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI="${number}.mp4"\n`;
      source.write(`${name}.m3u8`, `${head}${pieces}#EXT-X-ENDLIST\n`);
    }
  });
  after(() => source.stop());
  const good = async (name: string) => {
    expect(await source.make('video', name, {}, ({ file }) => expectMarks(file)), name).to.equal(undefined);
  };

  for (const [title, sounds] of [
    [
      'its list calls the default one, although it does not call others alternates',
      [
        ['English', 'film', yes],
        ['Spanish', 'other', selected],
      ],
    ],
    [
      'its list calls the default one, although it is not the first',
      [
        ['English', 'other', ''],
        ['Dubbed', 'film', yes],
      ],
    ],
    [
      'its list names first when none is the default one',
      [
        ['English', 'film', ''],
        ['Spanish', 'other', ''],
      ],
    ],
  ] as const) {
    it(`D32: is delivered by HLS with the sound that ${title}`, async () => {
      const media = sounds.map(
        ([name, list, words]) => `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="${name}",${words}URI="${list}.m3u8"\n`,
      );
      const picture =
        '#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=64x36,CODECS="avc1.42c00c,mp4a.40.2",AUDIO="a"\nv.m3u8\n';
      const name = nameOf(title, 'm3u8');
      source.write(name, `#EXTM3U\n${media.join('')}${picture}`);
      await good(name);
    });
  }

  for (const [title, film, other] of [
    ['its manifest calls the main one, not with a dub', ['en', 'main'], ['fr', 'dub']],
    ['its manifest calls the main one, not with a commentary', ['en', 'main'], ['en', 'commentary']],
    ['its manifest calls the main one, not with another one that has no role', ['en', 'main'], ['fr', null]],
    ['its manifest names first when it calls both main ones', ['en', 'main'], ['fr', 'main']],
    ['its manifest names first when it tells of no roles', ['en', null], ['fr', null]],
  ] as const) {
    it(`D32: is delivered by DASH with the sound that ${title}`, async () => {
      const told = [film, other].map(([language, role], n) => withRole(sets[n + 1] ?? '', language, role));
      // The first one is the film's only where that is what decides.
      const sounds = title.includes('first') ? told : told.toReversed();
      const name = nameOf(title, 'mpd');
      source.write(
        name,
        readFileSync(source.path('list.mpd'), 'utf8')
          .replace(sets[1] ?? '', sounds[0] ?? '')
          .replace(sets[2] ?? '', sounds[1] ?? ''),
      );
      await good(name);
    });
  }
});

/** Returns the name of a file that only one test writes. */
function nameOf(title: string, ext: string): string {
  return `${title.replaceAll(/\W+/g, '-')}.${ext}`;
}

function withRole(set: string, language: string, role: string | null): string {
  const told = role === null ? '' : `<Role schemeIdUri="urn:mpeg:dash:role:2011" value="${role}"/>`;
  return set
    .replace(/ lang="\w+"/, '')
    .replace(/^<AdaptationSet([^>]*)>/, `<AdaptationSet$1 lang="${language}">${told}`);
}
