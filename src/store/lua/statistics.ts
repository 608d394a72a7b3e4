/**
 * Platform statistics (D52), in 61 slots of a minute each, under the key `stats`.
 *
 * count_answer(log, took, ran) counts one answer or one end of a job: its request-log status, its milliseconds, and those for which
 *   it ran, nil where it never did. What ran is summed up whole, because it tells those who wait when their turn comes.
 */
export const statistics = /* lua */ `
local function count_answer(log, took, ran)
  local minute = math.floor(now / 60000)
  local slot = string.format('%d', minute % 61)
  local old = redis.call('HGET', stats, slot)
  local present, answers, well, timed, sum, runs, run_sum = string.match(old or '', '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if tonumber(present) ~= minute then answers, well, timed, sum, runs, run_sum = 0, 0, 0, 0, 0, 0 end
  if tonumber(log) < 500 then well = well + 1 end
  if took <= 60000 then timed, sum = timed + 1, sum + took end
  if ran then runs, run_sum = runs + 1, run_sum + ran end
  undos[#undos + 1] = function()
    if old then redis.pcall('HSET', stats, slot, old) else redis.pcall('HDEL', stats, slot) end
  end
  redis.call('HSET', stats, slot, string.format('%d %d %d %d %d %d %d', minute, answers + 1, well, timed, sum, runs, run_sum))
end
`;
