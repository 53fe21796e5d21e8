-- init.lua -- `mneme new KIND NAME`: starts a file as a copy of its nearest relative, with a test of its own, where the user works.
local catalogue = require "mneme.base.catalogue"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local next_step = require("mneme.base.terminal").next_step
local registry = require "mneme.base.registry"

local here = registry.library .. "commands/new/"
local kinds = { "env", "core", "study", "script" }
local command = { name = "new", doc = "start an environment, a core, a study or a script as a copy of one that works, with a test", ask = "mneme new env NAME",
  names_code = function() return {} end,
  about = [[
Writes NAME.lua and test_NAME.lua into this folder, a core into cores/, and prints what to type next.  No file is overwritten.  An environment like one
in C is a file of the engine: type that in Mneme's source tree.]],
  arguments = { { "kind", "KIND", "env, core, study or script", noun = "kind of file", choices = kinds },
    { "name", "NAME", "what it is called: letters, digits and _", noun = "name" } },
  options = { { "like", "what it is a copy of: a name of mneme list envs, cores or experiments, or FILE.lua", type = "text", example = "lstm",
    unless = "env: sign, in Lua; core: gru; study: tmaze_length; script: gridworld" } } }

---What a kind is: `known`, its kind in lua/mneme/base/catalogue.lua; `like`, its default relative; `folder`, where the copy goes; `fits(text)`, may a
---file with this text be the relative; `what`, what that is in words.
local function is_study(text) return text:find "mn%.study%s*{" ~= nil end
local function is_env(text) return text:find "step%s*=%s*function" ~= nil end
local function is_script(text) return text:find "mn%.config%s*[%({]" ~= nil and not is_study(text) end
local about = {
  env = { known = "envs", like = "sign", folder = "", fits = is_env, what = "an environment" },
  core = { known = "cores", like = "gru", folder = "cores/", what = "a core",
    fits = function(text) return not is_env(text) and not is_script(text) and not is_study(text) end },
  study = { known = "experiments", like = "tmaze_length", folder = "", fits = is_study, what = "a study" },
  script = { known = "experiments", like = "gridworld", folder = "", fits = is_script, what = "a script" },
}

-- Refuses what is no name, and what is there already.
local function check_name(o, a, paths)
  local plain = o.name:gsub("%.lua$", "")
  if not plain:find "^%a[%w_]*$" or #plain > 64 then
    errors.usage(("new: '%s' is no name, expected up to 64 letters, digits and _, the first a letter"):format(o.name))
  elseif plain ~= o.name then errors.usage(("new: the name has no ending, got '%s'"):format(o.name), ("mneme new %s %s"):format(o.kind, plain)) end
  for _, name in ipairs(catalogue.names(a.known)) do
    if name:gsub("%-v%d+$", "") == o.name then
      errors.usage(("new: there is already %s '%s'"):format(a.what, o.name),
        ("another name; mneme new %s NAME like=%s begins as that one"):format(o.kind, o.name))
    end
  end
  for _, path in ipairs(paths) do
    if files.is_file(path) or files.is_folder(path) then errors.usage(("new: %s is there, and is not overwritten"):format(path), "another name") end
  end
end

-- The text of the relative, and its name.
local function relative(o, a)
  local like = o.like or a.like
  local path = like
  if o.kind == "env" and like == a.like then path = here .. like .. ".lua"
  elseif not like:find "%.lua$" then
    if o.kind == "env" then errors.unknown("environment", like, { a.like, unpack(catalogue.names "envs") }) end
    path = registry.file(a.known, like, o.kind == "core" and "core" or "experiment")
  elseif not files.is_file(path) then errors.usage(("new: like=%s: there is no such file"):format(like)) end
  local text = files.read(path)
  if not a.fits(text) then
    local other
    for _, kind in ipairs(kinds) do if about[kind].fits(text) then other = kind end end
    errors.usage(("new: like=%s is %s, expected %s"):format(like, other and about[other].what or "something else", a.what),
      other and ("mneme new %s %s like=%s"):format(other, o.name, like) or nil)
  end
  return text, like:match "([^/]*)$":gsub("%.lua$", "")
end

-- The copy: its first line and its commands have its own name, and what was checked of the relative is not claimed of it.
local function renamed(text, like, o)
  local first = o.kind == "core" and ("-- %s.lua -- begun as a copy of %s: "):format(o.name, like) or ("-- %s.lua -- "):format(o.name)
  text = text:gsub("^%-%- " .. like .. "%.lua %-%- ", first)
  for _, verb in ipairs { "run", "sweep" } do
    for _, old in ipairs { "experiments/" .. like .. "%.lua", like .. "%.lua", like .. "%f[%s]" } do
      text = text:gsub("mneme " .. verb .. " " .. old, ("mneme %s %s.lua"):format(verb, o.name))
    end
  end
  if o.kind == "core" then text = text:gsub("\n%s*checked = [^\n]*", ""):gsub('("core )' .. like .. ":", "%1" .. o.name .. ":") end
  if o.kind == "env" then
    text = text:gsub('name = "' .. like .. '"', ('name = "%s"'):format(o.name)):gsub("env=" .. like .. "%.lua", "env=" .. o.name .. ".lua")
  end
  return text
end

-- An environment in C, in the source tree: the name is another one, as a word, wherever no header is meant.
local function new_in_c(o, like)
  local from, to = ("engine/envs/%s.c"):format(like), ("engine/envs/%s.c"):format(o.name)
  if not files.is_file "Makefile" or not files.is_folder "engine/envs" then
    errors.usage(("new: %s is written in C, as a file of the engine"):format(like), "type it in Mneme's source tree; without like= it is one in Lua, anywhere")
  elseif not files.is_file(from) then
    errors.usage(("new: %s is a folder, expected an environment of one file"):format(like), "mneme list envs")
  elseif not o.name:find "^%l[%l%d_]*$" then errors.usage(("new: '%s': in C a name has small letters, digits and _"):format(o.name)) end
  check_name(o, about.env, { to })
  local text = files.read(from):gsub("%f[%w_]" .. like .. "%f[^%w_](%.?h?)", function(after) return (after == ".h" and like or o.name) .. after end)
  if text:find("%f[%w_]" .. o.name .. " %*") and not text:find("typedef%s[^;]*%f[%w_]" .. o.name .. "%f[^%w_]") then
    errors.usage(("new: the struct of %s is in another file, expected an environment of one file"):format(like), "mneme new env NAME like=tmaze_bakker")
  end
  files.write(to, { text })
  print("wrote " .. to .. "\nnext: make && make test TESTS=tests/envs/test_envs.lua")
  next_step.note(("run train env=%s"):format(o.name))
end

function command.run(o)
  local a = about[o.kind]
  if not a then errors.unknown("kind of file", o.kind, kinds) end
  if o.kind == "env" and o.like and not o.like:find "%.lua$" then
    local name = o.like:gsub("%-v%d+$", "")
    for _, known in ipairs(catalogue.names "envs") do if known:gsub("%-v%d+$", "") == name then return new_in_c(o, name) end end
  end
  local file, test = a.folder .. o.name .. ".lua", ("test_%s.lua"):format(o.name)
  check_name(o, a, { file, test })
  local text, like = relative(o, a)
  local remembers = not text:find 'reads = "nothing"'
  local known = files.read(here .. ("test_%s.lua"):format(o.kind))
  if a.folder ~= "" then files.make_folder(a.folder:sub(1, -2)) end
  files.write(file, { renamed(text, like, o) })
  files.write(test, { (known:gsub("NAME", o.name):gsub("test_" .. o.kind .. "%.lua", test):gsub("16, true", "16, " .. tostring(remembers))) })
  local try = { env = "run train env=" .. file, core = "run tmaze quick=1 core=" .. o.name, study = ("sweep %s quick=1"):format(file),
    script = ("run %s quick=1"):format(file) }
  print("wrote " .. file .. "\nwrote " .. test)
  next_step.note("run " .. test, "check " .. file, try[o.kind])
end

return command
