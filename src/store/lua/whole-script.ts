/** Lua that reads a list into locals, from its first element that is not skipped. */
const locals = (names: readonly string[], list: string, skipped: number): string =>
  names.length === 0 ? '' : `local ${names.join(', ')} = unpack(${list}, ${skipped + 1}, ${skipped + names.length})\n`;

/** Lua around a script that adds to `undos`; others have none to call. */
const undoing = [
  'local undos = {}\nlocal ok, reply = pcall(function()\n',
  '\nend)\nif ok then return reply end\nfor n = #undos, 1, -1 do pcall(undos[n]) end\nerror(reply, 0)\n',
] as const;

/** A function that a script declares: one line, or all until an `end` that is not indented. */
const declaredFunction = /^local function (\w+)\((?:.* end$|[\s\S]*?^end$)\n/gm;

/** Returns Lua without functions that nothing in it names: each call of a script pays for every function that it declares. */
function dropUnused(lua: string): string {
  const kept = lua.replace(declaredFunction, (declared, name: string) =>
    lua.split(new RegExp(`\\b${name}\\b`)).length > 2 ? declared : '',
  );
  return kept === lua ? lua : dropUnused(kept);
}

/** Returns the text of a script: its body, with its keys and arguments as locals, and without what it does not use. */
export function wholeScript(flags: string, keys: readonly string[], args: readonly string[], body: string): string {
  const [before, behind] = body.includes('undos') ? undoing : ['', ''];
  return [
    flags === '' ? '#!lua\n' : `#!lua flags=${flags}\n`,
    `local clock = redis.call('TIME')\n`,
    'local now = clock[1] * 1000 + math.floor(clock[2] / 1000)\n',
    `if now > tonumber(ARGV[1]) then return { 'late', now } end\n`,
    'now = now + tonumber(ARGV[2])\n',
    locals(keys, 'KEYS', 0),
    locals(args, 'ARGV', 2),
    before,
    dropUnused(body),
    behind,
  ].join('');
}
