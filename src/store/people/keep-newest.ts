import { recordLimits } from '../../model/record-limits.ts';

/**
 * keep_newest(name, field, entry): keeps JSON of an entry with its end, `until`, in the hash `name`; drops entries that have
 * ended, and the one that ends first when there are too many. Repeatable.
 */
export const keepNewest = /* lua */ `
local function keep_newest(name, field, entry)
  local flat, kept = redis.call('HGETALL', name), {}
  for n = 1, #flat, 2 do
    local ends = cjson.decode(flat[n + 1])['until']
    if ends <= now then redis.call('HDEL', name, flat[n])
    elseif flat[n] ~= field then kept[#kept + 1] = { field = flat[n], ends = ends } end
  end
  table.sort(kept, function(a, b) return a.ends < b.ends end)
  for n = 1, #kept - ${recordLimits.sessionsOfPerson} + 1 do redis.call('HDEL', name, kept[n].field) end
  redis.call('HSET', name, field, cjson.encode(entry))
end
`;
