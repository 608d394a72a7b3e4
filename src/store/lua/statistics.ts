/**
 * Platform statistics (D52), in 61 slots of a minute each, under the key `stats`.
 *
 * count_answer(log, took) counts one answer or one end of a job: its request-log status and its milliseconds.
 */
export const statistics = /* lua */ `
local function count_answer(log, took)
  local minute = math.floor(now / 60000)
  local slot = string.format('%d', minute % 61)
  local seen = { minute, 0, 0, 0, 0 }
  local old = redis.call('HGET', stats, slot)
  if old and tonumber(string.match(old, '^%d+')) == minute then
    seen = {}
    for word in string.gmatch(old, '%d+') do seen[#seen + 1] = tonumber(word) end
  end
  seen[2] = seen[2] + 1
  if tonumber(log) < 500 then seen[3] = seen[3] + 1 end
  if took <= 60000 then seen[4], seen[5] = seen[4] + 1, seen[5] + took end
  undos[#undos + 1] = function()
    if old then redis.pcall('HSET', stats, slot, old) else redis.pcall('HDEL', stats, slot) end
  end
  redis.call('HSET', stats, slot, table.concat(seen, ' '))
end
`;
