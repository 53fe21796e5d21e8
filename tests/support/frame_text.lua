-- frame_text.lua -- all numbers of a frame, as text: two frames are the same where it is.
local ffi = require "ffi"
local state_arrays = require "mneme.models.state_arrays"

return function(frame)
  local parts = { frame.episode, frame.step, frame.action, ("%.9g"):format(frame.value), ("%.9g"):format(frame.reward),
    ("%.9g"):format(frame.ret), frame.outcome and frame.outcome.length or "-", #frame.history, frame.been, frame.ended_before }
  for _, group in ipairs { "memory", "probes" } do
    local names = {}
    for name in pairs(frame[group]) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do
      local array = frame[group][name]
      parts[#parts + 1] = name .. ffi.string(array.values, 4 * state_arrays.size(array.shape))
    end
  end
  return table.concat(parts, " ")
end
