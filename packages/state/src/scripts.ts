// The Lua scripts: each is one atomic step on the projection.
//
// S1 A session's row, awaiting calls and index entry are replaced only by a commit with a higher sequence (I7).
// S2 Without a generation in the marker nothing is written: a flushed Redis is noticed by the next write.
// S3 What commits leave behind does not depend on the order or the number of times they are applied: an approval's row
//    is kept only while the newest applied commit awaits that call, an entry by its lowest sequence.

const runId = `
local function run_id() return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') end
`;

/** Reply of `apply` and of the readers when the marker is gone. */
export const lost = -1;
export const superseded = -2;

/** ARGV: root, only, seq, at, sid, turn_state, approvals, sessions, sessions of workspace, entries, score, row, awaiting,
 *  has summary, summary, number of requested approvals, (cid, row)…, (entry id, row)… */
export const apply = `
local root, only, seq, at, sid = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local live = redis.call('HMGET', KEYS[1], 'current', 'building')
local generations = {}
if only ~= '' then
  if live[2] ~= only then return ${superseded} end
  generations[1] = only
else
  if live[1] then table.insert(generations, live[1]) end
  if live[2] then table.insert(generations, live[2]) end
  if #generations == 0 then return ${lost} end
end
local function set_of(text)
  local set = {}
  for id in string.gmatch(text, '%S+') do set[id] = true end
  return set
end
local applied = 0
for _, generation in ipairs(generations) do
  local p = root .. generation .. ':'
  local session, approvals = p .. ARGV[6], p .. ARGV[7]
  local held = redis.call('HMGET', session, 'seq', 'awaiting', 'summary_seq', 'first_seq')
  local before = set_of(held[2] or '')
  local awaiting = before
  if seq > tonumber(held[1] or '0') then
    applied = 1
    awaiting = set_of(ARGV[13])
    for id in pairs(before) do
      if not awaiting[id] then redis.call('HDEL', approvals, sid .. '/' .. id) end
    end
    redis.call('HSET', session, 'seq', ARGV[3], 'row', ARGV[12], 'awaiting', ARGV[13])
    redis.call('ZADD', p .. ARGV[8], ARGV[11], sid)
    redis.call('ZADD', p .. ARGV[9], ARGV[11], sid)
  end
  if not held[4] or seq < tonumber(held[4]) then
    redis.call('HSET', session, 'first_seq', ARGV[3], 'created_at', at)
  end
  if ARGV[14] == '1' and seq > tonumber(held[3] or '0') then
    redis.call('HSET', session, 'summary_seq', ARGV[3], 'summary', ARGV[15])
  end
  local next = 17
  for _ = 1, tonumber(ARGV[16]) do
    if awaiting[ARGV[next]] then redis.call('HSET', approvals, sid .. '/' .. ARGV[next], ARGV[next + 1]) end
    next = next + 2
  end
  for i = next, #ARGV, 2 do
    local known = redis.call('HGET', p .. ARGV[10], ARGV[i])
    if not known or seq < tonumber(string.match(known, '^%d+')) then
      redis.call('HSET', p .. ARGV[10], ARGV[i], string.format('%s.%d %s', ARGV[3], (i - next) / 2, ARGV[i + 1]))
    end
  end
end
return applied
`;

/** KEYS: marker, lock. Answers lock holder, run id, and the marker's fields and values. */
export const inspect = `${runId}
return {redis.call('GET', KEYS[2]) or '', run_id(), redis.call('HGETALL', KEYS[1])}
`;

/** KEYS: lock. ARGV: token, ttl. */
export const renew = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

export const unlock = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`;

/** KEYS: marker, lock. ARGV: token, generation, drop current. */
export const begin = `${runId}
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return '' end
if ARGV[3] == '1' then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'building', ARGV[2])
return run_id()
`;

/** KEYS: marker, lock. ARGV: token, generation, run id, journal, (field, sequence)… */
export const finish = `${runId}
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
if redis.call('HGET', KEYS[1], 'building') ~= ARGV[2] or run_id() ~= ARGV[3] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'current', ARGV[2], 'run_id', ARGV[3], 'journal', ARGV[4], unpack(ARGV, 5))
return 1
`;

/** KEYS: marker. ARGV: run id to confirm or '', (field, sequence)… A checkpoint counts only where it was confirmed. */
export const advance = `${runId}
local held = redis.call('HMGET', KEYS[1], 'current', 'run_id')
local expected = ARGV[1]
if expected == '' then expected = held[2] end
if not held[1] or run_id() ~= expected then return 0 end
if ARGV[1] ~= '' then redis.call('HSET', KEYS[1], 'run_id', ARGV[1]) end
for i = 2, #ARGV, 2 do
  local known = redis.call('HGET', KEYS[1], ARGV[i])
  if not known or tonumber(ARGV[i + 1]) > tonumber(known) then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
return 1
`;

/** KEYS: marker. ARGV: root, index, turn_state prefix, order, first, last. Answers total, (row, created_at, summary)… */
export const list = `
local generation = redis.call('HGET', KEYS[1], 'current')
if not generation then return ${lost} end
local p = ARGV[1] .. generation .. ':'
local command = ARGV[4] == 'asc' and 'ZRANGE' or 'ZREVRANGE'
local reply = {redis.call('ZCARD', p .. ARGV[2])}
for _, sid in ipairs(redis.call(command, p .. ARGV[2], ARGV[5], ARGV[6])) do
  local row = redis.call('HMGET', p .. ARGV[3] .. sid, 'row', 'created_at', 'summary')
  for i = 1, 3 do table.insert(reply, row[i] or '') end
end
return reply
`;

/** KEYS: marker. ARGV: root, name within the generation. Answers the hash's fields and values. */
export const hash = `
local generation = redis.call('HGET', KEYS[1], 'current')
if not generation then return ${lost} end
return redis.call('HGETALL', ARGV[1] .. generation .. ':' .. ARGV[2])
`;
