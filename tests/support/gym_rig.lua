-- gym_rig.lua -- environments of Gymnasium that tests step: where their classes are, and all that they give, as one text.
local ffi = require "ffi"
local envs = require "mneme.envs"
local shell = require "tests.support.shell"

local rig = {}

rig.FILE = "gym:" .. shell.root .. "tests/envs/gym_envs.py:"
if not shell.root:find "/$" then rig.FILE = "gym:" .. shell.root .. "/tests/envs/gym_envs.py:" end

-- Everything that T steps give, as one text.
function rig.trace(env, steps, from)
  local parts, n = {}, env.num_envs
  for k = from or 1, steps do
    local actions = {}
    for i = 1, n do actions[i] = (k * 7 + (env.at and env.at[i] or i) * 3) % env.action_space.n end
    local obs, reward, terminated, truncated, info = env:step(actions)
    for _, x in ipairs { obs, reward, terminated, truncated } do parts[#parts + 1] = tostring(ffi.string(x:data(), x:size() * (x:dtype() == "u8" and 1
      or 4))) end
    for i = 0, n - 1 do
      if terminated:data()[i] + truncated:data()[i] > 0 then
        parts[#parts + 1] = ("%d %.9g %.9g %d %.9g"):format(i, info.ret:data()[i], info.score:data()[i], info.length:data()[i],
          info.final_obs:data()[i * 2])
      end
    end
  end
  return table.concat(parts, "|")
end

function rig.walk(settings)
  settings.score = "up"
  return envs.new(rig.FILE .. "Walk", settings)
end

return rig
