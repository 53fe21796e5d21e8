-- test_datasets.lua -- supervised data sets: what they draw, against independent readings of the same rules; the same
-- whoever asks, in whatever order; texts, their parts and units; bad settings and bad files.
local ffi = require "ffi"
local t = require "tests.harness"
local mn = require "mneme"
local corpus = require "mneme.envs.corpus"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local shell = require "tests.support.shell"

local drawn = { "listops", "mqar", "selective_copy", "induction", "copy" }
local small = { listops = { min_length = 5, max_length = 60 }, mqar = { length = 24, pairs = 5, vocab = 30 },
  selective_copy = { length = 30, copied = 6, vocab = 9 }, induction = { length = 20, vocab = 7 }, copy = { copied = 9, symbols = 4 } }

local function make(name, more)
  local settings = { batch = 4, seed = 3 }
  for _, list in ipairs { small[name] or {}, more or {} } do
    for key, value in pairs(list) do settings[key] = value end
  end
  return mn.dataset(name, settings)
end

-- Example i as two lists.
local function example(dataset, split, i)
  local token, answer = dataset:example(split, i)
  local a, b = {}, {}
  for k = 0, dataset.length - 1 do a[k + 1], b[k + 1] = token[k], answer[k] end
  return a, b
end

local function text(list) return table.concat(list, " ") end

local dir = shell.folder()
local function write(content)
  local path = dir .. "/text"
  files.write(path, { content })
  return path
end

t.test("every data set in the folder is tested here", function()
  local names = { text = true }
  for _, name in ipairs(drawn) do names[name] = true end
  t.eq(text(registry.names "datasets"), text(tables.keys(names)))
end)

for _, name in ipairs(drawn) do
  t.test(name .. ": an example is that of its seed, split and index, whoever asks", function()
    local dataset, seen = make(name), {}
    for i = 0, 9 do seen[i] = text(example(dataset, "train", i)) end
    for i = 9, 0, -1 do t.eq(text(example(make(name, { batch = 7 }), "train", i)), seen[i]) end
    local other = 0
    for i = 0, 9 do
      if text(example(dataset, "valid", i)) ~= seen[i] and text(example(dataset, "test", i)) ~= seen[i]
        and text(example(make(name, { seed = 4 }), "train", i)) ~= seen[i] and seen[i] ~= seen[(i + 1) % 10] then
        other = other + 1
      end
    end
    t.eq(other, 10)
    t.ok(text(example(dataset, "valid", 0)) ~= text(example(dataset, "test", 0)))
  end)

  t.test(name .. ": tokens and answers lie where the data set says; batches are examples side by side", function()
    local dataset = make(name)
    local batch = dataset:buffers()
    dataset:fill(batch, "test", 5)
    local B, token, answer, asked, done = 4, batch.token:data(), batch.answer:data(), batch.asked:data(), batch.done:data()
    for b = 0, B - 1 do
      local a, answers = example(dataset, "test", 5 * B + b)
      local n = 0
      for k = 0, dataset.length - 1 do
        t.eq(token[k * B + b], a[k + 1])
        t.ok(a[k + 1] >= 0 and a[k + 1] < dataset.tokens and answers[k + 1] < dataset.classes)
        t.eq(asked[k * B + b], answers[k + 1] >= 0 and 1 or 0)
        t.eq(answer[k * B + b], math.max(0, answers[k + 1]))
        t.eq(done[k * B + b], k == 0 and 1 or 0)
        n = n + asked[k * B + b]
      end
      t.ok(n > 0, "nothing is asked")
    end
    t.raises(function() dataset:fill(batch, "trian", 0) end, "unknown split 'trian'; did you mean 'train'")
  end)
end

-- ---- ListOps ----

-- Read a list as a person would: the value of what begins at position `at`, and the position behind it.
local function read_list(tokens, at)
  local symbol = tokens[at]
  if symbol < 10 then return symbol, at + 1 end
  local list = {}
  at = at + 1
  while tokens[at] ~= 14 do
    list[#list + 1], at = read_list(tokens, at)
  end
  table.sort(list)
  local n, sum = #list, 0
  for _, v in ipairs(list) do sum = sum + v end
  local middle = n % 2 == 1 and list[(n + 1) / 2] or math.floor((list[n / 2] + list[n / 2 + 1]) / 2)
  return ({ list[1], list[n], middle, sum % 10 })[symbol - 9], at + 1
end

t.test("listops: the answer is the value of the list, asked at its last token; the lengths keep their range", function()
  for _, range in ipairs { { 0, 30 }, { 5, 60 }, { 100, 200 }, { 500, 2000 } } do
    local dataset = make("listops", { min_length = range[1], max_length = range[2] })
    for i = 0, 199 do
      local tokens, answers = example(dataset, "train", i)
      local value, behind = read_list(tokens, 1)
      t.eq(answers[behind - 1], value)
      t.ok(behind - 1 > range[1] and behind - 1 < range[2])
      for k = behind, dataset.length do t.eq(tokens[k], 15) end
      for k = 1, dataset.length do t.ok(k == behind - 1 or answers[k] == -1) end
    end
  end
end)

t.test("listops: depth and arguments keep their bounds, and reach them", function()
  local dataset, deepest, widest = make("listops", { min_length = 20, max_length = 400, max_depth = 4, max_args = 5 }), 0, 0
  for i = 0, 299 do
    local tokens, args = example(dataset, "train", i), { 0 }
    for _, symbol in ipairs(tokens) do
      if symbol == 15 then break end
      if symbol == 14 then
        widest = math.max(widest, args[#args])
        t.ok(args[#args] >= 2)
        args[#args] = nil
      else
        args[#args] = args[#args] + 1
        deepest = math.max(deepest, #args)
        if symbol > 9 then args[#args + 1] = 0 end
      end
    end
  end
  t.eq(deepest, 4)
  t.eq(widest, 5)
end)

t.test("listops: labels and lengths come as often as the reference draws them", function()
  -- tests/reference/listops.py, 20,000 lists of the published range
  local labels = { 0.1684, 0.09315, 0.07265, 0.0821, 0.08885, 0.08825, 0.0772, 0.0746, 0.08525, 0.16955 }
  local mean, median, deviation, n = 1035.2, 953, 395.1, 8000
  local dataset, count, sum, lengths = mn.dataset("listops", { batch = 1 }), {}, 0, {}
  for i = 0, n - 1 do
    local _, answer = dataset:example("train", i)
    for k = dataset.length - 1, 0, -1 do
      if answer[k] >= 0 then
        count[answer[k]] = (count[answer[k]] or 0) + 1
        sum, lengths[i + 1] = sum + k + 1, k + 1
        break
      end
    end
  end
  for v, share in ipairs(labels) do
    local error = math.sqrt(share * (1 - share) * (1 / n + 1 / 20000))
    t.near(count[v - 1] / n, share, 4 * error, "label " .. v - 1)
  end
  t.near(sum / n, mean, 4 * deviation * math.sqrt(1 / n + 1 / 20000), "mean length")
  table.sort(lengths)
  t.near(lengths[n / 2], median, 4 * 1.6 * deviation * math.sqrt(1 / n + 1 / 20000), "median length")
  -- and the 1,500 of the specification: labels 0 and 9, mean length
  t.near(count[0] / n, 0.166, 4 * math.sqrt(0.166 * 0.834 / 1500))
  t.near(count[9] / n, 0.157, 4 * math.sqrt(0.157 * 0.843 / 1500))
  t.near(sum / n, 1067, 4 * deviation / math.sqrt(1500))
end)

-- ---- recall ----

t.test("mqar: each key comes again once, and asks for its value", function()
  local dataset = make "mqar"
  for i = 0, 199 do
    local token, answer = example(dataset, "train", i)
    local value_of, asked, values = {}, 0, {}
    for k = 1, 10, 2 do
      t.ok(token[k] >= 1 and token[k] <= 14 and not value_of[token[k]] and token[k + 1] >= 15 and not values[token[k + 1]])
      value_of[token[k]], values[token[k + 1]] = token[k + 1], true
      t.ok(answer[k] == -1 and answer[k + 1] == -1)
    end
    for k = 11, 24 do
      if answer[k] >= 0 then
        t.eq(answer[k], value_of[token[k]])
        t.eq(k % 2, 1)
        value_of[token[k]], asked = nil, asked + 1
      end
    end
    t.eq(asked, 5)
  end
end)

t.test("mqar: queries come at the distances that the power law says", function()
  local n, power, places = 6000, 0.3, 10
  local dataset, count, total, p = make("mqar", { length = 22, pairs = 1, vocab = 64, power = power }), {}, 0, {}
  for i = 1, places do
    p[i] = i ^ (power - 1)
    total = total + p[i]
  end
  for i = 0, n - 1 do
    local _, answer = example(dataset, "train", i)
    for k = 3, 22 do if answer[k] >= 0 then count[(k - 1) / 2] = (count[(k - 1) / 2] or 0) + 1 end end
  end
  for i = 1, places do
    local share = p[i] / total
    t.near((count[i] or 0) / n, share, 4 * math.sqrt(share * (1 - share) / n), "place " .. i)
  end
end)

t.test("selective_copy: what was strewn among the noise is asked for in its order", function()
  local dataset = make "selective_copy"
  for i = 0, 199 do
    local token, answer = example(dataset, "train", i)
    local heard, said = {}, {}
    for k = 1, 24 do
      if token[k] ~= 0 then heard[#heard + 1] = token[k] end
      t.ok(token[k] < 8 and answer[k] == -1)
    end
    for k = 25, 30 do
      t.eq(token[k], 8)
      said[#said + 1] = answer[k]
    end
    t.eq(text(said), text(heard))
  end
end)

t.test("copy: the question at place p asks for the symbol that stood there", function()
  local dataset = make "copy"
  for i = 0, 199 do
    local token, answer = example(dataset, "train", i)
    for p = 1, 9 do
      t.eq(math.floor(token[p] / 4), p - 1)
      t.eq(answer[p], -1)
      t.eq(token[9 + p], 36 + p - 1)
      t.eq(answer[9 + p], token[p] % 4)
    end
  end
end)

t.test("induction: what followed the sign is asked where it comes again", function()
  local dataset, where = make "induction", {}
  for i = 0, 499 do
    local token, answer = example(dataset, "train", i)
    local signs = {}
    for k, x in ipairs(token) do if x == 6 then signs[#signs + 1] = k end end
    t.eq(#signs, 2)
    t.eq(signs[2], 20)
    t.eq(answer[20], token[signs[1] + 1])
    for k = 1, 19 do t.eq(answer[k], -1) end
    where[signs[1]] = true
  end
  t.eq(#tables.keys(where), 18)
end)

-- ---- texts ----

-- The tokens of a part of a text, as a list.
local function stream(dataset, split)
  local ids, n = dataset.stream(split)
  local list = {}
  for i = 0, n - 1 do list[i + 1] = ids[i] end
  return list
end

t.test("text: its parts are its beginning, its middle and its end; characters are numbered in their order", function()
  local path = write(("aé€𝄞b"):rep(20))
  local dataset = mn.dataset("text", { file = path, batch = 2, length = 4, valid = 0.2, test = 0.2 })
  t.eq(dataset.tokens, 5)
  local order = { [1] = 0, [2] = 2, [3] = 3, [4] = 4, [0] = 1 }        -- a b é € 𝄞, as a text and by code
  local at = 0
  for _, part in ipairs { { "train", 60 }, { "valid", 20 }, { "test", 20 } } do
    local list = stream(dataset, part[1])
    t.near(#list, part[2], 1)
    t.eq(dataset.characters(part[1]), #list)
    for _, id in ipairs(list) do
      at = at + 1
      t.eq(id, order[at % 5])
    end
  end
  t.eq(at, 100)
end)

t.test("text: batches go on where the last one ended, and answer with the token that follows", function()
  local words = {}
  for i = 1, 400 do words[i] = string.char(97 + (i * i + 3 * i) % 23) end
  local dataset = mn.dataset("text", { file = write(table.concat(words)), batch = 3, length = 7, valid = 0.1, test = 0.1 })
  local ids, batch = stream(dataset, "train"), dataset:buffers()
  local part = math.floor((#ids - 1) / 3)
  t.eq(dataset:batches "train", math.ceil(part / 7))
  local asked = 0
  for n = 0, 2 * dataset:batches "train" - 1 do                 -- twice around
    dataset:fill(batch, "train", n)
    for k = 0, 6 do
      local at = n % dataset:batches "train" * 7 + k
      for b = 0, 2 do
        t.eq(batch.done:data()[k * 3 + b], at == 0 and 1 or 0)
        t.eq(batch.asked:data()[k * 3 + b], at < part and 1 or 0)
        if at < part then
          t.eq(batch.token:data()[k * 3 + b], ids[b * part + at + 1])
          t.eq(batch.answer:data()[k * 3 + b], ids[b * part + at + 2])
          asked = asked + 1
        end
      end
    end
  end
  t.eq(asked, 2 * 3 * part)
end)

t.test("text: words are numbered by how often the first part has them; 0 is any other", function()
  local path = write(("the cat, the dog\n"):rep(30) .. ("the bird, it\n"):rep(20))
  local dataset = mn.dataset("text", { file = path, unit = "word", vocab = 5, batch = 1, length = 4, valid = 0.15, test = 0.15 })
  t.eq(dataset.tokens, 5)
  local first = {}
  for i = 1, 6 do first[i] = stream(dataset, "train")[i] end
  t.eq(text(first), "1 4 3 1 0 2")                         -- the: 1; new line, comma, cat, dog come equally often
  local last = stream(dataset, "test")
  t.eq(last[#last - 1], 0)                                 -- it
  t.eq(dataset.characters "train", nil)
end)

t.test("text: Debian's corpus is there, in every unit", function()
  if not files.is_file "/usr/share/games/fortunes/people" then t.skip "the package fortunes is not installed" end
  local dataset = mn.dataset("text", { batch = 8 })
  local _, n = dataset.stream "train"
  t.ok(n > 1e6 and dataset.tokens < 200, n .. " characters")
  local wordy = mn.dataset("text", { unit = "word", vocab = 500 })
  t.eq(wordy.tokens, 500)
end)

t.test("text: where Debian's package is not, a play is read that is here, and the run says so", function()
  local is_file = files.is_file
  files.is_file = function(path) return not path:find "/fortunes/" and is_file(path) end
  local ok, dataset = pcall(mn.dataset, "text", { batch = 4, length = 16 })
  files.is_file = is_file
  t.ok(ok, dataset)
  local _, n = dataset.stream "train"
  t.ok(n > 1e5 and dataset.tokens > 50 and dataset.tokens < 100, n .. " characters")
  t.eq(dataset.instead:match "[^/]*$", "shakespeare.txt")
  local trusted_code = require "mneme.base.trusted_code"
  trusted_code.read_before = { ["/elsewhere/lua/mneme/envs/shakespeare.txt"] = true }
  local again = mn.dataset("text", { batch = 4, length = 16 })
  trusted_code.read_before = {}
  t.eq(again.vocabulary, dataset.vocabulary, "a run that has read it goes on with it where the package is, too")
  t.eq(mn.dataset("text", { batch = 4, file = dataset.instead }).vocabulary, dataset.vocabulary)
end)

-- ---- UTF-8 ----

local function decode(bytes)
  local code, n = corpus.decode(ffi.cast("const uint8_t *", bytes), #bytes)
  if not code then return nil, n end
  local list = {}
  for i = 0, n - 1 do list[i + 1] = ("%X"):format(code[i]) end
  return text(list)
end

t.test("UTF-8: the bounds of every length, and what is none", function()
  t.eq(decode "\0a\127\194\128\223\191\224\160\128\239\191\191\240\144\128\128\244\143\191\191",
    "0 61 7F 80 7FF 800 FFFF 10000 10FFFF")
  t.eq(decode "\237\159\191\238\128\128", "D7FF E000")
  for bytes, at in pairs {
    ["ab\128"] = 2, ["a\192\128"] = 1, ["\193\191"] = 0, ["\224\159\191"] = 1, ["x\237\160\128"] = 2, ["\240\143\191\191"] = 1,
    ["\244\144\128\128"] = 1, ["\245\128\128\128"] = 0, ["a\226\130"] = 1, ["\226\130a"] = 2, ["caf\233 "] = 4, ["\255"] = 0,
  } do
    local list, where = decode(bytes)
    t.eq(list, nil)
    t.eq(where, at, ("%q"):format(bytes))
  end
end)

t.test("bad texts: empty, no UTF-8, missing, a folder, too short", function()
  local function bad(options, pattern)
    t.raises(function() mn.dataset("text", options) end, pattern)
  end
  bad({ file = write "" }, "text: is empty %(expected a text in UTF%-8%)")
  bad({ file = write(("ok "):rep(100) .. "caf\233 au lait") }, "text: byte 304 %(20%) is not UTF%-8")
  bad({ file = write "\255\254h\0i\0" }, "text: byte 0 %(ff%) is not UTF%-8")
  bad({ file = dir .. "/none" }, "none: cannot be read: No such file")
  bad({ file = dir }, "cannot be read: Is a directory")
  bad({ file = write(("short "):rep(10)) }, "the %a+ part has %d+ tokens, expected at least 2 for each of batch=32")
  bad({ file = write(("long "):rep(1000)), valid = 0.6, test = 0.5 }, "leave nothing to learn from")
end)

t.test("bad settings are refused with what was expected", function()
  local function bad(name, options, pattern) t.raises(function() mn.dataset(name, options) end, pattern) end
  bad("listop", {}, "unknown dataset 'listop'; did you mean 'listops'")
  bad("listops", { min_len = 5 }, "unknown setting of data set listops 'min_len'; did you mean 'min_length'")
  bad("listops", { min_length = 50, max_length = 51 }, "no length is more than min_length=50 and less than max_length=51")
  bad("listops", { max_args = 1 }, "max_args=1: expected 2..1000")
  bad("listops", { batch = 0 }, "batch=0: expected 1..65536")
  bad("listops", { batch = 2.5 }, "batch=2.5: expected a whole number")
  bad("listops", { batch = "two" }, "batch = two, expected a number")
  bad("listops", { min_length = 0 / 0 }, "min_length=nan: expected")
  bad("mqar", { pairs = 17 }, "length=64, expected an even number of at least 4 %* pairs = 68")
  bad("mqar", { pairs = 8, vocab = 16 }, "pairs=8, but vocab=16 makes 7 keys")
  bad("selective_copy", { length = 31 }, "length=31, expected at least 2 %* copied = 32")
  bad("induction", { length = 2 }, "length=2: expected 3..")
  bad("text", { unit = "letter" }, "unit=letter: expected one of character, word")
  t.fails(function() mn.dataset("listops", { min_length = 500, max_length = 510, max_depth = 2 }) end)
  t.fails(function() mn.dataset {} end)
end)

-- A data set of a user's own, of the text of its file.
local own_files = 0
local function own(content)
  local lfs = require "lfs"
  own_files = own_files + 1
  mn.dataset("copy", {})                                         -- which loads what is the library's by its usual paths
  files.make_folder(dir .. "/datasets")
  files.write(("%s/datasets/own%d.lua"):format(dir, own_files), { content })
  local here, path = lfs.currentdir(), package.path
  package.path = ("%s/lua/?.lua;%s"):format(here, path)          -- of what is loaded there
  lfs.chdir(dir)
  local set, why = nil, nil
  local ok = xpcall(function()
    set = mn.dataset("own" .. own_files, { batch = 2, seed = 3 })
    local batch = set:buffers()
    for n = 0, 9 do for _, split in ipairs { "train", "valid", "test" } do set:fill(batch, split, n) end end
  end, function(e) why = errors.handler(e) end)
  lfs.chdir(here)
  package.path = path
  return ok and set, why
end

local function drawing(built, draw)
  return ("return { doc = 'x', build = function(cfg, seed) return { %s draw = function(random, token, answer) %s end } end }"):format(built, draw)
end
local function streaming(members, ids)
  return ("local a = require('ffi').new('int32_t[?]', 200) return { doc = 'x', build = function() return { tokens = 3, classes = 3, length = 4, %s "
    .. "stream = function(split) return %s end } end }"):format(members or "", ids)
end
local sizes, fine = "tokens = 4, classes = 3, length = 2,", "token[0] = random:below(3) answer[1] = token[0]"

t.test("a data set of a user's own needs no settings; seed is given; a text's characters need not be known", function()
  t.eq(own(drawing("tokens = 4, classes = 3, length = seed,", fine)).length, 3)
  t.eq(own(drawing("tokens = 1, classes = 1, length = 1,", "answer[0] = 0")).classes, 1)
  t.eq(own(streaming("", "a, 200")).parts.valid.characters, nil)
end)

t.test("a data set of a user's own: what is wrong in it is refused with its file, before a model learns from it", function()
  local function with(members) return "return { doc = 'x', " .. members .. ", build = function(cfg, seed) error 'built' end }" end
  for what, content in pairs {
    ["tokens = nil"] = drawing("classes = 3, length = 2,", fine), ["classes = 0"] = drawing("tokens = 4, classes = 0, length = 2,", fine),
    ["length = 2.5"] = drawing("tokens = 4, classes = 3, length = 2.5,", fine), ["length = 1073741824"]
      = drawing("tokens = 4, classes = 3, length = 2^30,", fine),
    ["draw is a number, expected a function"] = drawing(sizes, "end, draw = 1 * seed, characters = function()"),
    ["no function draw, and no stream"] =
      "return { build = function() return { tokens = 4, classes = 3, length = 2 } end }",
    ["something else varies"] = drawing(sizes, "answer[1] = math.random(0, 1e6) % 3"), ["below%(0%): expected"] = drawing(sizes, "answer[1] = random:below(0)"),
    ["below%(1.5%): expected"] = drawing(sizes, "answer[1] = random:below(1.5)"), ["asked nothing"] = drawing(sizes, "token[0] = 1"),
    ["token 0 is 4, expected a whole number from 0 to 3"] = drawing(sizes, "token[0] = 4"), ["token 1 is %-1"] = drawing(sizes, "token[1] = -1"),
    ["answer 0 is 3, expected a whole number from %-1 to 2"] = drawing(sizes, "answer[0] = 3"), ["answer 0 is nan"] = drawing(sizes, "answer[0] = 0/0"),
    ["token 2, expected 0 to 1"] = drawing(sizes, "token[2] = 0"), ["answer 0 is x"] = drawing(sizes, "answer[0] = 'x'"),
    ["stream gave nil and 200"] = streaming("", "nil, 200"), ["stream gave table"] = streaming("", "{ 1 }, 1"), ["and nil, expected"] = streaming("", "a"),
    ["and 201, expected"] = streaming("", "a, 201"), ["float"] = streaming("", "require('ffi').new('float[200]'), 200"), ["token 7 of the train part is 5"]
    = "local b = require('ffi').new('int32_t[200]') b[7] = 5 " .. streaming("", "b, 200"), ["characters gave many"] = streaming(
      "characters = function() return 'many' end,", "a, 200"), ["vocabulary is a table"] = streaming("vocabulary = {},", "a, 200"),
    ["draw and stream"] = streaming("draw = function() end,", "a, 200"), ["config is a string"] = with "config = ''", ["about is a number"] = with "about = 3",
    ["unknown setting in about"] = with "about = { n = 'x' }", ["n: expected a text"] = with "config = { n = 1 }, about = { n = 5 }",
    ["range is { 1, nil }"] = with "config = { n = 1 }, about = { n = { 'x', range = { 1 } } }", ["choices is a number"] = with
      "config = { n = '' }, about = { n = { 'x', choices = 5 } }", ["n is a function"] = with "config = { n = print }", ["cannot be a key"] = with
      "config = { ['a b'] = 1 }", ["unknown key of data set"] = with "draw = print",
  } do
    local set, why = own(content)
    t.ok(not set, what .. ": accepted")
    t.ok(why.message:find(what) and tostring(why.where):find "^datasets/own%d+%.lua:1$", ("%s: got %s at %s"):format(what, why.message, tostring(why.where)))
  end
end)

os.execute("rm -rf " .. dir)
