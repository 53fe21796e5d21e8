-- pieces.lua -- work in small pieces, which a window does between two frames: a coroutine that yields where its time is over.
local C = require("mneme.base.engine").C

local pieces = {}

---A place where work may stop until it is called again.
---@param job table { deadline }
function pieces.pause(job)
  if C.mn_clock(false) > job.deadline then coroutine.yield() end
end

---Work until the deadline, or to the end: the method work() of a job.
---@param job table { routine = coroutine that gets the job, done = boolean }
---@param deadline number? of engine.C.mn_clock(false)
---@return boolean done
function pieces.work(job, deadline)
  job.deadline = deadline or math.huge
  if job.done then return true end
  local ok, problem = coroutine.resume(job.routine, job)
  if not ok then error(problem, 0) end
  job.done = coroutine.status(job.routine) == "dead"
  return job.done
end

return pieces
