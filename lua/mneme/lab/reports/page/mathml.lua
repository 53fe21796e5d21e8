-- mathml.lua -- turns the LaTeX of equations in authors' texts into MathML, which browsers draw without help: letters, numbers, ^ and _,
-- \frac, \sqrt, accents, \mathrm, Greek letters and the signs below.
local errors = require "mneme.base.errors"
local terminal = require "mneme.base.terminal"
local text = require "mneme.insight.figures.text"

local mathml = {}

local signs = { odot = "⊙", otimes = "⊗", oplus = "⊕", cdot = "·", times = "×", le = "≤", ge = "≥", ne = "≠", approx = "≈", ["in"] = "∈", to = "→",
  infty = "∞", partial = "∂", nabla = "∇", top = "⊤", sim = "∼", pm = "±", ldots = "…", mid = "|", lVert = "‖", rVert = "‖", equiv = "≡",
  propto = "∝", ll = "≪", gg = "≫", leftarrow = "←" }
local large = { sum = "∑", prod = "∏" }
local greek = { alpha = "α", beta = "β", gamma = "γ", delta = "δ", epsilon = "ε", eta = "η", theta = "θ", kappa = "κ", lambda = "λ", mu = "μ",
  nu = "ν", pi = "π", rho = "ρ", sigma = "σ", tau = "τ", phi = "φ", varphi = "φ", psi = "ψ", omega = "ω", Gamma = "Γ", Delta = "Δ", Theta = "Θ",
  Lambda = "Λ", Sigma = "Σ", Phi = "Φ", Omega = "Ω", ell = "ℓ" }
local functions = { log = true, exp = true, min = true, max = true, cos = true, sin = true, tanh = true, clip = true }
local accents = { bar = "¯", hat = "^", tilde = "~" }
local spaces = { [","] = "0.17em", [";"] = "0.28em", quad = "1em", qquad = "2em", [" "] = "0.25em" }

-- The pieces of a text: commands, braces, signs, numbers, letters.
local function pieces_of(s)
  local list, at = {}, 1
  while at <= #s do
    local piece = s:match("^\\%a+", at) or s:match("^\\.", at) or s:match("^%d+%.?%d*", at) or s:match("^[%z\1-\127\194-\244][\128-\191]*", at)
    if not piece then break end
    at = at + #piece
    if not piece:find "^%s$" then list[#list + 1] = piece end
  end
  return list
end

local atom

-- What stands between braces, or one atom.
local function group(pieces, at)
  if pieces[at] ~= "{" then return atom(pieces, at) end
  local out = {}
  at = at + 1
  while pieces[at] and pieces[at] ~= "}" do
    local html
    html, at = mathml.scripted(pieces, at)
    out[#out + 1] = html
  end
  return "<mrow>" .. table.concat(out) .. "</mrow>", at + 1
end

-- The letters between braces, as they are.
local function letters(pieces, at)
  local parts = {}
  at = at + 1
  while pieces[at] and pieces[at] ~= "}" do parts[#parts + 1], at = pieces[at], at + 1 end
  return text.escape(table.concat(parts, "")), at + 1
end

function atom(pieces, at)
  local p = pieces[at]
  local name = p:match "^\\(.+)$"
  if name == "frac" then
    local over, below
    over, at = group(pieces, at + 1)
    below, at = group(pieces, at)
    return ("<mfrac>%s%s</mfrac>"):format(over, below), at
  elseif name == "sqrt" then
    local inner
    inner, at = group(pieces, at + 1)
    return ("<msqrt>%s</msqrt>"):format(inner), at
  elseif name == "mathrm" or name == "text" then
    local word
    word, at = letters(pieces, at + 1)
    return ('<mi mathvariant="normal">%s</mi>'):format(word), at
  elseif accents[name] then
    local inner
    inner, at = group(pieces, at + 1)
    return ('<mover accent="true">%s<mo>%s</mo></mover>'):format(inner, accents[name]), at
  elseif name == "left" or name == "right" then
    local sign = (pieces[at + 1] or "."):gsub("^\\", "")
    return sign == "." and "" or ("<mo stretchy=\"true\">%s</mo>"):format(text.escape(sign)), at + 2
  elseif spaces[name] then return ('<mspace width="%s"/>'):format(spaces[name]), at + 1
  elseif large[name] then return ("<mo>%s</mo>"):format(large[name]), at + 1, true
  elseif functions[name] then return ('<mrow><mi>%s</mi><mspace width="0.17em"/></mrow>'):format(name), at + 1
  elseif greek[name] then return ("<mi>%s</mi>"):format(greek[name]), at + 1
  elseif signs[name] then return ("<mo>%s</mo>"):format(signs[name]), at + 1
  elseif name and name:find "^%a" then errors.fail(("equation: \\%s is not known"):format(name))
  elseif p == "{" then return group(pieces, at)
  elseif p:find "^%d" then return ("<mn>%s</mn>"):format(p), at + 1
  elseif p:find "^%a" or #p > 1 and not name then return ("<mi>%s</mi>"):format(p), at + 1 end
  local sign = name or p == "-" and "−" or p
  return ('<mo%s>%s</mo>'):format(sign:find "^[%(%)%[%]|{}]$" and ' stretchy="false"' or "", text.escape(sign)), at + 1
end

---An atom with what stands at its feet and shoulders.
---@return string html
---@return integer at the next piece
function mathml.scripted(pieces, at)
  local base, next_at, wide = atom(pieces, at)
  local below, above
  at = next_at
  while pieces[at] == "_" or pieces[at] == "^" do
    local sign = pieces[at]
    if sign == "_" and below or sign == "^" and above then errors.fail(("equation: a second %s"):format(sign)) end
    if not pieces[at + 1] then errors.fail(("equation: nothing follows %s"):format(sign)) end
    if sign == "_" then below, at = group(pieces, at + 1) else above, at = group(pieces, at + 1) end
  end
  local kind = wide and "munder" or "msub"
  if below and above then return ("<%s>%s%s%s</%s>"):format(wide and "munderover" or "msubsup", base, below, above, wide and "munderover" or "msubsup"), at end
  if below then return ("<%s>%s%s</%s>"):format(kind, base, below, kind), at end
  if above then return ("<%s>%s%s</%s>"):format(wide and "mover" or "msup", base, above, wide and "mover" or "msup"), at end
  return base, at
end

---An equation as MathML.
---@param s string LaTeX, without its dollars
---@param block boolean? on a line of its own
---@return string html
function mathml.html(s, block)
  local pieces, out, at = pieces_of(s), {}, 1
  while pieces[at] do
    if pieces[at] == "}" then errors.fail("equation: a } without its {: " .. s) end
    local html
    html, at = mathml.scripted(pieces, at)
    out[#out + 1] = html
  end
  return ('<math%s><mrow>%s</mrow></math>'):format(block and ' display="block"' or "", table.concat(out))
end

local other = { frac = true, sqrt = true, mathrm = true, text = true, left = true, right = true }

---An equation as MathML where all of it is known, so that it is safe to hand it to LaTeX; else nil and a warning: it is shown as text.
---@param s string
---@param block boolean?
---@return string? html
function mathml.known(s, block)
  local html
  local ok, problem = pcall(function()
    local _, opened = s:gsub("\\left%f[%A]", "")
    local _, closed = s:gsub("\\right%f[%A]", "")
    local plain = s:gsub("\\.", "")
    local braces = select(2, plain:gsub("{", "")) == select(2, plain:gsub("}", ""))
    if opened ~= closed or not braces or s:find("^^", 1, true) or s:find "[%%#&%z\1-\8\11-\31~]" then
      errors.fail "equation: unbalanced, or with a sign that has another meaning in LaTeX"
    end
    for name in s:gmatch "\\(%a+)" do
      if not (signs[name] or large[name] or greek[name] or functions[name] or accents[name] or spaces[name] or other[name]) then
        errors.fail(("equation: \\%s is not known"):format(name))
      end
    end
    html = mathml.html(s, block)
  end)
  if not ok then terminal.note(("mneme: warning: %s: shown as text: $%s$"):format(problem.message or problem, s)) end
  return html
end

return mathml
