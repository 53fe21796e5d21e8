-- value_origins.lua -- where the value of each setting of a run came from: "given" (typed), "study" (its study's own), "published" (for its
-- core and learner), "learner" (the learner's default: the published value is for another), "quick" or "full" (the script's values of that
-- size), "size" (found by size=); a setting without one has the script's default.  config.json keeps it, so that a report cites sources
-- for values.
local values = require "mneme.base.setting_types"

local origins = {}

---The origins of settings.
---@param layers { published: table?, learner: table?, size: string?, sized: table?, given: { [1]: string }[], by_user: table<string, boolean> } by_user: by the
---  first part of a key; other words are a study's
---@return table<string, string>
function origins.of(layers)
  local of = {}
  for _, layer in ipairs { { layers.learner or {}, "learner" }, { layers.published or {}, "published" }, { layers.sized or {}, layers.size } } do
    for key, value in pairs(layer[1]) do
      if key ~= "quick" and key ~= "full" then
        of[key] = layer[2]
        for option in pairs(values.is_named(value) and value or {}) do if option ~= 1 then of[key .. "." .. option] = layer[2] end end
      end
    end
  end
  for _, pair in ipairs(layers.given) do of[pair[1]] = layers.by_user[pair[1]:match "^[^.]+"] and "given" or "study" end
  return of
end

---Adds the options of a core whose values were found for size=.
---@param of table<string, string>
---@param before any settings of the core as they were chosen
---@param now any and as the core was made
---@return table<string, string> of
function origins.add_size(of, before, now)
  for option, value in pairs(type(now) == "table" and type(before) == "table" and now or {}) do
    if before[option] ~= value and type(option) == "string" then of["core." .. option] = "size" end
  end
  return of
end

return origins
