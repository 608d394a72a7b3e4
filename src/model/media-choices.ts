/** Qualities and formats that callers may ask for, the best or usual one first. They stand here alone, so that `trawl get` loads no schemas. */
export const mediaChoices = {
  video: { quality: ['best', '1080p', '720p', '480p', '360p'], format: ['mp4', 'webm', 'mkv'] },
  audio: { quality: ['best', '320kbps', '256kbps', '128kbps'], format: ['mp3', 'm4a', 'wav'] },
} as const;
