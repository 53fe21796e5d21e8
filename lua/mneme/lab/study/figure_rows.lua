-- figure_rows.lua -- the rows of a figure of bars: their order, which are marked, which are left out, and whether they are bars or dots; ranks.
local aggregate = require "mneme.lab.study.aggregate"
local setting_types = require "mneme.base.setting_types"
local study_folder = require "mneme.lab.study.study_folder"
local figure_runs = require "mneme.lab.study.figure_runs"
local stats = require "mneme.stats"
local tables = require "mneme.base.tables"

local rows = {}
local WIDE = 50                -- times the least: beyond, numbers stand on a logarithmic axis
local MANY, CROWDED = 6, 6     -- and where most of more rows than that would be shorter than a sixth of the longest

---What the claims of a study are about, among the values of an axis.
function rows.studied(spec, axis)
  local found = {}
  for _, claim in ipairs(spec.claims or {}) do
    local name = claim.test and claim.test.a[axis]
    if name ~= nil then found[setting_types.show(name)] = true end
  end
  return found
end

---Values of an axis that have an order of their own, such as widths, keep it; others are sorted by what is drawn.
function rows.ordered(groups)
  local numbered = 0
  for _, group in ipairs(groups) do if group.name:find "%d" then numbered = numbered + 1 end end
  return numbered > #groups / 2
end

---Rows by their mean over all columns, the best first: the same order in each column.
function rows.sort(fig)
  local sum, n, place = {}, {}, {}
  for i, bar in ipairs(fig.bars) do
    place[bar.name] = place[bar.name] or i
    if bar.y then sum[bar.name], n[bar.name] = (sum[bar.name] or 0) + bar.y, (n[bar.name] or 0) + 1 end
  end
  local column, columns = {}, 0
  for _, bar in ipairs(fig.bars) do
    local group = bar.group or ""
    if not column[group] then columns, column[group] = columns + 1, columns + 1 end
  end
  local function mean(bar) return n[bar.name] and sum[bar.name] / n[bar.name] or -math.huge end
  table.sort(fig.bars, function(a, b)
    local p, q = column[a.group or ""], column[b.group or ""]
    if p ~= q then return p < q end
    local v, w = mean(a), mean(b)
    return v ~= w and v > w or v == w and place[a.name] < place[b.name]
  end)
end

---Rows and columns of which nothing is known are left out, unless there is no other; the note says what is missing.
function rows.drop_unknown(fig)
  local known, any = {}, false
  for _, bar in ipairs(fig.bars) do
    if bar.y then known["name " .. bar.name], known["group " .. (bar.group or "")], any = true, true, true end
  end
  if not any then return end
  fig.bars = tables.map(fig.bars, function(bar) return known["name " .. bar.name] and known["group " .. (bar.group or "")] and bar or nil end)
end

-- Would most bars be stubs next to the longest?
local function crowded(heights)
  table.sort(heights)
  return #heights > MANY and heights[#heights] > CROWDED * heights[math.floor(#heights / 2) + 1]
end

---What a score is drawn as: dots, because 0 means nothing there; so are numbers of which some would hardly show next to the others,
---on a logarithmic axis.
function rows.set_kind(fig)
  local least, most = math.huge, -math.huge
  local zeros, heights = {}, {}
  for _, bar in ipairs(fig.bars) do
    heights[#heights + 1] = bar.y
    for _, y in ipairs(bar.y and bar.y ~= 0 and { bar.y, unpack(bar.seeds or {}) } or {}) do least, most = math.min(least, y), math.max(most, y) end
    if bar.y == 0 then zeros[#zeros + 1] = bar.name end
  end
  if fig.y.range or least < 0 then fig.kind = "dots"
  elseif least > 0 and (most > WIDE * least or crowded(heights)) then
    fig.kind, fig.y.log = "dots", true
    fig.bars = tables.map(fig.bars, function(bar) return bar.y ~= 0 and bar or nil end)
    if #zeros > 0 then fig.note = (" Without what is 0 or less and has no place on a logarithmic axis: %s."):format(table.concat(zeros, ", ")) end
    fig.references = fig.references and tables.map(fig.references, function(r) return r.y > 0 and r or nil end)
  end
end

-- numbers[task][line] of seeds; a line without any run that is done is left out, a task that another lacks counts for none.
local function by_task(pick, f)
  local lines, tasks = {}, {}
  for k, group in ipairs(pick.groups) do
    local line = { name = group.name, of = {}, any = false }
    for _, column in ipairs(figure_runs.groups(group.runs, f.x)) do
      local list = aggregate.numbers(column.runs, function(c) return study_folder.number(c, f.y) end, pick.missing)
      if #list > 0 then line.of[column.name], line.any = list, true end
      if k == 1 then tasks[#tasks + 1] = column.name end
    end
    if line.any then lines[#lines + 1] = line end
  end
  return lines, tables.map(tasks, function(task)
    for _, line in ipairs(lines) do if not line.of[task] then return nil end end
    return task
  end)
end

---A figure of mean ranks: which of several memories is best over many tasks.
function rows.ranks(pick, f, o)
  local fig = { kind = "dots", x = { label = f.by }, y = { label = "mean rank, 1 is the best" }, bars = {} }
  local lines, tasks = by_task(pick, f)
  if #lines < 2 or #tasks == 0 then return fig, {} end
  local counts = {}
  local scores = tables.map(lines, function(line)
    return tables.map(tasks, function(task)
      counts[#counts + 1] = #line.of[task]
      return line.of[task]
    end)
  end)
  fig.bars = tables.map(stats.ranks(scores), function(rank, m)
    return { name = lines[m].name, y = rank.value, low = rank.low, high = rank.high, style = o.styles[lines[m].name] }
  end)
  table.sort(fig.bars, function(a, b) return a.y < b.y or a.y == b.y and a.name < b.name end)
  local apart, pairs_apart = stats.critical_difference(#lines, #tasks), {}
  for i, first in ipairs(fig.bars) do
    local after = {}
    for k = i + 1, #fig.bars do if fig.bars[k].y - first.y >= apart then after[#after + 1] = fig.bars[k].name end end
    if #after > 0 then pairs_apart[#pairs_apart + 1] = ("%s before %s"):format(first.name, table.concat(after, ", ")) end
  end
  o.how = ("Rank of the mean of %s, mean over %d values of %s; %s. Two differ by more than chance where they are %.2f apart (Nemenyi's test of all "
    .. "pairs)."):format("%s", #tasks, f.x, fig.bars[1].low and "95 %% bootstrap interval over both" or "no interval of one seed or task", apart)
  if #pairs_apart > 0 then fig.note = (" They are: %s."):format(table.concat(pairs_apart, "; ")) end
  return fig, counts
end

return rows
