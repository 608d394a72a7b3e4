import { expect } from 'chai';
import { describeLandlock, findOpenNetwork, isolationOf } from '../../src/model/isolation.ts';
import { read } from '../support/tree.ts';

describe('isolationOf', () => {
  for (const [sandbox, landlock, isPod, name] of [
    ['user', 0, false, 'bwrap-user'],
    ['user', 7, true, 'bwrap-user'],
    ['namespace', 7, false, 'bwrap-namespace'],
    ['landlock-user', 7, false, 'landlock-user'],
    ['landlock-user', 0, false, 'landlock-user'],
    ['landlock-user', 7, true, 'pod'],
    ['none', 7, false, 'landlock'],
    ['none', 1, false, 'landlock'],
    ['none', 0, false, 'none'],
    ['none', 7, true, 'pod'],
    ['none', 0, true, 'pod'],
  ] as const) {
    it(`is ${name} with sandbox ${sandbox} and Landlock ${landlock} ${isPod ? 'in a pod' : 'on one machine'}`, () =>
      expect(isolationOf(sandbox, landlock, isPod)).to.equal(name));
  }
});

describe('findOpenNetwork', () => {
  for (const [isolation, landlock, network, isOpen] of [
    ['pod', 0, null, true],
    ['pod', 3, null, true],
    ['pod', 4, null, false],
    ['pod', 7, null, false],
    ['pod', 0, 'policies-enforced', false],
    ['landlock', 3, null, false],
    ['none', 0, null, false],
    ['bwrap-namespace', 0, null, false],
  ] as const) {
    it(`${isOpen ? 'refuses' : 'accepts'} ${isolation} with Landlock ${landlock} and ${network ?? 'no setting'}`, () =>
      expect(findOpenNetwork(isolation, landlock, network) !== null).to.equal(isOpen));
  }

  it('names the version, the cause and both remedies', () => {
    expect(findOpenNetwork('pod', 3, null))
      .to.include('version 3 of Landlock')
      .and.include('TCP connections of yt-dlp and ffmpeg past egress')
      .and.include('Linux 6.7')
      .and.include('TRAWL_WORKER_NETWORK=policies-enforced');
    expect(findOpenNetwork('pod', 0, null)).to.include('no Landlock');
  });
});

describe('what is said of Landlock', () => {
  it('names all that a recent version bars and nothing that is open', () =>
    expect(describeLandlock(7)).to.equal(
      'The kernel has version 7 of Landlock; it bars reading and writing files of others, moving files between folders, ' +
        'truncating files of others, TCP connections past egress, commands to devices, signals to other processes, abstract UNIX sockets.',
    ));

  it('names what an old version leaves open', () =>
    expect(describeLandlock(3)).to.match(
      /it bars .*; without bubblewrap, children are free in TCP connections past egress, /,
    ));

  it('names all that is open without Landlock', () =>
    expect(describeLandlock(0)).to.match(/^The kernel has no Landlock; without bubblewrap, .* files of others, /));

  for (const [version, linux, bars] of [
    [1, '5.13', 'reading and writing files of others'],
    [2, '5.19', 'moving files between folders'],
    [3, '6.2', 'truncating files of others'],
    [4, '6.7', 'TCP connections past `egress`'],
    [5, '6.10', 'commands to devices'],
    [6, '6.12', 'signals to other processes, abstract UNIX sockets'],
  ] as const) {
    it(`names ${bars} from version ${version} on, as the table of docs/images.md does`, () => {
      const access = bars.replaceAll('`', '');
      const [barredBefore, openBefore] = describeLandlock(version - 1).split('without bubblewrap');
      const [barred, open = ''] = describeLandlock(version).split('without bubblewrap');
      expect(openBefore).to.include(access);
      expect(barred).to.include(access);
      expect(barredBefore + open).not.to.include(access);
      expect(read('docs/images.md')).to.include(`| ${version} | ${linux} | ${bars} |`);
    });
  }
});
