-- run_targets.lua -- targets of the fuzzer for what lies in the folders of runs and studies: see targets.lua.
local bit = require "bit"
local ffi = require "ffi"
local lfs = require "lfs"
local mn = require "mneme"
local result_archive = require "mneme.lab.study.result_archive"
local causal_map_file = require "mneme.insight.episodes.causal_map_file"
local provenance = require "mneme.lab.study.provenance"
local checkpoint_files = require "mneme.runs.checkpoint_files"
local declaration_file = require "mneme.lab.study.declaration_file"
local diff = require "mneme.commands.diff"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local forge = require "tests.fuzz.forge"
local frames = require "mneme.insight.episodes.frames"
local live_channel = require "mneme.insight.episodes.live_channel"
local manifest = require "mneme.runs.manifest"
local metrics_log = require "mneme.runs.metrics_log"
local metrics_reader = require "mneme.runs.metrics_reader"
local model_sizes = require "mneme.lab.study.model_sizes"
local report_markdown = require "mneme.lab.reports.report_markdown"
local resources = require "mneme.runs.resources"
local run_folder = require "mneme.runs.run_folder"
local run_list = require "mneme.commands.run_list"
local run_sources = require "mneme.runs.run_sources"
local safetensors = require "mneme.tensor.safetensors"
local sealed = require("mneme.base.json").sealed
local scene = require "mneme.insight.view.scene"
local script = require "mneme.runs.script"
local study_folder = require "mneme.lab.study.study_folder"
local trainer = require "mneme.learn.trainer"
local report_results = require "mneme.lab.reports.report_results"

live_channel.history = 16          -- steps of a snapshot: a short one is read sooner

local C = engine.C
local OF_STUDY = { { id = "A", text = "a claim" } }

local once = {}
-- What is made at first use; it may need files that are there.
local function first(name, make)
  once[name] = once[name] or make()
  return once[name]
end

-- How often what takes long is done: in one of so many inputs, as the bytes have it.
local function chosen(data, bytes, one_of) return bytes > 0 and (data[bytes - 1] + 7 * bytes) % one_of == 0 end

return function(target, block)
  files.write, files.append, files.cut, files.rename = function() end, function() end, function() end, function() end
  files.make_folder, files.list = function() return false end, function() return {} end
  local open = io.open
  io.open = function(path, mode)                                       -- luacheck: ignore
    if type(path) == "string" and path:find "^fuzz" then return open(forge.file(block.data, block.bytes)) end
    return open(path, mode)
  end
  local attributes, size = lfs.attributes, nil
  lfs.attributes = function(path, what) if path:find "^fuzz" then return size end return attributes(path, what) end

  -- f(...); nil where the input was refused in words.
  local function tried(f, ...)
    local ok, result = pcall(f, ...)
    if ok then return result end
    if not errors.is(result) then error(result, 0) end
  end

  -- The same while files of such a name are not there.
  local function absent(pattern, f, ...)
    local before = block.absent
    block.absent = pattern
    local ok, result = pcall(tried, f, ...)
    block.absent = before
    if not ok then error(result, 0) end
    return result
  end

  -- What f(...) gives last, without its warnings.
  local function silently(f, ...)
    local stderr = io.stderr
    io.stderr = { write = function() end }                             -- luacheck: ignore
    local ok, first_one, second = pcall(f, ...)
    io.stderr = stderr                                                 -- luacheck: ignore
    if not ok then error(first_one, 0) end
    return second
  end

  -- ---- RUN/live: a schema, a zero, the snapshot's bytes; or, where it begins with the mark of one, the whole file ----

  local scenes = { "tmaze", "mind", "memory" }
  target("live", function(data, bytes)
    local text = ffi.string(data, bytes)
    if text:sub(1, 6) ~= "MNLIVE" then
      local schema, snapshot = text:match "^(%Z*)%z?(.*)$"
      text = forge.live_file(schema, snapshot)
    end
    local path = forge.file(ffi.cast("const uint8_t *", text), #text)
    local reader = live_channel.reader(path)
    local now = reader:next()
    if now then
      local film = first("film", frames.new)
      film:rewind()
      local frame = film:add(now)
      if chosen(data, bytes, 64) then
        local painter = first("painter", scene.painter)
        for _, name in ipairs(scenes) do painter:draw(first(name, function() return scene.load(name) end), frame, 640, 480) end
      end
    end
    if reader.env then reader.env:close() end
    C.mn_live_reader_free(ffi.gc(reader.peek, nil))
  end)

  -- ---- a checkpoint: its state as JSON, a zero, then changes of three bytes to its tensors, or of a tensor's shape ----

  local load = safetensors.load
  target("checkpoint", function(data, bytes)
    local mine = first("learner", forge.learner)
    local contents = first("contents", function()
      local list = {}
      for _, item in ipairs(mine:contents()) do
        local n, bytes_of = item[2]:size() * (item[2]:dtype() == "u8" and 1 or 4), item[2]:data()
        local t = mn.tensor { shape = item[2]:shape(), dtype = item[2]:dtype() }
        list[#list + 1] = { name = item[1], tensor = t, data = ffi.cast("uint8_t *", t:data()), n = n, bytes = ffi.string(bytes_of, n),
          dtype = t:dtype(), floats = t:dtype() == "f32" and t:size() }
      end
      return list
    end)
    local text = ffi.string(data, bytes)
    local state, changes = text:match "^(%Z*)%z?(.*)$"
    safetensors.load = function()
      local tensors = {}
      for _, item in ipairs(contents) do
        ffi.copy(item.data, item.bytes, item.n)
        tensors[item.name] = item.tensor
      end
      for i = 1, #changes - 2, 3 do
        local which, at, value = changes:byte(i, i + 2)
        local item = contents[which % #contents + 1]
        if which < 128 then item.data[(at * 31) % item.n] = value
        else tensors[item.name] = mn.tensor { shape = { at % 9 + 1, value % 70 + 1 }, dtype = value % 3 == 0 and "u8" or item.dtype } end
      end
      for _, item in ipairs(#changes > 2 and contents or {}) do if item.floats then safetensors.plain_nans(item.data, item.floats) end end
      return { metadata = { format = "mneme-checkpoint-1", state = state }, tensors = tensors }
    end
    local ok, checkpoint = pcall(checkpoint_files.read, "fuzz.safetensors")
    safetensors.load = load
    if not ok then error(checkpoint, 0) end
    checkpoint_files.whole("fuzz", "logged", checkpoint.counters.logged, checkpoint.step)
    trainer.restore(mine, checkpoint)
    if chosen(data, bytes, 256) then
      mine:advance()
      local m = {}
      mine:metrics(m)
    end
  end)

  -- ---- logs ----

  target("metrics", function(_, bytes)
    size = 0
    metrics_reader.read "fuzz"
    size = bytes
    for _, curve in pairs(metrics_reader.read "fuzz") do if #curve.x ~= #curve.y then error "a curve of unequal lists" end end
    absent("%.jsonl$", diff.runs, "fuzz.jsonl", "fuzz.jsonl")
    silently(tried, metrics_log.open, "fuzz", 2, "", 4)
  end)

  target("events", function(data, bytes)
    if bytes == 0 then return end
    engine.check(C.mn_events_cut(engine.ctx, forge.file(data + 1, bytes - 1), bit.band(data[0], 7)))
  end)

  -- ---- JSON of runs and studies ----

  target("run_info", function()
    local info = run_folder.read_info "fuzz"
    provenance.run("fuzz", nil, true)
    provenance.differences { { run = { name = "a" }, info = info }, { run = { name = "b" }, info = { source = {} } } }
    run_sources.choice = "stored"
    local ok, e = pcall(tried, run_sources.adopt, "fuzz", info)
    run_sources.choice = nil
    if not ok then error(e, 0) end
    script.peek "fuzz"
  end)

  target("study", function()
    local study = absent("result%.json$", study_folder.load, "fuzz")
    if not study then return end
    study_folder.groups(study.runs)
    for _, c in ipairs(study.runs) do study_folder.number(c, "score") end
  end)

  target("result", function()
    local result = study_folder.result "fuzz"
    local sum = 0
    for _, value in pairs(result.metrics or {}) do sum = sum + value end
    study_folder.number({ metrics = result.metrics or {}, resources = result.resources }, "wall_s")
  end)

  target("archive", function()
    script.survey = function() return { cfg = { a = 1 } } end
    local runs = { { name = "a=1,seed=1", labels = { a = "1" }, seed = 1, words = {} } }
    result_archive.take("fuzz", "fuzz", absent("result%.json$", result_archive.wanted, "fuzz", "fuzz", "fuzz.lua", runs) or {})
    local tuned = tried(result_archive.tuned, "fuzz")
    for _, p in ipairs(tuned and tuned.points or {}) do if p.picks[1].mean ~= p.picks[1].mean then error "a mean is NaN" end end
  end)

  target("resources", function()
    local used = resources.begin():write "fuzz"
    if used.peak_mib ~= used.peak_mib then error "the peak is NaN" end
  end)

  target("outcome", function()
    local o = run_folder.outcome.read "fuzz"
    for _, value in pairs(o and o.results or {}) do if value - value ~= 0 then error "a result is not finite" end end
  end)

  target("report_words", function(data, bytes) report_markdown.read(ffi.string(data, bytes), "fuzz.md") end)

  -- Checksums hold, as a forger makes them.
  target("manifest", function()
    local check = sealed.check
    sealed.check = function() return true end
    local ok, e = pcall(tried, manifest.check, "fuzz", { history = { { source_folder = "source" } } }, { bad = {}, notes = {} })
    sealed.check = check
    if not ok then error(e, 0) end
  end)

  target("declaration", function()
    local declaration = declaration_file.read "fuzz"
    declaration_file.changed(OF_STUDY, declaration and declaration.spec)
    if declaration then report_markdown.of(declaration.spec or {}, declaration.texts) end
  end)
  -- The map in a run's folder, and what is made of it: cells and a test.
  target("causal_map", function()
    local map = first("map", forge.causal_map)
    map.done, map.cells_done, map.steps, map.measure, map.outcomes, map.columns = false, 0, nil, nil, {}, {}
    if silently(causal_map_file.attach, map, "fuzz") == 0 then return end
    local cells = map:cells()
    if block.bytes % 16 == 0 then map:test(cells) end
    map:progress()
  end)

  -- The end of a tuning, as a report has it.
  target("tuning", function()
    local page = setmetatable({}, { __index = function() return function() end end })
    report_results.tuning(page, { path = "fuzz", runs = {} }, {})
  end)

  -- A run's config.json, a zero and its log; or a study's study.json, whose runs have it for a result.
  target("run_list", function(data, bytes)
    local text = ffi.string(data, bytes)
    local config, log = text:match "^(%Z*)%z(.*)$"
    local open_now, list = io.open, files.list
    io.open = function(path, mode)                                     -- luacheck: ignore
      local part = path:find "%.jsonl$" and log or config
      if part then return open(forge.file(ffi.cast("const uint8_t *", part), #part)) end
      return open_now(path, mode)
    end
    files.list = function() return { "a" } end
    local ok, e = pcall(config and run_list.text or function(o) return absent("config%.json$", run_list.text, o) end, { folder = "fuzz" })
    io.open, files.list = open_now, list                               -- luacheck: ignore
    if not ok then error(e, 0) end
  end)

  target("model_sizes", function()
    local known = {}
    model_sizes.read(known, { { name = "a=1,seed=1" }, { name = "a=2,seed=1" } }, function() return "fuzz" end)
    model_sizes.add(known, { name = "a=3,seed=1" }, { parameters = 10 })
    model_sizes.warning(known)
  end)

end
