-- test_study.lua -- can the claims of NAME.lua be judged, and does a run of it give what they measure?   mneme run test_study.lua
local program = '"$(readlink /proc/$PPID/exe)"'            -- the one that runs this test

-- What a command prints, where it succeeds.
local function said(words)
  local pipe = io.popen(program .. words .. " 2>&1; echo \"[$?]\"")
  local text = pipe:read "*a"
  pipe:close()
  assert(text:match "%[(%d+)%]\n$" == "0", "mneme" .. words .. "\n" .. text)
  return text
end

local folder = os.tmpname()
os.remove(folder)
for _, size in ipairs { "", " quick=1" } do                 -- a claim whose sides have no runs is an error
  local runs, names = 0, {}
  for name in said((" sweep NAME.lua%s list=1 run=%s"):format(size, folder)):gmatch "%d+%s+open%s+(%S+)" do
    assert(not names[name], "two runs have one name: " .. name)
    runs, names[name] = runs + 1, true
  end
  print(("%d runs%s"):format(runs, size))
  assert(runs > 1, "a study compares runs")
end

said((" sweep NAME.lua quick=1 only=1 steps=4096 estimate=0 run=%s"):format(folder))
local page = said((" report %s export=%s/runs.jsonl"):format(folder, folder))
os.execute("rm -r " .. folder)
assert(page:find "runs%.jsonl: 1 run", "the first run gave nothing:\n" .. page)
print "ok"
