import { expect } from 'chai';
import { siteOf } from '../../src/model/source-site.ts';

describe('the site of a source', () => {
  const table: [url: unknown, site: string][] = [
    ['https://www.youtube.com/watch?v=a', 'youtube'],
    ['https://youtu.be/a', 'youtube'],
    ['https://YOUTUBE.com./a', 'youtube'],
    ['https://player.vimeo.com:8443/video/1', 'vimeo'],
    ['https://www.youtube-nocookie.com/embed/a', 'youtube'],
    ['https://archive.org/a', 'archive'],
    ['https://a.bandcamp.com/a', 'bandcamp'],
    ['https://bilibili.com/a', 'bilibili'],
    ['https://b23.tv/a', 'bilibili'],
    ['https://dailymotion.com/a', 'dailymotion'],
    ['https://dai.ly/a', 'dailymotion'],
    ['https://facebook.com/a', 'facebook'],
    ['https://fb.watch/a', 'facebook'],
    ['https://instagram.com/a', 'instagram'],
    ['https://linkedin.com/a', 'linkedin'],
    ['https://mixcloud.com/a', 'mixcloud'],
    ['https://nicovideo.jp/a', 'niconico'],
    ['https://nico.ms/a', 'niconico'],
    ['https://odysee.com/a', 'odysee'],
    ['https://pinterest.com/a', 'pinterest'],
    ['https://pin.it/a', 'pinterest'],
    ['https://reddit.com/a', 'reddit'],
    ['https://redd.it/a', 'reddit'],
    ['https://rumble.com/a', 'rumble'],
    ['https://soundcloud.com/a', 'soundcloud'],
    ['https://ted.com/a', 'ted'],
    ['https://tiktok.com/a', 'tiktok'],
    ['https://twitch.tv/a', 'twitch'],
    ['https://x.com/a', 'x'],
    ['https://twitter.com/a', 'x'],
    ['https://t.co/a', 'x'],
    ['https://notyoutube.com/a', 'other'],
    ['https://youtube.com.example.org/a', 'other'],
    ['https://user-7f3a.example/a', 'other'],
    ['http://127.0.0.1/a', 'other'],
    ['no URL', 'other'],
    [undefined, 'other'],
  ];
  for (const [url, site] of table) {
    it(`of ${url} is ${site}`, () => expect(siteOf(url)).to.equal(site));
  }
});
