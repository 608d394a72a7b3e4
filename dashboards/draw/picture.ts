export const themes = ['dark', 'light'] as const;
export const widths = [1400, 900] as const;

/** One dashboard as it is drawn; its file is a PNG or a WebP. */
export interface Picture {
  readonly board: string;
  readonly theme: (typeof themes)[number];
  readonly width: number;
  readonly file: string;
}
