export const outboxKeyNames = ['outbox', 'outboxDue'] as const;

/**
 * Lua that leaves a mail in the outbox, from where a controller sends it: the mail is written by the step that it tells of, so
 * neither exists without the other.
 *
 * put_mail(id, mail) writes a mail to the owners of an account, to one person or to the operators, in place of an unsent one with the same id.
 * put_back(hash, names, values) gives fields of a hash their earlier values, put_back_score(set, score, member) a member of a sorted set its
 * earlier score; an absent one is removed again.
 */
export const outboxLua = /* lua */ `
local function put_back(hash, names, values)
  for n, name in ipairs(names) do
    if values[n] then redis.pcall('HSET', hash, name, values[n]) else redis.pcall('HDEL', hash, name) end
  end
end

local function put_back_score(set, score, member)
  if score then redis.pcall('ZADD', set, score, member) else redis.pcall('ZREM', set, member) end
end

local function put_mail(id, mail)
  local old = redis.call('HGET', outbox, id)
  undos[#undos + 1] = function()
    put_back(outbox, { id }, { old })
    if not old then redis.pcall('ZREM', outboxDue, id) end
  end
  mail.at, mail.attempts = now, 0
  redis.call('HSET', outbox, id, cjson.encode(mail))
  redis.call('ZADD', outboxDue, string.format('%d', now), id)
end
`;
