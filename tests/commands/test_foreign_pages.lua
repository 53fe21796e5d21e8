-- test_foreign_pages.lua -- labels of a stranger's study are text in every page and table; names are one word to a shell; git runs nothing of
-- the folder that it is asked about.
local C = require("mneme.base.engine").C
local files = require "mneme.base.files"
local foreign = require "tests.support.foreign"
local figure_csv = require "mneme.insight.figures.figure_csv"
local shell = require "tests.support.shell"
local t = require "tests.harness"

local dir = shell.folder()
foreign.prepare(dir)

local LABEL = "[zq](javascript:zq()) $\\input{/etc/passwd}$ "
  .. "[y](http://x}\\input{/etc/passwd}{) <img src=x onerror=zq()> </script> $^{^5cinput{x}$ `touch PWNED` =1+1"

local function with_label(label)
  foreign.copy(dir, "s")
  local info = foreign.read(dir, "study.json")
  for _, run in ipairs(info.runs) do run.labels.core = label .. run.labels.core end
  info.settings = label
  foreign.write(dir, "study.json", info)
end

t.test("a label is text in HTML and Markdown, and ends no report", function()
  with_label(LABEL)
  for _, kind in ipairs { "html", "md" } do
    shell.fine(dir, "report x out=x." .. kind)
    local page = files.read(dir .. "/x." .. kind)
    t.ok(page:find "touch PWNED", kind)
    if kind == "html" then t.ok(not page:find("<img src=x", 1, true) and not page:find('href="javascript', 1, true)) end
    if kind == "md" then t.ok(not page:find "[^\\]%]%(javascript" and not page:find("<img", 1, true)) end
  end
  t.ok(not files.is_file(dir .. "/PWNED"))
end)

t.test("a control character of a label is in no page, figure or table", function()
  with_label "\27]0;zq\7\27[2J\194\155q"
  for _, kind in ipairs { "html", "md" } do
    shell.fine(dir, "report x out=x." .. kind)
  end
  shell.mneme(dir, "report x out=x.html figures=x.figures")
  local found = shell.run(dir, [[grep -lrP '\x1b|\x07' --include='x.*' --include='*.svg' --include='*.csv' . || true]])
  t.eq(found:gsub("%./x/runs/[^\n]*\n", ""), "")
end)

t.test("a CSV cell is no formula", function()
  for _, name in ipairs { "=1+1", "+x", "-x", "@x", "\tx" } do
    t.eq(figure_csv.field(name):match "^\"?'", figure_csv.field(name):sub(1, 1) == '"' and "\"'" or "'", name)
  end
  t.eq(figure_csv.field "-0.5", "-0.5") t.eq(figure_csv.field(-1), "-1") t.eq(figure_csv.field "gru", "gru")
end)

t.test("completion offers each name as one word, and none that is not printed as it is", function()
  if not shell.has "bash" then t.skip "bash is not installed" end
  for _, name in ipairs { "$(touch PWNED)", "a b", "q'uo\"te", "semi;colon", "new\nline" } do
    files.make_folder(dir .. "/runs/" .. name)
    files.write(dir .. "/runs/" .. name .. "/config.json", { "{}" })
  end
  files.write(dir .. "/complete.sh", { ([[
mneme() { '%s' "$@"; }
. '%sbindings/shell/mneme.bash'
COMP_LINE="mneme check runs/"; COMP_POINT=${#COMP_LINE}; _mneme 2> /dev/null
for reply in "${COMPREPLY[@]}"; do eval "set -- $reply"; echo "$#:$1"; done]]):format(shell.program, shell.root:gsub("/*$", "/")) })
  local said = shell.run(dir, "bash complete.sh")
  for _, name in ipairs { "$(touch PWNED)", "a b", "q'uo\"te", "semi;colon" } do t.ok(said:find("1:runs/" .. name .. "\n", 1, true), said) end
  t.ok(not said:find("line", 1, true) and not files.is_file(dir .. "/PWNED"), said)
end)

t.test("git runs no program that the folder names", function()
  if not shell.has "git" then t.skip "git is not installed" end
  local here = dir .. "/repo"
  files.make_folder(here)
  files.write(here .. "/evil.sh", { "#!/bin/sh\ntouch '" .. dir .. "/PWNED'\ncat\n" })
  shell.run(here, "chmod +x evil.sh; git init -q . && echo 'f filter=evil' > .gitattributes && echo x > f && git add f .gitattributes && "
    .. "git -c user.name=a -c user.email=a@b commit -qm x && git config core.fsmonitor ./evil.sh && git config filter.evil.clean ./evil.sh && "
    .. "git config core.pager ./evil.sh && cp evil.sh .git/hooks/post-index-change && sleep 1.1 && echo y > f")
  shell.fine(here, "run tmaze " .. foreign.small .. " corridor=4 steps=64 run=r")
  t.ok(not files.is_file(dir .. "/PWNED"), "a program of the folder ran")
  t.ok(files.read(here .. "/r/config.json"):find '"commit": "%x+', "the commit is known")
end)

t.test("labels of 70,000 letters cost no more than a few seconds", function()
  for _, words in ipairs { "compare x", "compare x r", "report x out=x.html", "list runs ." } do
    local limit = 600
    for _, letters in ipairs { 7, 70000 } do             -- what seven cost tells how fast this machine is
      with_label(("a"):rep(letters))
      local from = C.mn_clock(false)
      local said, status = shell.run(dir, ("ulimit -t %d; '%s' %s"):format(limit, shell.program, words))
      local took = C.mn_clock(false) - from
      t.ok(status and status < 124, ("%s: %s after %.0f s: %s"):format(words, status, took, said:sub(-200)))
      limit = math.ceil(8 + 5 * took)
    end
  end
end)

os.execute(("rm -rf '%s'"):format(dir))
