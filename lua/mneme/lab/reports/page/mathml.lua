-- mathml.lua -- turns the LaTeX of equations in authors' texts into MathML, which browsers draw without help: letters, numbers, ^ and _,
-- \frac, \sqrt, accents, \mathrm, Greek letters and the signs below.
local errors = require "mneme.base.errors"
local terminal = require "mneme.base.terminal"
local escape = require("mneme.insight.figures.text").escape

local mathml = {}

-- What each command is, as MathML; of those in `makers` the kind alone.
local commands = { frac = "frac", sqrt = "sqrt", mathrm = "letters", text = "letters", left = "stretched", right = "stretched" }
local function add(form, texts) for name, sign in pairs(texts) do commands[name] = form:format(sign) end end
local large = { sum = "∑", prod = "∏" }
local accents = { bar = "¯", hat = "^", tilde = "~" }
add("accent", accents)
add("<mo>%s</mo>", large)
add("<mo>%s</mo>", { odot = "⊙", otimes = "⊗", oplus = "⊕", cdot = "·", times = "×", le = "≤", ge = "≥", ne = "≠", approx = "≈", ["in"] = "∈",
  to = "→", infty = "∞", partial = "∂", nabla = "∇", top = "⊤", sim = "∼", pm = "±", ldots = "…", mid = "|", lVert = "‖", rVert = "‖", equiv = "≡",
  propto = "∝", ll = "≪", gg = "≫", leftarrow = "←" })
add("<mi>%s</mi>", { alpha = "α", beta = "β", gamma = "γ", delta = "δ", epsilon = "ε", eta = "η", theta = "θ", kappa = "κ", lambda = "λ", mu = "μ",
  nu = "ν", pi = "π", rho = "ρ", sigma = "σ", tau = "τ", phi = "φ", varphi = "φ", psi = "ψ", omega = "ω", Gamma = "Γ", Delta = "Δ", Theta = "Θ",
  Lambda = "Λ", Sigma = "Σ", Phi = "Φ", Omega = "Ω", ell = "ℓ" })
add('<mspace width="%s"/>', { [","] = "0.17em", [";"] = "0.28em", quad = "1em", qquad = "2em", [" "] = "0.25em" })
for name in ("log exp min max cos sin tanh clip"):gmatch "%a+" do
  commands[name] = ('<mrow><mi>%s</mi><mspace width="0.17em"/></mrow>'):format(name)
end

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

local atom, scripted

-- What stands between braces, or one atom.
local function group(pieces, at)
  if pieces[at] ~= "{" then return atom(pieces, at) end
  local out = {}
  local html
  at = at + 1
  while pieces[at] and pieces[at] ~= "}" do
    html, at = scripted(pieces, at)
    out[#out + 1] = html
  end
  return "<mrow>" .. table.concat(out) .. "</mrow>", at + 1
end

-- Commands with arguments, which begin at a place.
local makers = {}
function makers.frac(pieces, at)
  local over, below
  over, at = group(pieces, at)
  below, at = group(pieces, at)
  return ("<mfrac>%s%s</mfrac>"):format(over, below), at
end
function makers.sqrt(pieces, at)
  local inner, after = group(pieces, at)
  return ("<msqrt>%s</msqrt>"):format(inner), after
end
function makers.letters(pieces, at)                      -- those between braces, as they are
  local parts = {}
  at = at + 1
  while pieces[at] and pieces[at] ~= "}" do parts[#parts + 1], at = pieces[at], at + 1 end
  return ('<mi mathvariant="normal">%s</mi>'):format(escape(table.concat(parts))), at + 1
end
function makers.accent(pieces, at, name)
  local inner, after = group(pieces, at)
  return ('<mover accent="true">%s<mo>%s</mo></mover>'):format(inner, accents[name]), after
end
function makers.stretched(pieces, at)
  local sign = (pieces[at] or "."):gsub("^\\", "")
  return sign == "." and "" or ('<mo stretchy="true">%s</mo>'):format(escape(sign)), at + 1
end

function atom(pieces, at)
  local p = pieces[at]
  if not p then errors.raise "the equation ends too early" end
  local name = p:match "^\\(.+)$"
  local known = name and commands[name]
  if makers[known] then return makers[known](pieces, at + 1, name)
  elseif known then return known, at + 1, large[name] ~= nil
  elseif p == "{" then return group(pieces, at)
  elseif p:find "^%d" then return ("<mn>%s</mn>"):format(p), at + 1
  elseif p:find "^%a" or #p > 1 and not name then return ("<mi>%s</mi>"):format(p), at + 1 end
  local sign = name or p == "-" and "−" or p
  return ('<mo%s>%s</mo>'):format(sign:find "^[%(%)%[%]|{}]$" and ' stretchy="false"' or "", escape(sign)), at + 1
end

-- An atom with what stands at its feet and shoulders, and the next place.
function scripted(pieces, at)
  local base, after, wide = atom(pieces, at)
  local below, above
  while pieces[after] == "_" or pieces[after] == "^" do
    local sign = pieces[after]
    if sign == "_" and below or sign == "^" and above then errors.fail(("equation: a second %s"):format(sign)) end
    if not pieces[after + 1] then errors.fail(("equation: nothing follows %s"):format(sign)) end
    if sign == "_" then below, after = group(pieces, after + 1) else above, after = group(pieces, after + 1) end
  end
  if not below and not above then return base, after end
  local kind = (wide and "munder" or "msub")
  if below and above then kind = wide and "munderover" or "msubsup" elseif above then kind = wide and "mover" or "msup" end
  return ("<%s>%s%s%s</%s>"):format(kind, base, below or "", above or "", kind), after
end

---An equation as MathML; an error unless all of it is known, so that it is safe to hand it to LaTeX.
---@param s string LaTeX, without its dollars
---@param block boolean? on a line of its own
function mathml.html(s, block)
  for name in s:gmatch "\\(%a+)" do if not commands[name] then errors.fail(("equation: \\%s is not known"):format(name)) end end
  local plain = s:gsub("\\.", "")
  local function count(of, pattern) return select(2, of:gsub(pattern, "")) end
  if count(s, "\\left%f[%A]") ~= count(s, "\\right%f[%A]") or s:find("^^", 1, true) or s:find "[%%#&%z\1-\8\11\12\14-\31~]" then
    errors.fail "equation: unbalanced, or with a sign that has another meaning in LaTeX"
  end
  local pieces, out, at = pieces_of(s), {}, 1
  local html
  while pieces[at] do
    if pieces[at] == "}" then errors.fail("equation: a } without its {: " .. s) end
    html, at = scripted(pieces, at)
    out[#out + 1] = html
  end
  if count(plain, "{") ~= count(plain, "}") then errors.fail("equation: a { without its }: " .. s) end
  return ('<math%s><mrow>%s</mrow></math>'):format(block and ' display="block"' or "", table.concat(out))
end

---The same of a text that may be none: nil and a warning; it is shown as text.
function mathml.known(s, block)
  local ok, html = pcall(mathml.html, s, block)
  if ok then return html end
  terminal.note(("mneme: warning: %s: shown as text: $%s$"):format(html.message or html, s))
end

return mathml
