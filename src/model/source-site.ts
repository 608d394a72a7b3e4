/** The sites that metrics name, by the domains of their media pages; every other site is `other`, so the label stays bounded. */
const siteDomains: Readonly<Record<string, readonly string[]>> = {
  archive: ['archive.org'],
  bandcamp: ['bandcamp.com'],
  bilibili: ['bilibili.com', 'b23.tv'],
  dailymotion: ['dailymotion.com', 'dai.ly'],
  facebook: ['facebook.com', 'fb.watch'],
  instagram: ['instagram.com'],
  linkedin: ['linkedin.com'],
  mixcloud: ['mixcloud.com'],
  niconico: ['nicovideo.jp', 'nico.ms'],
  odysee: ['odysee.com'],
  pinterest: ['pinterest.com', 'pin.it'],
  reddit: ['reddit.com', 'redd.it'],
  rumble: ['rumble.com'],
  soundcloud: ['soundcloud.com'],
  ted: ['ted.com'],
  tiktok: ['tiktok.com'],
  twitch: ['twitch.tv'],
  vimeo: ['vimeo.com'],
  x: ['x.com', 'twitter.com', 't.co'],
  youtube: ['youtube.com', 'youtu.be', 'youtube-nocookie.com'],
};

const siteByDomain = new Map(Object.entries(siteDomains).flatMap(([site, domains]) => domains.map((it) => [it, site])));

/** Returns the name of a well-known site for a URL of its domain or of a name below it, else `other`. */
export function siteOf(url: unknown): string {
  const labels = (URL.parse(String(url))?.hostname ?? '').replace(/\.$/, '').split('.');
  for (let first = 0; first < labels.length; first++) {
    const site = siteByDomain.get(labels.slice(first).join('.'));
    if (site !== undefined) return site;
  }
  return 'other';
}
