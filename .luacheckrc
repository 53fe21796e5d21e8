std = "luajit"
max_line_length = false                    -- tests/project/test_tree.lua knows the limit
ignore = { "581" }                         -- not (x <= y): so that a NaN fails, too
files["tests"] = { ignore = { "122" } }    -- a test may put its own io.stderr
