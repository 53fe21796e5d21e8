-- slurm_rig.lua -- a Slurm of a test's own: munged, slurmctld and one slurmd on this machine, in a folder, on ports of
-- their own, until it is stopped.
local ffi = require "ffi"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"

ffi.cdef "int getpid(void); unsigned geteuid(void);"

local rig = {}
local Rig = {}
Rig.__index = Rig

-- No daemon may need anything of /etc or /var, nor more than a node of any size has; a free task begins at once.
local CONF = [[
ClusterName=test
SlurmctldHost=HOST(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=HERE/munge.socket
SlurmctldPort=PORT1
SlurmdPort=PORT2
SlurmctldPidFile=HERE/slurmctld.pid
SlurmdPidFile=HERE/slurmd.pid
SlurmctldLogFile=HERE/slurmctld.log
SlurmdLogFile=HERE/slurmd.log
StateSaveLocation=HERE/state
SlurmdSpoolDir=HERE/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_min_interval=0,sched_interval=1
ReturnToService=2
KillWait=2
MaxArraySize=4
SlurmdParameters=config_overrides
NodeName=HOST NodeAddr=127.0.0.1 CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes=HOST Default=YES State=UP MaxTime=INFINITE
]]

---Start one.
---@return table? rig nil where it cannot be
---@return string? why
function rig.new()
  for _, program in ipairs { "slurmctld", "slurmd", "munged" } do
    if not shell.has(program) then return nil, program .. " is not installed: apt-get install --no-install-recommends slurm-wlm munge" end
  end
  if ffi.C.geteuid() ~= 0 then return nil, "slurmd needs root" end
  local self = setmetatable({ here = shell.folder() }, Rig)
  local port = 20000 + ffi.C.getpid() % 20000
  local host = shell.run("/", "uname -n"):match "^[^.%s]+"
  local with = { HERE = self.here, HOST = host, PORT1 = port, PORT2 = port + 1 }
  files.make_folder(self.here .. "/state")
  files.make_folder(self.here .. "/spool")
  files.write(self.here .. "/slurm.conf", { (CONF:gsub("%u+%d?", with)) })
  local said, status = self:run [[
    chmod 755 . && head -c 1024 /dev/urandom > key && chmod 400 key &&
    munged --force --socket=$PWD/munge.socket --key-file=$PWD/key --pid-file=$PWD/munged.pid --log-file=$PWD/munged.log --seed-file=$PWD/seed &&
    slurmctld && slurmd]]
  if status ~= 0 then
    self:stop()
    return nil, "Slurm does not start: " .. said:gsub("%s+", " ")
  end
  shell.wait("a node that is idle", function() return self:run "sinfo -h -o %t":find "idle" end)
  return self
end

---Run a line of the shell against it.
---@return string said
---@return integer status
function Rig:run(line, folder)
  return shell.run(folder or self.here, ("export SLURM_CONF='%s/slurm.conf'; %s"):format(self.here, line))
end

---End its daemons; its folder goes.
function Rig:stop()
  self:run "scancel -u root"
  for _, name in ipairs { "slurmd", "slurmctld", "munged" } do
    self:run(("[ -f %s.pid ] && kill $(cat %s.pid)"):format(name, name))
  end
  self:run "for i in $(seq 100); do ls *.pid > /dev/null 2>&1 || break; sleep 0.1; done; cat *.pid | xargs -r kill -9"
  os.execute("rm -rf '" .. self.here .. "'")
end

return rig
