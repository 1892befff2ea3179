-- The settings, and their defaults.
local M = {}

M.values = {
  socket = nil, -- where the daemon listens, if not where it does by default
  limit = 10, -- hits at most
  min_score = nil, -- leave out hits that score less (0 to 1)
  scope = nil, -- who asks: user:ID, agent:ID or session:ID
  workspace = nil, -- only this workspace, by name
  timeout_ms = 30000,
}

local kinds = {
  socket = 'string',
  limit = 'number',
  min_score = 'number',
  scope = 'string',
  workspace = 'string',
  timeout_ms = 'number',
}

function M.set(options)
  for name, value in pairs(options or {}) do
    if not kinds[name] then
      error(('memoryd: there is no setting %q; see :help memoryd-settings'):format(name), 0)
    elseif type(value) ~= kinds[name] then
      error(('memoryd: %s must be a %s'):format(name, kinds[name]), 0)
    end
    M.values[name] = value
  end
end

return M
