-- test_help.lua -- mneme help knows every name that is registered, every setting that is documented, and the words of messages.
local t = require "tests.harness"
local ffi = require "ffi"
local encoder_attention = require "mneme.models.encoder_attention"
local catalogue = require "mneme.base.catalogue"
local config = require "mneme.runs.config"
local cores = require "mneme.models.cores"
local dataset = require "mneme.envs.dataset"
local engine = require "mneme.base.engine"
local gated_linear = require "mneme.models.gated_linear"
local help = require "mneme.commands.help"
local learner_settings = require "mneme.runs.learner_settings"
local registry = require "mneme.base.registry"
local shell = require "tests.support.shell"

local here = shell.folder()
local topics = help.topics()

local function knows(name, whose)
  local known = topics[name] or topics[name:gsub("^core%.", "")]
  t.ok(known, ("%s: mneme help %s knows nothing"):format(whose, name))
  if not known then return end
  local text = help.text(name, nil, nil, topics)
  t.ok(#text > #name + 10 and text:find "\n$", name .. ": " .. text)
end

t.test("help knows each thing that is registered, and each kind of thing", function()
  for _, kind in ipairs(catalogue.kinds) do
    knows(kind, "kinds")
    for _, thing in ipairs(catalogue.list(kind)) do t.ok(topics[thing.name], ("%s: mneme help %s knows nothing"):format(kind, thing.name)) end
  end
  for _, word in ipairs { "memory", "memories", "environment", "environments", "data set", "encoder", "study", "axes" } do knows(word, "kinds") end
end)

t.test("help knows every setting of scripts, learners, cores, attentions, environments and data sets", function()
  for _, setting in ipairs(config.standard) do knows(setting[1], "every script") end
  for key in pairs(learner_settings.keys) do knows(key, "learners") end
  for _, list in ipairs { "cores", "attentions", "datasets" } do
    local of = ({ cores = cores, attentions = encoder_attention, datasets = dataset })[list]
    for _, name in ipairs(registry.names(list)) do
      for key in pairs(of.definition(name).config or {}) do t.ok(topics[key], ("%s: mneme help %s knows nothing"):format(name, key)) end
    end
  end
  for _, env in ipairs(catalogue.list "envs") do
    for key in ffi.string(engine.C.mn_env_params(env.index)):gmatch "([%w_]+)=" do
      t.ok(topics[key], ("%s: mneme help %s knows nothing"):format(env.name, key))
    end
  end
  for axis, list in pairs { gate = gated_linear.gates, decay = gated_linear.decays, feature = gated_linear.features } do
    for word in pairs(list) do t.ok(topics[word], ("%s: mneme help %s knows nothing"):format(axis, word)) end
  end
end)

t.test("help knows the words that pages and messages use", function()
  for _, word in ipairs { "trust", "use", "history", "seeds", "size", "budget", "journal", "trial", "claim", "verdict", "checkpoint", "score", "source",
    "metrics", "live", "tape", "state", "rank", "half-life", "gates", "features", "decays", "remember", "give_up", "resume" } do knows(word, "words") end
end)

t.test("help of a core with settings: their values, its equations and how its gates begin with them", function()
  local text = help.text("agalite", "core", { "core.remember=40", "form=paper" })
  t.ok(text:find "\n  remember +40 " and text:find "w_m = 2 pi m/r" and text:find "initial memory half%-life: 40 steps", text)
  t.ok(help.text("agalite", "core"):find "initial memory half%-life: 0.707 steps")
  t.fails(function() help.text("gru", "core", { "core.r=2" }) end)
  local said = shell.fine(here, "help core agalite gru core.remember=1..9")
  t.eq(select(2, said:gsub("half%-life: [%d.]+ to 8", "")), 2, said)
  os.execute("rm -rf '" .. here .. "'")
end)

t.test("help knows the nouns of the glossary in docs/style.md", function()
  local table_, n = require("mneme.base.files").read(registry.root .. "docs/style.md"):match "## One word, one thing(.-)\n| peak memory", 0
  for nouns in table_:gmatch "\n| (%l[^|]*) |" do
    for noun in nouns:gmatch "%l[%l-]+" do
      if not nouns:find("%l " .. noun) and not nouns:find(noun .. " %l") and noun ~= "verb" and noun ~= "word" then
        n = n + 1
        t.ok(pcall(help.text, noun, nil, nil, topics), noun .. ": mneme help knows nothing")
      end
    end
  end
  t.ok(n > 40, n)
end)

t.test("help knows the classes that the comments of functions name", function()
  for _, class in ipairs(require("mneme.commands.api").classes()) do
    local text = help.text(class.name, nil, nil, topics)
    for _, method in ipairs(class.methods) do t.ok(text:find(method.name, 1, true), class.name .. " lacks " .. method.name) end
  end
  t.ok(help.text "Tensor":find ":backward%(options%)", help.text "Tensor")
end)

t.test("a section of docs/ is found by its heading, as it is typed", function()
  local files = require "mneme.base.files"
  local n = 0
  for heading in ("\n" .. files.read "docs/faq.md"):gmatch "\n## ([^\n]*)" do
    local text = shell.mneme(".", "help " .. heading:gsub("[^%w ]", " "))
    t.ok(text:gsub("%s+", " "):find("docs/faq.md: " .. heading, 1, true), ("%s\n%s"):format(heading, text))
    t.ok(text:find "[.:`|]%s*$", "it ends in the middle: " .. text)
    n = n + 1
    if n == 8 then break end
  end
  t.eq(n, 8)
  t.eq(pcall(help.text, "how zzqq"), false)
end)
