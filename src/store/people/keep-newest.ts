import { recordLimits } from '../../model/record-limits.ts';
import { readJson } from '../lua/read-json.ts';

/**
 * keep_newest(name, field, entry): keeps JSON of an entry with its end, `until`, in the hash `name`; drops entries that have
 * ended, and the one that ends first when there are too many: those that are bound to an account count apart, so its owners push out
 * nothing else. Repeatable.
 */
export const keepNewest = /* lua */ `${readJson}
local function keep_newest(name, field, entry)
  local flat, kept = redis.call('HGETALL', name), {}
  for n = 1, #flat, 2 do
    local known = read_json(flat[n + 1])
    local is_alike = (known.bound or false) == entry.bound and (not entry.bound or known.account == entry.account)
    if (known['until'] or 0) <= now then redis.call('HDEL', name, flat[n])
    elseif flat[n] ~= field and is_alike then kept[#kept + 1] = { field = flat[n], ends = known['until'] } end
  end
  table.sort(kept, function(a, b) return a.ends < b.ends end)
  for n = 1, #kept - ${recordLimits.sessionsOfPerson} + 1 do redis.call('HDEL', name, kept[n].field) end
  redis.call('HSET', name, field, cjson.encode(entry))
end
`;
