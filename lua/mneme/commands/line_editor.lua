-- line_editor.lua -- reading a line from the user: with editing, history and completion by libedit on a terminal, plain
-- lines elsewhere.
local ffi = require "ffi"
local files = require "mneme.base.files"

ffi.cdef [[
char *readline(const char *prompt);
int add_history(const char *line);
int read_history(const char *path);
int write_history(const char *path);
void using_history(void);
void stifle_history(int most);
typedef char *mneme_candidates(const char *word, int state);
char **rl_completion_matches(const char *word, mneme_candidates *f);
extern char **(*rl_attempted_completion_function)(const char *word, int first, int last);
extern const char *rl_completer_word_break_characters;
extern int rl_attempted_completion_over;
extern int rl_completion_append_character;
extern char *rl_line_buffer;
int isatty(int fd);
char *strdup(const char *text);
void free(void *p);
]]

local MOST = 1000                    -- lines of history

---@class Line
local Line = {}
Line.__index = Line

-- Completions of a word, one per call, as libedit expects them.
local function candidates(offers)
  local list, at
  return ffi.cast("mneme_candidates *", function(word, state)
    if state == 0 then list, at = offers(ffi.string(word)), 0 end
    at = at + 1
    return list[at] and ffi.C.strdup(list[at]) or nil
  end)
end

---@param options table { history = path of a file, offers = f(word) -> texts that the word may become }
---@return Line
local function new(options)
  local self = setmetatable({ history = options.history }, Line)
  local found, lib = pcall(ffi.load, "libedit.so.2")
  if found and ffi.C.isatty(0) == 1 and ffi.C.isatty(1) == 1 and os.getenv "TERM" ~= "dumb" then
    self.lib = lib
    lib.using_history()
    lib.stifle_history(MOST)
    lib.read_history(self.history)
    self.next = candidates(options.offers)
    self.complete = ffi.cast("char **(*)(const char *, int, int)", function(word)
      lib.rl_attempted_completion_over = 1
      lib.rl_completion_append_character = 0
      return lib.rl_completion_matches(word, self.next)
    end)
    lib.rl_completer_word_break_characters = " \t\n\"'`@$><=;|&{(}),+-*/^%#~["
    lib.rl_attempted_completion_function = self.complete
  end
  return self
end

---The next line, without its newline; nil at the end.
---@return string?
function Line:read(prompt)
  if not self.lib then
    io.stdout:write(prompt)
    io.stdout:flush()
    return io.read "*l"
  end
  local line = self.lib.readline(prompt)
  if line == nil then return nil end
  local text = ffi.string(line)
  ffi.C.free(line)
  return text
end

---Add a line to the history, also for later sessions.
function Line:keep(text)
  if not self.lib or not text:find "%S" then return end
  files.make_folder(self.history:match "^(.*)/")
  self.lib.add_history((text:gsub("\n", " ")))
  self.lib.write_history(self.history)
end

return new
