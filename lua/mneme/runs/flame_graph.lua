-- flame_graph.lua -- a flame graph (Gregg 2016, The Flame Graph, CACM 59(6)): each box is a line of a program, as wide as the time
-- spent below it, on top of the line that called it.  The SVG needs no other file; the title of a box appears under the pointer.
local flame = {}

local WIDTH, ROW, MARGIN, TOP = 1200, 18, 10, 40
local LEAST, LETTER = 0.4, 6.6                 -- pixels: of a box that is drawn; of a letter

-- A warm colour that depends on the name alone.
local function color(name)
  local h = 0
  for i = 1, #name do h = (h * 31 + name:byte(i)) % 997 end
  return ("rgb(%d,%d,%d)"):format(205 + h % 50, 95 + h * 7 % 120, 40 + h * 3 % 40)
end

local function plain(text) return (text:gsub("&", "&amp;"):gsub("<", "&lt;"):gsub(">", "&gt;")) end

---The stacks as lines "a;b;c 1234", microseconds: what other tools of this kind read.
---@param stacks table<string, number> "outer;inner;op" -> seconds
function flame.folded(stacks)
  local lines = {}
  for stack, seconds in pairs(stacks) do lines[#lines + 1] = ("%s %.0f\n"):format(stack:gsub(" ", "_"), seconds * 1e6) end
  table.sort(lines)
  return table.concat(lines)
end

-- The stacks as a tree: { name, seconds, children by name }.
local function tree_of(stacks)
  local root, deepest = { name = "all", seconds = 0, children = {} }, 0
  for stack, seconds in pairs(stacks) do
    local node, depth = root, 0
    node.seconds = node.seconds + seconds
    for name in stack:gmatch "[^;]+" do
      node.children[name] = node.children[name] or { name = name, seconds = 0, children = {} }
      node, depth = node.children[name], depth + 1
      node.seconds = node.seconds + seconds
    end
    deepest = math.max(deepest, depth)
  end
  return root, deepest
end

---@param stacks table<string, number> "outer;inner;op" -> seconds
---@return string svg
function flame.svg(stacks, title)
  local root, deepest = tree_of(stacks)
  local height = TOP + (deepest + 1) * ROW + MARGIN
  local out = { ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="monospace" font-size="11">'):format(WIDTH, height),
    '<rect width="100%" height="100%" fill="white"/>', ('<text x="%d" y="22" font-size="14">%s</text>'):format(MARGIN, plain(title)) }
  local scale = (WIDTH - 2 * MARGIN) / math.max(root.seconds, 1e-12)
  local function box(node, x, depth)
    local w = node.seconds * scale
    if w < LEAST then return end
    local y = height - MARGIN - (depth + 1) * ROW
    out[#out + 1] = ('<g><title>%s: %.4f s, %.1f %%</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>'):format(plain(node.name),
      node.seconds, 100 * node.seconds / root.seconds, x, y, math.max(w - 0.5, 0.2), ROW - 1, color(node.name))
    local letters = math.floor((w - 6) / LETTER)
    if letters >= 3 then
      local text = #node.name > letters and node.name:sub(1, letters - 2) .. ".." or node.name
      out[#out + 1] = ('<text x="%.1f" y="%d">%s</text>'):format(x + 3, y + ROW - 6, plain(text))
    end
    out[#out + 1] = "</g>"
    local names = {}
    for name in pairs(node.children) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do
      box(node.children[name], x, depth + 1)
      x = x + node.children[name].seconds * scale
    end
  end
  box(root, MARGIN, 0)
  out[#out + 1] = "</svg>\n"
  return table.concat(out, "\n")
end

return flame
