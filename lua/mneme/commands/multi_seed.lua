-- multi_seed.lua -- several seeds in one process: `mneme run SCRIPT seeds=4 [key=value ...]`.  Each lives the script in a Lua state
-- of its own, with a context and a run folder of its own, so all is as it is alone, bit for bit.  They take turns: where
-- one would wait for its device (engine.turn), the next goes on.  So when the first of them waits at last, a GPU has been
-- asked by each for the same work, and does it for all of them together (gpu/runtime/multi_seed.cu); the CPU gains nothing.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local C = engine.C

ffi.cdef [[
typedef struct lua_State lua_State;
lua_State *luaL_newstate(void);
void luaL_openlibs(lua_State *L);
lua_State *lua_newthread(lua_State *L);
int luaL_loadstring(lua_State *L, const char *text);
void lua_pushstring(lua_State *L, const char *text);
int lua_resume(lua_State *L, int n);
const char *lua_tolstring(lua_State *L, int at, size_t *length);
ptrdiff_t lua_tointeger(lua_State *L, int at);
]]
local YIELDED = 1                  -- of lua_resume; 0: it has ended, more: an error
local MOST = 64                    -- CU_SEEDS in gpu/runtime/launch.cuh

local BEGIN = [[
local path, cpath, at, of = ...
package.path, package.cpath = path, cpath
return require "mneme.commands.multi_seed".live(tonumber(at), tonumber(of), { select(5, ...) })]]

local turns = {}

---What a state does, from its first turn to its last.
---@param at integer which it is, from 1
---@param of integer how many there are
---@param words string[] the command line, whose last word is the seed
---@return integer status
function turns.live(at, of, words)
  local mine = coroutine.running()
  engine.turns = { at = at, of = of }
  engine.check(C.mn_set_turn(nil, at - 1))
  function engine.turn()
    if coroutine.running() ~= mine or not coroutine.isyieldable() then return end     -- a coroutine of the script's, a comparison
    coroutine.yield()
    engine.check(C.mn_set_turn(engine.ctx, at - 1))
  end
  return require("mneme.commands.cli").main(words, words[#words]:gsub("=", " ") .. ": ")
end

-- A state that will live a command line.
local function begin(at, of, words)
  local state = ffi.C.luaL_newstate()
  if state == nil then errors.fail "no memory for another seed" end
  ffi.C.luaL_openlibs(state)
  local thread = ffi.C.lua_newthread(state)
  ffi.C.luaL_loadstring(thread, BEGIN)
  local given = { package.path, package.cpath, tostring(at), tostring(of), unpack(words) }
  for _, word in ipairs(given) do ffi.C.lua_pushstring(thread, word) end
  return { thread = thread, given = #given }
end

-- A turn: the status that the state ended with, or nil.
local function turn(state)
  local result = ffi.C.lua_resume(state.thread, state.given)
  state.given = 0
  if result == YIELDED then return nil end
  if result == 0 then return tonumber(ffi.C.lua_tointeger(state.thread, -1)) end
  local why = ffi.C.lua_tolstring(state.thread, -1, nil)
  io.stderr:write("mneme: ", why == nil and "?" or ffi.string(why), "\n")
  return 1
end
jit.off(turn)                      -- what it calls is Lua again

---Run a script once for each seed, in turns.
---@param name string the script
---@param words string[] of its command line, without seeds
---@param seeds number[]
---@return integer status 0, or the first that another ended with
function turns.run(name, words, seeds)
  if #seeds > MOST then errors.usage(("run: %d seeds, expected at most %d in one process"):format(#seeds, MOST)) end
  local states, status, left = {}, 0, #seeds
  for i, seed in ipairs(seeds) do
    local own = { "run", name }
    for _, word in ipairs(words) do
      own[#own + 1] = word:find "^%-*run=." and ("%s-seed%.0f"):format(word, seed) or word
    end
    own[#own + 1] = ("seed=%.0f"):format(seed)
    states[i] = begin(i, #seeds, own)
  end
  C.mn_watch_signals(true)
  while left > 0 do
    for _, state in ipairs(states) do
      if not state.ended then
        local ended = turn(state)
        if ended then
          state.ended, left = true, left - 1
          if status == 0 then status = ended end
        end
      end
    end
  end
  C.mn_watch_signals(false)
  return status
end

return turns
