-- test_readers.lua -- every place that reads a file has a target of the fuzzer: tests/fuzz/targets.lua.  A reader is found by the calls by
-- which files are read; what it reads is named here, and for Lua the targets are run, to see that they get there.
local t = require "tests.harness"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"

-- Calls that read a file, in Lua and in C.
local lua_calls = { "%f[%w_]files%.read%(", "%f[%w_]files%.block%(", "io%.open%(", "io%.open ", "io%.lines", "loadfile%(", "dofile%(", "C%.mn_image_read%(",
  "C%.mn_live_reader_new%(", "C%.mn_events_cut%(" }
local c_calls = { "mn_file_new%(", "[^%w_>]open%(", "fopen%(", "[^%w_]p?read%(", "[^%w_]mmap%(", "FT_New_Face" }

-- What each of them reads: targets, or in round brackets why it needs none.
local PROGRAM = "(the program's own files, or a script, which is a program)"
local SYSTEM = "(what the system says of the machine)"
local OWN = "(what the same command has just written)"
local readers = {
  ["lua/mneme/base/engine.lua"] = PROGRAM,
  ["lua/mneme/base/files.lua"] = "(reads for all others)",
  ["lua/mneme/base/errors.lua"] = PROGRAM,
  ["lua/mneme/base/luajit.lua"] = PROGRAM,
  ["lua/mneme/base/progress.lua"] = OWN,
  ["lua/mneme/base/trusted_code.lua"] = PROGRAM,
  ["lua/mneme/base/word_lists.lua"] = PROGRAM,
  ["lua/mneme/commands/api.lua"] = PROGRAM,
  ["lua/mneme/commands/bench/peers.lua"] = OWN,
  ["lua/mneme/commands/diff.lua"] = "metrics",
  ["lua/mneme/commands/help.lua"] = PROGRAM,
  ["lua/mneme/commands/setting_topics.lua"] = PROGRAM,
  ["lua/mneme/commands/play.lua"] = "map",
  ["lua/mneme/commands/run_list.lua"] = "run_list",
  ["lua/mneme/commands/run.lua"] = OWN,
  ["lua/mneme/envs/corpus.lua"] = "text",
  ["lua/mneme/insight/episodes/causal_map_file.lua"] = "causal_map",
  ["lua/mneme/insight/episodes/live_channel.lua"] = "live",
  ["lua/mneme/commands/check.lua"] = "(a file of Lua that the user names, to be run)",
  ["lua/mneme/commands/new/init.lua"] = "(a file of Lua that is copied)",
  ["lua/mneme/commands/new/test_script.lua"] = OWN,
  ["lua/mneme/runs/config.lua"] = "config",
  ["lua/mneme/runs/run_folder.lua"] = "run_info config outcome",
  ["lua/mneme/runs/manifest.lua"] = "manifest",
  ["lua/mneme/runs/metrics_log.lua"] = "metrics events",
  ["lua/mneme/runs/resources.lua"] = "resources",
  ["lua/mneme/runs/script.lua"] = "run_info",
  ["lua/mneme/lab/study/declaration_file.lua"] = "declaration",
  ["lua/mneme/lab/study/estimate.lua"] = OWN,
  ["lua/mneme/lab/study/study_folder.lua"] = "study result",
  ["lua/mneme/lab/study/model_sizes.lua"] = "model_sizes",
  ["lua/mneme/lab/study/tuning_picks.lua"] = "tuning",
  ["lua/mneme/insight/view/episode_data.lua"] = OWN,
  ["lua/mneme/insight/view/moments.lua"] = "(fields of addresses: tests/view/test_moments.lua gives it others)",
  ["lua/mneme/insight/view/browser_window.lua"] = "(the system's random numbers)",
  ["lua/mneme/lab/reports/report.lua"] = PROGRAM,
  ["lua/mneme/lab/study/result_archive.lua"] = "archive",
  ["lua/mneme/tensor/safetensors.lua"] = "safetensors checkpoint",
  ["engine/base/control_group.c"] = SYSTEM,
  ["engine/base/process.c"] = "(/dev/null)",
  ["engine/graph/context.c"] = SYSTEM,
  ["engine/graph/device_cpu.c"] = "(memory, by mmap)",
  ["engine/base/open_file.c"] = "(opens for all others)",
  ["engine/io/file.c"] = "(reads for all others)",
  ["engine/io/live_channel.c"] = "live",
  ["engine/io/png.c"] = "image",
  ["engine/io/workers.c"] = "(processes that it has started itself)",
  ["engine/io/tensorboard.c"] = "events",
}
-- Whose reads go another way than files.read and files.block, or need more than one input's bytes.
local not_seen = { ["lua/mneme/commands/play.lua"] = true, ["lua/mneme/insight/episodes/live_channel.lua"] = true, ["lua/mneme/runs/config.lua"] = true,
  ["lua/mneme/runs/script.lua"] = true,
  ["lua/mneme/commands/run_list.lua"] = true }

local function found(folder, kind, calls, list)
  for _, name in ipairs(files.list(shell.root .. folder)) do
    local path = folder .. "/" .. name
    if files.is_folder(shell.root .. path) then found(path, kind, calls, list)
    elseif name:find("%." .. kind .. "$") then
      local text = " " .. files.read(shell.root .. path):gsub("%-%-[^\n]*", ""):gsub("/%*.-%*/", "")
      for _, call in ipairs(calls) do if text:find(call) then list[path] = true end end
    end
  end
  return list
end

t.test("every reader of files has a target, or a reason", function()
  local there = found("lua/mneme", "lua", lua_calls, {})
  for path in pairs(found("engine", "c", c_calls, {})) do there[path] = true end
  local targets = files.read(shell.root .. "tests/fuzz/targets.lua") .. files.read(shell.root .. "tests/fuzz/run_targets.lua")
  local missing = {}
  for path in pairs(there) do
    local what = readers[path]
    if not what then missing[#missing + 1] = path .. " reads files: name its target here"
    elseif not what:find "^%(" then
      for name in what:gmatch "%S+" do
        if not targets:find(('target("%s"'):format(name), 1, true) then missing[#missing + 1] = path .. ": there is no target " .. name end
      end
    end
  end
  for path in pairs(readers) do if not there[path] then missing[#missing + 1] = path .. " reads no file" end end
  t.eq(table.concat(missing, "\n"), "")
end)

t.test("make fuzz runs every target", function()
  local list = files.read(shell.root .. "Makefile"):match "\nTARGET  := (.-[^\\])\n"
  for _, name in ipairs { "targets", "run_targets" } do
    for target in files.read(shell.root .. "tests/fuzz/" .. name .. ".lua"):gmatch '\n *target%("([%w_]+)"' do
      t.ok((" " .. list .. " "):find("[%s\\]" .. target .. "[%s\\]"), target .. " is not in the Makefile's TARGET")
    end
  end
end)

t.test("targets reach the readers that they are for", function()
  local folder = shell.folder()
  local build = ("MNEME_BUILD='%s' luajit tests/fuzz/"):format(shell.build)
  local said, status = shell.run(shell.root, ("%sseeds.lua '%s' && %ssmoke.lua '%s' 8 2>'%s/last'"):format(build, folder, build, folder, folder))
  t.eq(status, 0, said)
  for path, what in pairs(readers) do
    if path:find "^lua/" and not what:find "^%(" and not not_seen[path] then
      t.ok(said:find("read by " .. path .. " in", 1, true), path .. " was not reached by any target")
    end
  end
  files.remove_folder(folder)
end)
