-- :checkhealth memoryd
local M = {}

local health = vim.health or require('health')
local start, ok = health.start or health.report_start, health.ok or health.report_ok
local warn, bad = health.warn or health.report_warn, health.error or health.report_error

function M.check()
  local rpc = require('memoryd.rpc')
  start('memoryd')
  if vim.fn.has('nvim-0.7') == 1 then
    ok('Neovim is recent enough')
  else
    bad('Neovim 0.7 or newer is needed')
  end
  if vim.fn.executable('memoryd') == 1 then
    ok('the memoryd command is there')
  else
    warn('the memoryd command is not on the PATH', { 'Only the socket is needed; the command starts the daemon.' })
  end
  ok('the socket is expected at ' .. rpc.socket_path())
  local done = false
  require('memoryd').status(function(problem, lines, status)
    if problem then
      bad(problem.message, { problem.hint })
    elseif status.health.state == 'degraded' then
      warn(table.concat(lines, '\n'))
    else
      ok(table.concat(lines, '\n'))
    end
    done = true
  end)
  vim.wait(10000, function()
    return done
  end, 20)
  if not done then
    bad('the daemon does not answer', { 'See `memoryd status` in a terminal.' })
  end
end

return M
