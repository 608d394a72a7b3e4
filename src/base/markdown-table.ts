export function tableOf(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |\n`).join('');
}
