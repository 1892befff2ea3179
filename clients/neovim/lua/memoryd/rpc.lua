-- One connection to the daemon's socket: JSON-RPC 2.0, one message a line. Made at the first request, and anew after
-- the daemon was restarted.
local uv = vim.uv or vim.loop

local M = {}

local pipe = nil -- the connection, or nil
local arriving = nil -- while it is being made: what to do when it is there
local unread = ''
local waiting = {} -- by id: the callback and the timer of a request that is not answered
local last_id = 0
local connections = 0 -- made so far

local function absolute(path)
  return path ~= nil and path:sub(1, 1) == '/'
end

--- Where the daemon listens, by the same rules as the daemon has for its defaults.
function M.socket_path()
  local set = require('memoryd.config').values.socket or vim.env.MEMORYD_PATHS__SOCKET
  if set and set ~= '' then
    return vim.fn.expand(set)
  end
  if absolute(vim.env.XDG_RUNTIME_DIR) then
    return vim.env.XDG_RUNTIME_DIR .. '/memoryd/memoryd.sock'
  end
  local session = '/run/user/' .. uv.getuid()
  local found = uv.fs_stat(session)
  if found and found.uid == uv.getuid() then
    return session .. '/memoryd/memoryd.sock'
  end
  local data = absolute(vim.env.XDG_DATA_HOME) and vim.env.XDG_DATA_HOME or uv.os_homedir() .. '/.local/share'
  return data .. '/memoryd/run/memoryd.sock'
end

local function answer(id, problem, result)
  local request = waiting[id]
  if not request then
    return -- it was given up
  end
  waiting[id] = nil
  request.timer:stop()
  request.timer:close()
  vim.schedule(function()
    request.callback(problem, result)
  end)
end

local function disconnect(problem)
  if pipe and not pipe:is_closing() then
    pipe:close()
  end
  pipe, unread = nil, ''
  for id in pairs(waiting) do
    answer(id, problem)
  end
end

local function take(line)
  local understood, message = pcall(vim.json.decode, line, { luanil = { object = true, array = true } })
  if not understood or type(message) ~= 'table' then
    disconnect({ message = 'What listens on the socket does not speak JSON-RPC.', hint = 'Is the socket path right?' })
  elseif message.id and message.error then
    local data = message.error.data or {}
    answer(message.id, { message = message.error.message, hint = data.hint, code = data.code })
  elseif message.id then
    answer(message.id, nil, message.result)
  elseif message.error then -- refused before a request was understood
    disconnect({ message = message.error.message, hint = (message.error.data or {}).hint })
  end
end

local function receive(problem, data)
  if problem or not data then
    disconnect({ message = 'The memory daemon closed the connection.', hint = 'Try again; see :checkhealth memoryd' })
    return
  end
  unread = unread .. data
  local from = 1
  while pipe do
    local stop = unread:find('\n', from, true)
    if not stop then
      break
    end
    take(unread:sub(from, stop - 1))
    from = stop + 1
  end
  unread = unread:sub(from)
end

local function arrive(problem)
  local ready = arriving
  arriving = nil
  for _, go_on in ipairs(ready) do
    go_on(problem)
  end
end

-- Several requests at once wait for one connection.
local function when_connected(go_on)
  if pipe then
    go_on(nil)
    return
  elseif arriving then
    table.insert(arriving, go_on)
    return
  end
  arriving = { go_on }
  local connection, path = uv.new_pipe(false), M.socket_path()
  connection:connect(path, function(problem)
    if problem then
      connection:close()
      arrive({
        message = 'No memoryd daemon is listening on ' .. path .. '.',
        hint = "Start it with 'memoryd run'; set `socket` in setup() where it listens elsewhere.",
        code = 'not_running',
      })
      return
    end
    pipe = connection
    connections = connections + 1
    connection:read_start(receive)
    arrive(nil)
  end)
end

--- Asks, and calls back with (problem, result): exactly one of them, once, on the main loop.
--- A problem has `message`, and where known `hint` and `code`.
function M.request(method, params, callback)
  last_id = last_id + 1
  local id = last_id
  local timeout = require('memoryd.config').values.timeout_ms
  local timer = uv.new_timer()
  waiting[id] = { callback = callback, timer = timer }
  timer:start(timeout, 0, function()
    answer(id, { message = ('The daemon did not answer within %d ms.'):format(timeout), hint = 'It may be busy.' })
  end)
  local line = vim.json.encode({
    jsonrpc = '2.0',
    id = id,
    method = method,
    params = next(params or {}) and params or vim.empty_dict(),
  }) .. '\n'
  when_connected(function(problem)
    if problem then
      answer(id, problem)
    elseif pipe then
      pipe:write(line)
    end
  end)
end

--- How many connections were made: what is known of the daemon holds for one of them.
function M.connections()
  return connections
end

--- Ends the connection.
function M.close()
  disconnect({ message = 'The connection was closed.' })
end

return M
