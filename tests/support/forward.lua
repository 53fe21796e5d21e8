-- forward.lua -- a port of this machine forwarded by ssh, as from a laptop to a cluster: a server of one's own, of this user, or of daemon where this is root.
local files = require "mneme.base.files"
local shell = require "tests.support.shell"

local forward = {}

-- Where the server is; MNEME_SSHD: elsewhere.
local function server()
  for _, path in ipairs { os.getenv "MNEME_SSHD" or "/usr/sbin/sshd", "/usr/local/sbin/sshd" } do if files.is_file(path) then return path end end
end

---What is missing for it; nil: nothing.
function forward.lacks()
  if not server() then return "no ssh server is installed (apt-get install openssh-server)" end
  for _, name in ipairs { "ssh", "ssh-keygen", "setpriv" } do if not shell.has(name) then return name .. " is not installed" end end
end

-- A free port of this machine.
local function free_port()
  local said = shell.run("/", [[python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])']])
  return tonumber(said)
end

---Forward a port: `ssh -L`, by a server that is started for it.
---@param port integer
---@return table { port = integer on this side, stop = function }
function forward.open(port)
  local folder, at, here = shell.folder(), free_port(), free_port()
  local root = shell.run("/", "id -u") == "0\n"
  local user = root and "daemon" or shell.run("/", "id -un"):gsub("\n", "")
  local as = root and ("setpriv --reuid=daemon --regid=%s --clear-groups "):format(shell.run("/", "id -g daemon"):gsub("\n", "")) or ""
  files.write(folder .. "/config", { ("Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/key.pub\n"):format(at, folder, folder),
    "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\n" })
  shell.run(folder, "ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f key; cp key mine")
  shell.run(folder, ("chmod 755 .; chmod 644 config key.pub; chmod 600 host mine; touch log; %s"):format(root and "chown daemon . host log" or ":"))
  local function begin(line)
    local pipe = io.popen(("cd '%s' && { %s & echo $!; }"):format(folder, line))
    local pid = pipe:read "*l"
    pipe:close()
    return tonumber(pid)
  end
  local sshd = begin(("%s'%s' -D -r -f config -E log >/dev/null 2>&1"):format(as, server()))
  local ssh
  shell.wait("the forwarded port", function()
    if not ssh or os.execute(("kill -0 %d 2>/dev/null"):format(ssh)) ~= 0 then
      ssh = begin(("ssh -N -F none -L %d:localhost:%d -p %d -i mine -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ExitOnForwardFailure=yes "
        .. "-o BatchMode=yes %s@127.0.0.1 >said 2>&1"):format(here, port, at, user))
    end
    return os.execute(("bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d' 2>/dev/null"):format(here)) == 0
  end)
  return { port = here, stop = function()
    os.execute(("kill %d %d 2>/dev/null; rm -rf '%s'"):format(ssh, sshd, folder))
  end }
end

return forward
