import { expect } from 'chai';
import { siteOf } from '../../src/model/source-site.ts';

describe('the site of a source', () => {
  const table: [url: unknown, site: string][] = [
    ['https://www.youtube.com/watch?v=a', 'youtube'],
    ['https://youtu.be/a', 'youtube'],
    ['https://YOUTUBE.com./a', 'youtube'],
    ['https://player.vimeo.com:8443/video/1', 'vimeo'],
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
