-- test_report.lua -- verdicts on numbers whose answer is known; the page of a study, whole, unfinished and without its
-- script: well formed, escaped, the same bytes each time, in English and German; the example of docs/studies.md.
local t = require "tests.harness"
local claims = require "mneme.lab.study.claims"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local study_folder = require "mneme.lab.study.study_folder"
local json = require "mneme.base.json"
local mn = require "mneme"
local authors_texts = require "mneme.lab.study.authors_texts"
local shell = require "tests.support.shell"

local here = shell.folder()

-- ---- verdicts ----

-- Runs of cores with a score for each seed: { gru = { 0.9, 0.8 } }; false: it failed; nil: there is none.
local function runs_of(scores, more)
  local runs = {}
  for _, core in ipairs { "gru", "lstm" } do
    for seed = 1, 8 do
      local score = scores[core] and scores[core][seed]
      if score ~= nil then
        local labels = { core = core }
        for key, value in pairs(more or {}) do labels[key] = value end
        runs[#runs + 1] = { name = ("core=%s,seed=%d"):format(core, seed), seed = seed, labels = labels, status = score and "done" or "failed",
          metrics = { score = score or nil } }
      end
    end
  end
  return runs
end

local function judge(scores, test)
  test.metric, test.a = test.metric or "score", test.a or { core = "gru" }
  if test[1] ~= "at_least" then test.b = test.b or { core = "lstm" } end
  local list = { { text = "a claim", test = test } }
  claims.check(list, { core = true, corridor = true })
  return claims.judge({ runs = scores[1] and scores or runs_of(scores) }, list)[1]
end

t.test("what ten thousand runs took is summed", function()
  local runs, rows = {}, nil
  for i = 1, 1e4 do
    runs[i] = { name = "core=gru,seed=" .. i, labels = { core = "gru" }, seed = i, status = "done", metrics = {},
      resources = { wall_s = 36, cpu_s = 1, peak_mib = i } }
  end
  local out = { table = function(_, _, list) rows = list end, paragraphs = function() end }
  require("mneme.lab.reports.report_method").resources(out, { runs = runs })
  t.eq(rows[2][2], "10000") t.eq(rows[2][4][1], "100 h") t.eq(rows[2][6][1], "9.77 GiB")
end)

t.test("better: above, below, neither", function()
  local high, low = { 0.9, 0.95, 0.88, 0.93, 0.91 }, { 0.5, 0.52, 0.47, 0.55, 0.5 }
  local v = judge({ gru = high, lstm = low }, { "better" })
  t.eq(v.verdict, "holds") t.eq(v.n, 5)
  local d, lo, hi, p = mn.stats.paired_t_interval(high, low)
  t.eq(v.estimate, d) t.eq(v.low, lo) t.eq(v.high, hi) t.eq(v.p, p) t.eq(v.holm, p) t.eq(v.improvement[1], 1)
  t.eq(judge({ gru = low, lstm = high }, { "better" }).verdict, "fails")
  v = judge({ gru = { 0.5, 0.9, 0.4 }, lstm = { 0.6, 0.5, 0.45 } }, { "better" })
  t.eq(v.verdict, "undecided") t.eq(v.why, "reaches_over")
  local probability, from, to = mn.stats.probability_of_improvement({ 0.5, 0.9, 0.4 }, { 0.6, 0.5, 0.45 })
  t.eq(v.improvement[1], probability) t.eq(v.improvement[2], from) t.eq(v.improvement[3], to)
end)

t.test("at_least, ratio, equal", function()
  local two = { gru = { 2.1, 4, 6.2, 2.1, 4 }, lstm = { 1, 2, 3, 1, 2 } }
  local one = { 0.9, 0.92, 0.91, 0.9, 0.92 }
  t.eq(judge({ gru = one }, { "at_least", value = 0.8 }).verdict, "holds")
  t.eq(judge({ gru = one }, { "at_least", value = 0.99 }).verdict, "fails")
  t.eq(judge({ gru = one }, { "at_least", value = 0.91 }).verdict, "undecided")
  local v = judge(two, { "ratio", at_least = 1.8 })
  t.eq(v.verdict, "holds")
  t.near(v.estimate, ((2.1 * 2) ^ 2 * 6.2 / 3) ^ (1 / 5), 1e-12)
  t.ok(v.low > 1.8 and v.high > v.estimate)
  t.eq(judge(two, { "ratio", at_least = 3 }).verdict, "fails")
  t.eq(judge({ gru = { 1, 2 }, lstm = { 0, 1 } }, { "ratio", at_least = 1 }).why, "not_positive")
  local near = { gru = { 0.5, 0.51, 0.49, 0.5, 0.5 }, lstm = { 0.5, 0.5, 0.5, 0.505, 0.5 } }
  v = judge(near, { "equal", within = 0.05 })
  t.eq(v.verdict, "holds") t.ok(v.p < 0.01)
  v = judge(near, { "equal", within = 0.005 })
  t.eq(v.verdict, "undecided") t.eq(v.why, "reaches_out") t.ok(v.p > 0.05)
  t.eq(judge({ gru = one, lstm = { 0.5, 0.5, 0.5, 0.5, 0.5 } }, { "equal", within = 0.1 }).verdict, "fails")
end)

t.test("fewer than five seeds decide nothing, however far apart they are", function()
  for n = 2, 6 do
    local of = { gru = {}, lstm = {} }
    for seed = 1, n do of.gru[seed], of.lstm[seed] = 0.9 + seed / 100, 0.1 + seed / 200 end
    for _, case in ipairs { { { "better" }, "holds" }, { { "at_least", value = 0.5 }, "holds" }, { { "ratio", at_least = 2 }, "holds" },
      { { "equal", within = 0.01 }, "fails" }, { { "equal", within = 0.95 }, "holds" } } do
      local v = judge(of, case[1])
      t.eq(v.verdict, n < 5 and "undecided" or case[2], case[1][1] .. " with " .. n) t.eq(v.why, n < 5 and "few_seeds" or nil)
    end
  end
end)

t.test("estimates, intervals and p are those of scipy 1.17.1 (ttest_1samp)", function()
  local both = { gru = { 0.9, 0.71, 0.88, 0.93, 0.8 }, lstm = { 0.6, 0.7, 0.5, 0.65, 0.62 } }
  for _, case in ipairs { { { "better" }, 0.23, 0.05352638841573451, 0.40647361158426554, 0.02238555601533826 },
    { { "at_least", value = 0.8 }, 0.844, 0.7334291412189794, 0.9545708587810205, 0.33121194046204505 },
    { { "ratio", at_least = 1.2 }, 1.3765957518536331, 1.0683668089790561, 1.7737502214547167, 0.20707123250037035 },
    { { "equal", within = 0.3 }, 0.23, 0.05352638841573451, 0.40647361158426554, 0.16628936950634784 } } do
    local v = judge(both, case[1])
    for i, key in ipairs { "estimate", "low", "high", "p" } do t.near(v[key], case[i + 1], 1e-10, case[1][1] .. " " .. key) end
  end
end)

t.test("numbers with a range: the interval of a value is within it, that of a difference no wider than it", function()
  local metrics = { score = { range = { 0, 1 } } }
  local function verdict(of, test)
    test.metric, test.a, test.b = "score", { core = "gru" }, test[1] ~= "at_least" and { core = "lstm" } or nil
    return claims.judge({ runs = runs_of(of) }, { { text = "claim", test = test } }, metrics)[1]
  end
  local high = { 0.7, 1, 1, 0.8, 1 }
  local v = verdict({ gru = high }, { "at_least", value = 0.2 })
  local _, low, top, p = mn.stats.bounded_interval(high, 0, 1, 0.95, 0.2)
  t.near(v.low, low, 1e-12) t.near(v.high, top, 1e-12) t.near(v.p, p, 1e-12) t.ok(v.high <= 1)
  t.eq(v.verdict, "holds") t.ok(p < 0.05)
  v = verdict({ gru = { 1, 0, 0.6 }, lstm = { 0, 1, 0.5 } }, { "better" })
  t.eq(v.low, -1) t.eq(v.high, 1) t.eq(v.verdict, "undecided")
  v = verdict({ gru = { 1, 1.3, 1.2 } }, { "at_least", value = 0.3 })           -- not within it: the study is wrong about that
  t.near(v.high, (select(3, mn.stats.t_interval { 1, 1.3, 1.2 })), 1e-12)
end)

t.test("numbers with one end: an interval is cut off there, and nothing else changes", function()
  local aggregate, positive, list = require "mneme.lab.study.aggregate", { 0, math.huge }, { 1, 2, 30 }
  local mean, low, high = aggregate.interval(list, "mean", positive)
  local of_student, below, above = mn.stats.t_interval(list)
  t.eq(mean, of_student) t.ok(below < 0) t.eq(low, 0) t.eq(high, above)
  low = select(2, aggregate.interval({ -1, 2, 30 }, "mean", positive))                    -- not within it: the study is wrong about that
  t.ok(low < 0, low)
  local of = { gru = { 3, 4, 5 }, lstm = { 1, 2, 2 } }
  for _, test in ipairs { { "better" }, { "at_least", value = 2 }, { "ratio", at_least = 1.2 } } do
    test.metric, test.a, test.b = "score", { core = "gru" }, test[1] ~= "at_least" and { core = "lstm" } or nil
    local claim = { { text = "claim", test = test } }
    local bare, told = claims.judge({ runs = runs_of(of) }, claim)[1], claims.judge({ runs = runs_of(of) }, claim, { score = { range = positive } })[1]
    t.eq(told.low, bare.low) t.eq(told.high, bare.high) t.eq(told.p, bare.p)
  end
end)

t.test("one seed, no spread, no seed: undecided, and why", function()
  local v = judge({ gru = { 0.9 }, lstm = { 0.1 } }, { "better" })
  t.eq(v.verdict, "undecided") t.eq(v.why, "one_seed") t.near(v.estimate, 0.8, 1e-12) t.eq(v.p, nil) t.eq(v.low, nil)
  v = judge({ gru = { 1, 1, 1 }, lstm = { 0.5, 0.5, 0.5 } }, { "better" })
  t.eq(v.verdict, "undecided") t.eq(v.why, "no_spread") t.near(v.p, 0.25, 1e-12)
  v = judge({ gru = { 1, 1, 1, 1, 1, 1 }, lstm = { 0.5, 0.5, 0.5, 0.5, 0.5, 0.5 } }, { "better" })
  t.eq(v.verdict, "holds") t.near(v.p, 2 / 64, 1e-12)
  v = judge({ gru = { 1, 1, 1 }, lstm = { 1, 1, 1 } }, { "better" })
  t.eq(v.verdict, "undecided") t.eq(v.p, 1)
  t.eq(judge({ gru = { 1 } }, { "better" }).why, "no_run")
  t.eq(judge({ gru = { 1, nil }, lstm = { nil, 1 } }, { "better" }).why, "no_seed")
end)

t.test("exact numbers: one seed is enough, each must do", function()
  t.eq(judge({ gru = { 1803072 }, lstm = { 1718928 } }, { "better", exact = true }).verdict, "holds")
  t.eq(judge({ gru = { 18.57 } }, { "at_least", value = 18.57, exact = true }).verdict, "holds")
  t.eq(judge({ gru = { 7, 7, 5 } }, { "at_least", value = 6, exact = true }).verdict, "fails")
  local v = judge({ gru = { 4, 4 }, lstm = { 4, 4 } }, { "equal", within = 0, exact = true })
  t.eq(v.verdict, "holds") t.eq(v.p, nil)
end)

t.test("runs that are missing are named; other axes are averaged, seed by seed", function()
  local v = judge({ gru = { 0.9, false, 0.92, 0.95 }, lstm = { 0.5, 0.52, 0.47 } }, { "better" })
  t.eq(v.n, 2) t.eq(table.concat(v.seeds, " "), "1 3")
  t.eq(#v.missing, 2)
  t.eq(v.missing[1].name, "core=gru, seed=2") t.eq(v.missing[1].status, "failed")
  t.eq(v.missing[2].name, "core=lstm, seed=4") t.eq(v.missing[2].status, "not swept")
  t.eq(judge({ gru = { 0.9, 0.8 }, lstm = { 0.5, 0.4 } }, { "better", metric = "loss" }).missing[1].status, "no number")
  local runs = runs_of({ gru = { 1, 0.9, 0.8 }, lstm = { 0.2, 0.3, 0.2 } }, { corridor = "20" })
  for _, c in ipairs(runs_of({ gru = { 0.4, 0.5 }, lstm = { 0.2, 0.1, 0.2 } }, { corridor = "5" })) do runs[#runs + 1] = c end
  v = judge(runs, { "better" })
  t.eq(v.n, 2) t.eq(table.concat(v.over, "; "), "corridor=20; corridor=5")
  t.near(v.estimate, ((1 + 0.4) / 2 - 0.2 + (0.9 + 0.5) / 2 - 0.2) / 2, 1e-12)
  v = judge(runs, { "better", where = { corridor = 20 } })
  t.eq(v.n, 3) t.eq(v.over, nil)
  t.eq(judge(runs, { "better", where = { corridor = 7 } }).why, "no_run")
  for i = #runs, 1, -1 do if runs[i].labels.core == "lstm" and runs[i].labels.corridor == "5" then table.remove(runs, i) end end
  v = judge(runs, { "better" })                         -- and not of corridor 20 alone, since a's other is there
  t.eq(v.verdict, "undecided") t.eq(v.n, 0)
  t.eq(v.missing[1].name, "core=lstm, corridor=5, seed=1") t.eq(v.missing[1].status, "not swept")
end)

t.test("p is corrected for all claims", function()
  local list, ps = {}, {}
  for i, value in ipairs { 0.5, 0.85, 0.9 } do
    list[i] = { text = "claim", test = { "at_least", metric = "score", a = { core = "gru" }, value = value } }
  end
  local judged = claims.judge({ runs = runs_of { gru = { 0.9, 0.93, 0.87, 0.91 } } }, list)
  for i, v in ipairs(judged) do ps[i] = v.p end
  for i, p in ipairs(mn.stats.holm(ps)) do t.eq(judged[i].holm, p) end
  t.ok(judged[1].holm > judged[1].p)
end)

t.test("what cannot be tested or written is refused where it is declared", function()
  local function refused(what, claim) t.raises(function() mn.study { run = function() end, axes = { core = { 1 } }, claims = { claim } } end, what) end
  local a = { core = 1 }
  refused("needs b", { text = "", test = { "better", metric = "m", a = a } })
  refused("did you mean 'better'", { text = "", test = { "beter", metric = "m", a = a } })
  refused("unknown axis in a", { text = "", test = { "at_least", metric = "m", a = { cor = 1 }, value = 1 } })
  refused("takes no within", { text = "", test = { "at_least", metric = "m", a = a, value = 1, within = 1 } })
  refused("above 0", { text = "", test = { "ratio", metric = "m", a = a, b = a, at_least = 0 } })
  refused("without text", { test = {} })
  local of_core, list = { core = 1, size = 2 }, { core = { 1, 2 } }
  t.fails(function() claims.check({ { text = "", test = { "better", metric = "m", a = of_core, b = a } } }, { core = 1, size = 1 }) end)
  t.fails(function() claims.check({ { text = "", test = { "better", metric = "m", a = a, b = of_core } } }, { core = 1, size = 1 }) end)
  refused("a.core is a list", { text = "", test = { "at_least", metric = "m", a = list, value = 1 } })
  refused("unknown key of claim x", { id = "x", text = "", sauce = "" })
  t.fails(function() authors_texts.check { scpoe = "" } end)
  t.fails(function() authors_texts.check { scope = 3 } end)
  t.raises(function() authors_texts.check { hyperparameters = { { "lr" } } } end, "expected texts alone")
end)

-- ---- the page ----

local void = { meta = true, input = true, br = true, link = true, img = true }

-- Tags that nest as they should; the ids of the page, each once; links within it that lead somewhere.
local function well_formed(html)
  local open, ids = {}, {}
  local body = html:gsub("<script>.-</script>", ""):gsub("<style[^>]*>.-</style>", ""):gsub("^<!DOCTYPE html>", "")
  for close, tag, rest in body:gmatch "<(/?)([%w]+)([^>]*)>" do
    if close == "/" then t.eq(tag, table.remove(open), "closing")
    elseif not void[tag] and not rest:find "/$" then open[#open + 1] = tag end
    local id = rest:match ' id="([^"]*)"'
    if id then
      t.ok(not ids[id], id .. " is there twice")
      ids[id] = true
    end
  end
  t.eq(#open, 0)
  t.ok(not body:gsub("<[^<>]*>", ""):find "[<>]", "a bare < or >")
  local links = 0
  for id in body:gmatch 'href="#([^"]+)"' do
    t.ok(ids[id], "nothing has the id " .. id)
    links = links + 1
  end
  t.ok(links > 15)
  t.ok(not html:gsub('src="data:image/png', ""):find 'src="' and not html:find "@import" and not html:find "url%([^#]", "it asks for a file")
end

local nasty = "<script>alert('&')</script>"
local script = here .. "/nasty.lua"
files.write(script, { (([[
local mn = require "mneme"
return mn.study {
  title = "NASTY", question = "Is it NASTY?",
  axes = { core = { { label = "NASTY", set = { d = 1 } }, { label = "plain", set = { d = 2 } } }, width = { 1, 2 } },
  settings = { steps = 10, d = 1, name = "NASTY", fail = 0 }, seeds = { 3 },
  run = function(cfg)
    if cfg.fail == cfg.seed then error "NASTY" end
    return { score = cfg.d * (1 + 0.1 * cfg.seed * cfg.width), count = cfg.d == 2 and 1857 or 100, curve = { x = { 1, 2 }, y = { cfg.d, cfg.seed } } }
  end,
  metrics = { score = { "NASTY", unit = "s" }, count = { "counted" } },
  figures = { { "bars", y = "score", x = "width", by = "core", title = "NASTY" }, { "lines", y = "curve", by = "core" } },
  claims = { { id = "NASTY", text = "NASTY <https://example.org/a>.", source = "NASTY",
    test = { "better", metric = "score", a = { core = "plain" }, b = { core = "NASTY" } } },
    { text = "Counted.", test = { "ratio", metric = "count", a = { core = "plain" }, b = { core = "NASTY" }, at_least = 18.57, exact = true } } },
  report = { scope = "One NASTY.\n\n**Two** (**see\nthere**) https://example.org/x?a=1&b=2. 2**3**4, `**no**` and "
    .. "[`a` **place**](https://example.org/p).", hard = { "NASTY", "all" }, code = "NASTY",
    hyperparameters = { "name: NASTY", "luck: a guess" } },
}
]]):gsub("NASTY", (nasty:gsub("%%", "%%%%")))) })

local function mneme(line)
  local said, status = shell.mneme(here, line)
  return status, said
end

t.test("a page: whole, escaped, the same bytes each time", function()
  local status, said = mneme "sweep nasty.lua estimate=0 jobs=2"
  t.eq(status, 0, said)
  t.ok(said:find "mneme report runs/nasty", said)
  t.eq((mneme "report nasty"), 0)
  local first = files.read(here .. "/runs/nasty/report.html")
  t.eq((mneme "report runs/nasty/"), 0)
  t.ok(first == files.read(here .. "/runs/nasty/report.html"))
  well_formed(first)
  local code = first:gsub("<script>[^<]-addEventListener.-</script>", "")
  t.ok(not code:find("<script", 1, true) and code:find("&lt;script&gt;alert", 1, true))
  for _, heading in ipairs { "Scope", "Hyperparameters", "Resources", "Results", "Runs" } do
    t.ok(first:find(">" .. heading .. "<", 1, true), heading)
  end
  t.ok(first:find("Not written yet: [^<]*Introduction[^<]*Communication with the authors") and not first:find '<h3 id="authors">', "an empty section")
  local function place(what) return assert(first:find(what, 1, true), what) end
  t.ok(place 'class="question"' < place 'class="cards"' and place 'class="cards"' < place 'id="figure-1"' and place 'id="figure-1"' < place "<nav")
  t.eq(select(2, first:gsub('<a class="card', "")), 2)
  t.ok(first:find('<a href="https://example.org/x?a=1&amp;b=2">', 1, true))
  t.ok(first:find('class="card holds"', 1, true) and first:find("<b>Holds</b>: ", 1, true))
  t.ok(first:find('<p><b>Two</b> (<b>see\nthere</b>) <a href', 1, true) and first:find("2**3**4, <code>**no**</code> and", 1, true))
  t.ok(first:find('<a href="https://example.org/p"><code>a</code> <b>place</b></a>.</p>', 1, true), first:match "no%*%*[^\n]*")
  local seeds_of = first:match "<details><summary>Each seed, median.-</details>"
  t.ok(seeds_of:find('core=plain, width=2</th><td>score</td><td class="wide">2.4 s  2.8 s  3.2 s</td><td class="number">2.8 s</td>', 1, true), seeds_of)
  t.ok(first:find('<th scope="row">built with</th><td>[^<]*gcc %d') or first:find('<th scope="row">built with</th><td>[^<]*Clang %d'))
  t.ok(first:find('<th scope="row">processor</th><td>[^<]+, %d+ of its processors, [%d.]+ GiB'))
  t.ok(first:find('<td class="number">1857, 3 seeds</td>', 1, true), "three seeds without spread have no interval")
  t.ok(first:find("better than one of the second with probability 1.00", 1, true))
  t.ok(first:find('<b>Holds</b>: 18.57 times, ', 1, true) and first:find("ounted, not drawn", 1, true))
  t.ok(first:find('<figure class="mn-part" id="figure-2"', 1, true))
  t.ok(not first:find("runs are done", 1, true))
  local link = first:match '<a href="(runs/[^"]*width=1,seed=1/)"'
  t.ok(link and files.is_folder(here .. "/runs/nasty/" .. link), link)
  local elsewhere = here .. "/elsewhere.html"
  t.eq((mneme "report nasty out=elsewhere.html"), 0)
  t.ok(not files.read(elsewhere):find 'href="runs/')
end)

t.test("an unfinished study says so on top, and names what failed", function()
  t.eq((mneme "sweep nasty.lua estimate=0 jobs=2 run=half fail=2 seeds=2"), 1)
  local info = study_folder.info(here .. "/half")
  info.runs[#info.runs + 1] = { name = "core=plain,width=2,seed=3", labels = { core = "plain", width = "2" }, seed = 3, words = {} }
  study_folder.write_info(here .. "/half", info)
  t.eq((mneme "report half"), 0)
  local html = files.read(here .. "/half/report.html")
  well_formed(html)
  t.ok(html:find("4 of 9 runs are done, 4 failed, 1 are open", 1, true))
  t.ok(html:find("One seed says nothing of the next", 1, true))
  t.ok(html:find("seed=2 (failed)", 1, true))
  local _, at = html:find('<h3 id="runs">', 1, true)
  t.ok(html:find("&lt;script&gt;alert('&amp;')", at, true), "the error of a cell")
end)

t.test("published values beside ours; was it replicable, from the verdicts of others' claims", function()
  local blocks, report_front, report_results = require "mneme.lab.reports.page.blocks", require "mneme.lab.reports.report_front",
    require "mneme.lab.reports.report_results"
  local page, study = blocks.new "", { runs = runs_of { gru = { 0.4, 0.5, 0.6 }, lstm = { 0.9, 0.9, 0.9 } } }
  report_results.published(page, study, { metrics = { score = {} }, references = { { "near", y = 0.45, of = "score", where = { core = "gru" } },
    { "far", y = 0.2, of = "score", where = { core = "gru" } }, { "line", y = 1, of = "score" },
    { "curve", curve = { { 1, 0.1 }, { 1e9, 0.3 } }, of = "score" } } }, "Where they stand.")
  t.eq(page.blocks[2].text, "Where they stand.")
  local rows = page.blocks[3].rows
  t.eq(rows[1][5], "+11.1 %, within our interval") t.eq(rows[2][5], "+150 %, outside our interval") t.eq(rows[3][5], "–")
  t.eq(rows[4][3][1], "–", "our runs do not say how many steps they made")
  for _, r in ipairs(study.runs) do r.metrics.steps = 5e8 end
  page = blocks.new ""
  report_results.published(page, study, { metrics = { score = {} }, references = { { "curve", curve = { { 1, 0.1 }, { 1e9, 0.3 } }, of = "score" } } })
  t.eq(page.blocks[2].rows[1][3][1], "0.2 after 500M steps")
  local function said(list)
    local judged = {}
    for i, verdict in ipairs(list) do judged[i] = { verdict = verdict, n = 3 + i, claim = { source = verdict == "own" and "ours" or "paper, figure 1" } } end
    return report_front.replicable(judged, "layers: 1")
  end
  t.eq(said { "own" }, nil)
  t.eq(said { "holds", "holds" }, "Was it replicable? Yes: 2 of the 2 published claims hold here (layers: 1, seeds: 4 to 5).")
  t.eq(said { "fails" }, "Was it replicable? No: the published claim does not hold here (layers: 1, seeds: 4).")
  t.ok(said { "holds", "fails" }:find "In part" and said({ "undecided" }):find "Not known yet" and said({ "fails", "undecided" }):find "Not as far as")
  local function of_others(source) return report_front.replicable({ { verdict = "holds", n = 5, claim = { source = source } } }, "") ~= nil end
  for _, source in ipairs { "paper, section 3", "paper's comparison", "the paper, table 1", "authors' reply", "Tay et al. 2021", "Lambert, in press", "POPGym",
    "J. Lambert, personal communication", "O'Reilly, chapter 2", "Œuvres, 3", "Craftax, pull request 54" } do
    t.ok(of_others(source), source)
  end
  for _, source in ipairs { "ours", "ours, 4096 tokens", "ours; bound set in 2024", "our reading of the released code", "mine", "a reviewer's question",
    "the task's rules", "O(N²)", "4096 tokens", "" } do
    t.ok(not of_others(source), source)
  end
  t.ok(not of_others(nil))
end)

t.test("no script any more, no study, other words", function()
  os.rename(script, script .. ".gone")
  local status, said = mneme "report nasty out=held.html"
  t.ok(status == 0 and not said:find "no longer there" and files.read(here .. "/held.html"):find('class="card', 1, true), "from declaration.json")
  shell.run(here, "rm -r runs/nasty/declaration.json runs/nasty/runs/*/source")
  status, said = mneme "report nasty out=bare.html"
  t.eq(status, 0, said)
  t.ok(said:find "no longer there", said)
  local bare = files.read(here .. "/bare.html")
  well_formed(bare)
  t.ok(not bare:find('class="card', 1, true) and bare:find("core=plain, width=2", 1, true))
  t.ok(bare:find('id="figure-1"', 1, true), "the usual figure")
  t.eq((mneme "report nasty script=nasty.lua.gone out=moved.html"), 0)
  os.rename(script .. ".gone", script)
  for line, what in pairs { ["report"] = "which study", ["report nasty width=84mm"] = "is for the files of figures=",
    ["report nusty"] = "did you mean runs/nasty",
    ["report nasty fgures=x"] = "did you mean 'figures'", ["report runs"] = "neither a run nor a study",
    ["report nasty more"] = "no such run", ["report nasty figures=f width=1mm"] = "expected 40mm", ["report nasty -x"] = "unknown setting" } do
    status, said = mneme(line)
    t.eq(status, 2, line)
    t.ok(said:find(what, 1, true), said)
  end
  files.write(here .. "/runs/nasty/study.json", { "{" })
  status, said = mneme "report nasty"
  t.eq(status, 1) t.ok(said:find "not valid JSON", said)
end)

t.test("each figure by itself, for papers; a page is called .html", function()
  t.eq((mneme "sweep nasty.lua estimate=0 jobs=2 run=drawn"), 0)
  local status, said = mneme "report drawn figures=papers"
  t.eq(status, 0, said)
  local bare = shell.folder()                      -- a PATH without rsvg-convert: what can be written is, and the rest is named
  shell.run(bare, "for p in sh env cat ls mkdir rm test uname id nproc df tail grep; do ln -s $(command -v $p) .; done")
  said, status = shell.run(here, ("PATH='%s' '%s' report drawn figures=bare"):format(bare, shell.program))
  t.ok(status == 0 and said:find "rsvg%-convert is not installed" and said:find "librsvg2%-bin", said)
  for _, name in ipairs { "bare/figure-1.svg", "bare/figure-2.svg", "bare/figure-2.csv" } do
    t.ok(files.is_file(here .. "/" .. name), name)
  end
  t.ok(not files.is_file(here .. "/bare/figure-1.png"))
  os.execute("rm -rf '" .. bare .. "'")
  if os.execute "command -v rsvg-convert >/dev/null 2>&1" == 0 then
    for _, name in ipairs { "figure-1", "figure-2" } do
      for ending, begin in pairs { svg = "<svg", pdf = "%PDF", png = "\137PNG", csv = "" } do
        t.eq(files.read(("%s/papers/%s.%s"):format(here, name, ending)):sub(1, #begin), begin, ending)
      end
    end
  end
  status, said = mneme "report drawn out=page.pdf"
  t.eq(status, 2) t.ok(said:find("expected a name ending in .html", 1, true), said)
end)

t.test("the example of docs/studies.md, from its question to its report", function()
  local text = files.read(registry.root .. "docs/studies.md")
  local name, example = text:match "```lua\n%-%- (%S+).-\n(.-)```"
  files.write(here .. "/" .. name, { example })
  local status, said = mneme("sweep " .. name .. " quick=1 estimate=0 jobs=2")
  t.eq(status, 0, said)
  t.eq((mneme "report remember"), 0)
  local html = files.read(here .. "/runs/remember/report.html")
  well_formed(html)
  t.ok(html:find("released configuration of T-Maze", 1, true) and html:find("tmaze-v0", 1, true))
  t.ok(html:find("<b>hidden</b>", 1, true), "hidden differs from the default")
  t.ok(not html:find("<b>entropy_coef</b>", 1, true), "published values of the core are no difference")
  t.ok(html:find("small values (quick=1)", 1, true))
  local unwritten = html:match "Not written yet: ([^.]*)%."
  t.ok(unwritten and unwritten:find(authors_texts.headings.easy, 1, true) and not unwritten:find(authors_texts.headings.objective, 1, true),
    "a section that the program fills is written")
  t.ok(html:find('id="objective"', 1, true))
  t.ok(html:find('<th scope="row">guessing</th><td>score</td><td class="number">0.5</td>', 1, true))
  local result = json.decode((files.read(here .. "/runs/remember/runs/core=gru,corridor=4,seed=1/result.json")))
  t.ok(result.metrics.score >= 0 and result.metrics.score <= 1)
  status, said = mneme "compare runs/remember"
  t.eq(status, 0, said)
  t.ok(said:find("core=feedforward, corridor=4", 1, true), said)
end)

t.test("a probability is 0.00 or 1.00 in words only where it is 0 or 1", function()
  local share = require("mneme.lab.reports.report_claims").share
  for n = 1, 400 do
    for k = 0, n do
      local said = share(k / n)
      t.eq(said == "0.00", k == 0) t.eq(said == "1.00", k == n)
      t.near(tonumber(said:match "[%d.]+$"), k / n, 0.01)
    end
  end
  t.eq(share(1 - 1e-16), "1.00") t.eq(share(1e-17), "0.00", "what rounding leaves")
end)

files.remove_folder(here)
