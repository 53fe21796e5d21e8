-- episode_panels.lua -- the first half of the script of an episode's page: colours, drawing, and the panels.  A panel is
-- { title, define: what it shows, height, note(), draw(g, w, h), at(x, y, w, h) -> a spot, tell(spot) -> its value in words, rows }.
-- A spot is { row, step }; its row may be missing.  The other half: episode_player.lua.
return [==[
"use strict";
const mix = (a, b, t) => a.map((x, i) => Math.round(x + (b[i] - x) * t));
const rgb = c => `rgb(${c[0]},${c[1]},${c[2]})`;
const show = (x, digits) => x === null || x === undefined ? "–" : (Math.abs(x) >= 1e4 || x !== 0 && Math.abs(x) < 1e-3 ? x.toPrecision(3) :
  x.toFixed(digits === undefined ? 3 : digits)).replace("-", "−");
const percent = x => x === null || x === undefined ? "–" : (100 * x).toFixed(x > 0 && x < 0.0995 ? 1 : 0) + " %";
const rowName = r => "layer " + r.layer + (r.head === null ? "" : ", head " + r.head);
const limit = (x, lo, hi) => Math.max(lo, Math.min(hi, x));

// Colours of the page's theme; those of heat maps are the window's: zero is the page's own colour.
class Theme {
  constructor(element) {
    const style = getComputedStyle(element);
    for (const name of ["card", "grid", "line", "text", "dim", "accent", "warm", "good", "bad", "violet", "ground"])
      this[name] = style.getPropertyValue("--mn-" + name).trim();
    const parts = c => [1, 3, 5].map(i => parseInt(c.slice(i, i + 2), 16));
    const card = parts(this.card), light = card[0] + card[1] + card[2] > 384 ? 1 : 0;
    const along = (points, t) => { const at = limit(t, 0, 1) * (points.length - 1), i = Math.min(Math.floor(at), points.length - 2);
      return mix(parts(points[i]), parts(points[i + 1]), at - i); };
    this.one = t => along(ramps[0][light], t);
    this.two = t => along(ramps[1][light], (t + 1) / 2);
    this.blank = parts(this.grid);
  }
}

// Cells of rows x cols in a box; value(row, col): 0 .. 1, or -1 .. 1 in two colours, NaN where there is none.
function heat(g, theme, box, rows, cols, value, two) {
  if (rows < 1 || cols < 1 || box.w < 1 || box.h < 1) return;
  const small = document.createElement("canvas");
  small.width = cols; small.height = rows;
  const image = new ImageData(cols, rows);
  for (let r = 0; r < rows; r++) for (let c = 0; c < cols; c++) {
    const v = value(r, c), color = v !== v ? theme.blank : (two ? theme.two(v) : theme.one(limit(v, 0, 1))), at = 4 * (r * cols + c);
    image.data[at] = color[0]; image.data[at + 1] = color[1]; image.data[at + 2] = color[2]; image.data[at + 3] = 255;
  }
  small.getContext("2d").putImageData(image, 0, 0);
  g.imageSmoothingEnabled = false;
  g.drawImage(small, box.x, box.y, box.w, box.h);
}

// Oblique lines over what was not measured ("?"), and broader ones over what can be read and is not used ("r").
function hatch(g, theme, box, rows, cols, look) {
  const wide = box.w / cols, high = box.h / rows;
  for (const kind of ["?", "r"]) {
    g.save(); g.beginPath();
    for (let r = 0; r < rows; r++) for (let c = 0; c < cols; c++) if (look(r, c) === kind) g.rect(box.x + c * wide, box.y + r * high, wide, high);
    g.clip();
    const [color, thick] = kind === "?" ? [theme.dim, 0.5] : [theme.grid, 2.5];
    for (let x = box.x - box.h; x < box.x + box.w; x += 7) line(g, [[x, box.y + box.h], [x + box.h, box.y]], color, thick);
    g.restore();
  }
}

function label(g, text, x, y, color, align, size, most) {
  g.font = (size || 12) + "px system-ui, sans-serif";
  g.fillStyle = color; g.textAlign = align || "left"; g.textBaseline = "alphabetic";
  if (most === undefined) g.fillText(text, x, y); else g.fillText(text, x, y, most);
}
// The room that names need at the left of a plot in a panel w wide.
const ruler = document.createElement("canvas").getContext("2d");
function roomFor(names, w) {
  ruler.font = "11px system-ui, sans-serif";
  return limit(Math.max(...names.map(name => ruler.measureText(name).width)) + 10, 40, w / 2);
}
function line(g, points, color, width, dash) {
  g.strokeStyle = color; g.lineWidth = width; g.setLineDash(dash || []); g.lineJoin = "round";
  g.beginPath();
  points.forEach((p, i) => i ? g.lineTo(p[0], p[1]) : g.moveTo(p[0], p[1]));
  g.stroke(); g.setLineDash([]);
}

// ---- the environment ----

// An image of a palette, drawn once: columns, and a letter of base64 for each pixel.
const drawnImages = new Map();
function imageOf(palette, cols, pixels) {
  const key = palette + pixels;
  if (drawnImages.has(key)) return drawnImages.get(key);
  const small = document.createElement("canvas"), rows = pixels.length / cols, image = new ImageData(cols, rows);
  const colors = palette.split(" ").map(c => parseInt(c.slice(1), 16));
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (let i = 0; i < pixels.length; i++) {
    const color = colors[letters.indexOf(pixels[i])];
    image.data.set([color >> 16, color >> 8 & 255, color & 255, 255], 4 * i);
  }
  small.width = cols; small.height = rows;
  small.getContext("2d").putImageData(image, 0, 0);
  drawnImages.set(key, small);
  return small;
}

function drawWorld(g, theme, data, shapes, box) {
  g.fillStyle = theme.ground; g.fillRect(box.x, box.y, box.w, box.h);
  const [x0, y0, x1, y1] = data.bounds, s = Math.min(box.w / (x1 - x0), box.h / (y1 - y0)), pixel = 1 / s;
  g.save();
  g.beginPath(); g.rect(box.x, box.y, box.w, box.h); g.clip();
  g.translate(box.x + (box.w - s * (x1 - x0)) / 2 - x0 * s, box.y + (box.h - s * (y1 - y0)) / 2 - y0 * s);
  g.scale(s, s);
  for (const i of shapes) {
    const [kind, color, x, y, w, h, more, text] = data.shapes[i];
    g.fillStyle = g.strokeStyle = color;
    if (kind === 0) g.fillRect(x, y, w, h);
    else if (kind === 1) { const t = Math.max(more, pixel); g.lineWidth = t; g.strokeRect(x + t / 2, y + t / 2, w - t, h - t); }
    else if (kind === 2) { g.beginPath(); g.arc(x, y, Math.abs(w), 0, 7); g.fill(); }
    else if (kind === 3) { g.lineWidth = Math.max(more, pixel); g.lineCap = "round"; g.beginPath(); g.moveTo(x, y); g.lineTo(w, h); g.stroke(); }
    else if (kind === 4) {
      g.save(); g.translate(x + w / 2, y + h / 2); g.rotate(more);
      g.beginPath(); g.moveTo(-w / 2, -h / 2); g.lineTo(w / 2, 0); g.lineTo(-w / 2, h / 2); g.fill(); g.restore();
    } else if (kind === 5) {                            // browsers do not draw letters of less than a pixel
      g.save(); g.translate(x, y); g.scale(h / 100, h / 100); g.font = "100px system-ui, sans-serif"; g.textAlign = "left";
      g.fillText(text, 0, 0); g.restore();
    } else if (kind === 7) { g.imageSmoothingEnabled = false; g.drawImage(imageOf(color, more, text), x, y, w, h); }
  }
  g.restore();
}

// Side by side where two variants are compared: a box for each, and its name.
function twice(g, e, w, h, draw) {
  const list = e.shown(), gap = 12;
  list.forEach((v, i) => {
    const wide = (w - gap * (list.length - 1)) / list.length, x = i * (wide + gap), top = list.length > 1 ? 18 : 0;
    if (top) label(g, v.name, x, 12, e.theme.dim);
    draw(v, { x, y: top, w: wide, h: h - top });
  });
}

function worldPanel(e) {
  const [x0, y0, x1, y1] = e.data.bounds;
  return { title: "environment", name: "world", define: "The environment as it draws itself. The agent sees only its observation.",
    height: limit(900 * (y1 - y0) / (x1 - x0), 180, 320), wide: true,
    note: () => [e.data.shapes_left_out ? "without some of its heat maps and images" : "", e.facts()].filter(x => x).join("; "),
    draw(g, w, h) { twice(g, e, w, h, (v, box) => drawWorld(g, e.theme, e.data, v.world[v.clip(e.step)], box)); },
    at: () => ({}), rows: 0,
    tell: () => e.truth() };
}

// ---- panels over the steps of the episode ----

// The box of the steps, and the step at x.
const plotOf = (w, h, left, bottom) => ({ x: left, y: 4, w: w - left - 6, h: h - 4 - (bottom === undefined ? 20 : bottom) });
const stepAt = (e, plot, x) => limit(Math.floor((x - plot.x) / plot.w * e.length), 0, e.length - 1);
function stepAxis(g, e, plot) {
  const { theme } = e;
  label(g, "step 0", plot.x, plot.y + plot.h + 14, theme.dim, "left", 11);
  label(g, String(e.length - 1), plot.x + plot.w, plot.y + plot.h + 14, theme.dim, "right", 11);
  const bar = (k, color, dash) => {
    const x = plot.x + (k + 0.5) / e.length * plot.w;
    line(g, [[x, plot.y], [x, plot.y + plot.h]], color, 1.5, dash);
  };
  if (e.data.at !== null && e.data.at < e.length) bar(e.data.at, theme.bad, [2, 3]);
  bar(Math.min(e.step, e.length - 1), theme.warm);
}

// A value, or before and after where two variants are compared.
function told(e, of, words) {
  const list = e.shown().map(of);
  return list.length < 2 ? words(list[0]) : words(list[0]) + " → " + words(list[1]);
}

// Lines over steps: each { name, of: (variant, step) -> number or null }.
function linesPanel(e, about) {
  let lo = about.lo, hi = about.hi;
  for (const v of e.variants) for (const one of about.lines) for (let k = 0; k < v.n; k++) {
    const y = one.of(v, k);
    if (y !== null && y !== undefined) { lo = Math.min(lo, y); hi = Math.max(hi, y); }
  }
  const room = 0.12 * (hi - lo || 1);
  if (lo < 0) lo -= room;
  hi += room;
  const colors = ["accent", "warm", "good", "violet", "bad", "dim"];
  return Object.assign({ height: 150, rows: about.lines.length,
    draw(g, w, h) {
      const plot = plotOf(w, h, 44), { theme } = e;
      const y = v => plot.y + plot.h * (1 - (v - lo) / (hi - lo)), x = k => plot.x + (k + 0.5) / e.length * plot.w;
      for (let i = 0; i <= 2; i++) {
        const v = lo + (hi - lo) * i / 2;
        line(g, [[plot.x, y(v)], [plot.x + plot.w, y(v)]], theme.grid, 1);
        label(g, show(v, hi - lo > 20 ? 0 : 2), plot.x - 6, y(v) + 4, theme.dim, "right", 11);
      }
      if (lo < 0) line(g, [[plot.x, y(0)], [plot.x + plot.w, y(0)]], theme.line, 1);
      e.shown().forEach((v, second) => about.lines.forEach((one, i) => {
        const points = [];
        for (let k = 0; k < v.n; k++) { const value = one.of(v, k); if (value !== null && value !== undefined) points.push([x(k), y(value)]); }
        const color = about.lines.length === 1 ? (second ? theme.warm : theme.accent) : theme[colors[i % colors.length]];
        line(g, points, color, 2, second ? [5, 3] : []);
      }));
      let right = plot.x + plot.w;
      for (let i = about.lines.length - 1; i >= 0 && about.lines.length > 1; i--) {
        label(g, about.lines[i].name, right, plot.y + 8, theme[colors[i % colors.length]], "right", 11);
        right -= g.measureText(about.lines[i].name).width + 10;
      }
      stepAxis(g, e, plot);
    },
    at(x, y, w, h) {
      const plot = plotOf(w, h, 44), step = stepAt(e, plot, x), value = hi - (y - plot.y) / plot.h * (hi - lo);
      let row = 0, best = Infinity;
      about.lines.forEach((one, i) => e.shown().forEach(v => {
        const d = Math.abs(one.of(v, v.clip(step)) - value);
        if (d < best) { best = d; row = i; }
      }));
      return { row, step };
    },
    tell(spot) { const one = about.lines[spot.row]; return one.name + ": " + told(e, v => one.of(v, v.clip(spot.step)), show); },
  }, about);
}

// What was measured of the memory at some steps: a value is that of the nearest of these, and none where that one was not measured.
function measuredPanel(e, about) {
  const parts = about.variants.filter(x => !x.why);
  if (!parts.length) return { title: about.title, name: about.name, define: about.define, text: about.variants[0].why };
  const hi = Math.max(...parts.map(x => x.scale));
  const stored = v => about.variants[about.fixed ? 0 : e.variants.indexOf(v)];
  const at = (v, k) => {
    const one = stored(v), c = !one || one.why ? -1 : Math.round((k - one.steps[0]) / one.every);
    return c < 0 || c >= (one.steps || []).length ? -1 : c;
  };
  const look = (v, r, k) => { const c = at(v, k); return c < 0 || !about.fixed && k >= v.n ? "?" : stored(v).looks[r][c]; };
  const of = (v, r, k) => {
    const kind = look(v, r, k);
    return kind === "?" ? null : kind === "n" && e.shown().length < 2 ? 0 : stored(v).values[r][at(v, k)];
  };
  const words = about.words === "percent" ? percent : show;
  const notes = () => e.shown().map(stored).filter((one, i, all) => all.indexOf(one) === i).map(one => one.why || one.note).filter(x => x);
  const panel = rowsPanel(e, { title: about.title, name: about.name, define: about.define, names: about.rows, lo: 0, hi, words, of, look, fixed: about.fixed,
    height: limit(13 * about.rows.length + 30, 90, 280), note: () => ["0 … " + words(hi), ...notes()].join("; ") });
  const tip = (v, spot) => {
    const c = at(v, spot.step);
    return c < 0 ? about.rows[spot.row] + ", step " + spot.step + ": not measured" : stored(v).tips[spot.row][c];
  };
  panel.tell = spot => (about.fixed ? e.shown().slice(0, 1) : e.shown()).map(v => tip(v, spot)).join(" → ");
  return panel;
}

// The largest of the differences between two variants, which sets the colours; worked out once.
function largest(panel, e, of, count, least) {
  if (panel.most === undefined) {
    const [a, b] = e.variants;
    panel.most = least;
    for (let k = 0; k < Math.min(a.n, b.n); k++) for (let i = 0; i < count(k); i++) {
      const d = Math.abs(of(b, i, k) - of(a, i, k));
      if (d > panel.most) panel.most = d;
    }
  }
  return panel.most;
}

// Rows over steps: of(variant, row, step) -> number or null; lo .. hi are the ends of the colours.
function rowsPanel(e, about) {
  const prefix = (about.names.find(name => name !== "all") || "").match(/^(layer \d+, )?/)[0];      // not repeated where all rows have it
  const alike = about.names.every(name => name === "all" || name.startsWith(prefix));
  const names = about.names.map(name => alike && name !== "all" ? name.slice(prefix.length) : name);
  const range = about.note, words = about.words || show;
  const panel = Object.assign({ height: limit(16 * about.names.length + 30, 90, 240), rows: about.names.length, words: show, root: false }, about, {
    note: () => e.shown().length > 1 && !about.fixed ? "difference ±" + words(most()) : range(),
    draw(g, w, h) {
      const plot = plotOf(w, h, roomFor(names, w)), { theme } = e, list = about.fixed ? e.shown().slice(0, 1) : e.shown(), span = about.hi - about.lo || 1;
      const scale = v => v === null || v === undefined ? NaN : about.root ? Math.sqrt(Math.max(0, v)) / Math.sqrt(about.hi) : (v - about.lo) / span;
      heat(g, theme, plot, about.names.length, e.length, (r, k) => {
        if (list.length < 2) return k < list[0].n ? scale(about.of(list[0], r, k)) : NaN;
        if (k >= list[0].n || k >= list[1].n) return NaN;
        return (about.of(list[1], r, k) - about.of(list[0], r, k)) / most();
      }, list.length > 1);
      if (about.look && list.length < 2) hatch(g, theme, plot, about.names.length, e.length, (r, k) => about.look(list[0], r, k));
      const every = Math.max(1, Math.ceil(13 * names.length / plot.h));
      names.forEach((name, r) => {
        if (r % every === 0) label(g, name, 0, plot.y + plot.h * (r + 0.5) / names.length + 4, theme.dim, "left", 11, plot.x - 6);
      });
      stepAxis(g, e, plot);
    },
    at(x, y, w, h) {
      const plot = plotOf(w, h, roomFor(names, w));
      return { row: limit(Math.floor((y - plot.y) / plot.h * about.names.length), 0, about.names.length - 1), step: stepAt(e, plot, x) };
    },
    tell(spot) { return about.names[spot.row] + ": " + told(e, v => spot.step < v.n ? about.of(v, spot.row, spot.step) : null, words); },
  });
  const most = () => largest(panel, e, about.scale || about.of, k => about.names.length * (about.scale ? k + 1 : 1), 1e-3);
  return panel;
}

function valuePanel(e) {
  return linesPanel(e, { title: "value and reward", name: "value",
    define: "The value is the discounted return that the agent expects; the reward is what the action before brought.",
    lo: 0, hi: 1, lines: [{ name: "value", of: (v, k) => v.value[k] }, { name: "reward", of: (v, k) => v.reward[k] }] });
}

function policyPanel(e) {
  const { actions } = e.data;
  const row = (h, n) => Math.min(34, h / n);
  return { title: "policy now", name: "policy", define: "The probability of each action at this step; a triangle marks the one that is taken.",
    height: limit(28 * actions.length, 80, 220), rows: actions.length,
    draw(g, w, h) {
      const { theme } = e, list = e.shown(), high = row(h, actions.length), wide = w - (list.length > 1 ? 184 : 140);
      actions.forEach((name, a) => {
        const y = a * high, bar = high * 0.62 / list.length;
        label(g, name, 16, y + high / 2 + 4, theme.text);
        list.forEach((v, i) => {
          const p = (v.policy[v.clip(e.step)] || [])[a] || 0, top = y + high * 0.19 + i * bar, chosen = v.action[v.clip(e.step)] === a;
          g.fillStyle = theme.grid; g.fillRect(90, top, wide, bar - 1);
          g.fillStyle = list.length > 1 ? (i ? theme.warm : theme.accent) : chosen ? theme.warm : theme.accent;
          g.fillRect(90, top, wide * p, bar - 1);
          if (!chosen) return;
          const left = 2 + 5 * i, middle = y + high / 2;
          g.beginPath(); g.moveTo(left, middle - 4); g.lineTo(left + 7, middle); g.lineTo(left, middle + 4); g.fill();
        });
        label(g, told(e, v => (v.policy[v.clip(e.step)] || [])[a], x => percent(x).replace(" %", "")) + " %", w, y + high / 2 + 4, theme.text, "right", 11);
      });
    },
    at: (x, y, w, h) => ({ row: limit(Math.floor(y / row(h, actions.length)), 0, actions.length - 1) }),
    tell: spot => actions[spot.row] + ": " + told(e, v => (v.policy[v.clip(e.step)] || [])[spot.row], percent) };
}

function policiesPanel(e) {
  return rowsPanel(e, { title: "policy over time", name: "policies", define: "The probability of each action at each step.", names: e.data.actions,
    lo: 0, hi: 1, words: percent, note: () => "0 … 100 %", of: (v, r, k) => (v.policy[k] || [])[r] });
}

function gatePanel(e, i) {
  const gate = e.data.gates[i];
  return rowsPanel(e, { title: "gate " + gate.kind, name: "gate-" + gate.kind,
    define: "Mean of a gate of each head: near 0 closed, near 1 open. In GaLiTe beta writes values and gamma keys; what is written is also what is forgotten.",
    names: gate.rows.map(rowName), lo: gate.lo, hi: gate.hi, note: () => show(gate.lo, 2) + " … " + show(gate.hi, 2),
    of: (v, r, k) => v.gate(i, r, k) });
}

// ---- the memory ----

// The attention of a head at a step: to step `past`, or null.  Of a long episode only some steps are stored.
function attentionPanels(e) {
  const { rows, why, note, stride } = e.data.attention, names = (rows || []).map(rowName);
  if (why) return [{ title: "attention over past steps", name: "attention", define: why, text: why }];
  const sparse = stride > 1 ? `; stored at every ${stride}th step` : "";
  const of = (v, r, past) => v.attention(v.clip(e.step), r, past);
  const all = (v, i, k) => v.attention(k, i % rows.length, Math.floor(i / rows.length));
  let most = 0.05;
  for (const v of e.variants) for (let k = 0; k < v.n; k += stride) for (let r = 0; r < rows.length; r++)
    for (let past = 0; past <= k; past++) most = Math.max(most, v.attention(k, r, past) || 0);
  const scale = () => "0 … " + percent(most) + ", root scale" + sparse + (note ? "; " + note : "");
  const attention = rowsPanel(e, { title: "attention over past steps", name: "attention",
    define: "How the read of each head at this step divides over past steps: attention weights, or for a gated memory the implicit ones " +
      "(q·k times the decay since). Shares of what the head reads, whether it matters or not.",
    names, lo: 0, hi: most, root: true, words: percent, note: scale, of, scale: all });
  return [attention];
}

function normsPanel(e) {
  const lines = [];
  for (let l = 0; l < e.data.layers; l++) lines.push({ name: "layer " + l, of: (v, k) => (v.norms[k] || [])[l] });
  return linesPanel(e, { title: "state norm", name: "norms", define: "L2 norm of the state of each layer: growth, saturation, resets.", lo: 0, hi: 0, lines });
}

function statePanel(e) {
  const { cells, range } = e.data.state, layers = [...new Set(cells.map(c => c.layer))], kinds = Object.keys(range).filter(k => cells.some(c => c.kind === k));
  const heads = Math.max(...cells.map(c => (c.head || 0) + 1)), reduced = cells.some(c => c.down * c.across < c.rows * c.cols);
  const boxes = w => {
    const list = [], wide = (w - 52) / heads, high = 46 * kinds.length + 8;
    cells.forEach(c => {
      const y = 16 + layers.indexOf(c.layer) * high + kinds.indexOf(c.kind) * 46;
      list.push(c.head === null ? { x: 52, y, w: w - 54, h: 42 } : { x: 52 + c.head * wide, y, w: wide - 6, h: 42 });
    });
    return list;
  };
  // vectors are folded into several rows
  const shape = c => { if (c.down > 1 || c.across < 24) return [c.down, c.across]; const r = Math.max(1, Math.floor(Math.sqrt(c.across / 4)));
    return [r, Math.ceil(c.across / r)]; };
  const value = (v, c, i) => v.cell(c, i, v.clip(e.step));
  const most = {};
  const change = c => {                                  // of all heads' state of a kind
    if (!most[c.kind]) most[c.kind] = Math.max(...cells.filter(x => x.kind === c.kind).map(x =>
      largest({}, e, (v, i, k) => v.cell(x, i, k), () => x.down * x.across, 1e-3)));
    return most[c.kind];
  };
  return { title: "memory", name: "state", height: 20 + layers.length * (46 * kinds.length + 8), wide: true, rows: cells.length,
    define: "The recurrent state after this step: a row for each layer, a column for each head" + (reduced ?
      "; of each block of values the one that is farthest from 0." : "."),
    note: () => {
      const two = e.shown().length > 1;
      return (two ? "difference " : "") + kinds.map(k => k + " ±" + show(range[k] * (two ? change({ kind: k }) : 1), 2)).join("   ");
    },
    draw(g, w) {
      const { theme } = e, list = e.shown(), all = boxes(w);
      for (let c = 0; heads > 1 && c < heads; c++) label(g, "head " + c, 52 + c * (w - 52) / heads, 10, theme.dim, "left", 11);
      cells.forEach((c, i) => {
        const b = all[i], [down, across] = shape(c), n = c.down * c.across;
        if (!c.head) label(g, (kinds.indexOf(c.kind) === 0 ? "layer " + c.layer + " " : "") + c.kind, 0, b.y + 24, theme.dim, "left", 11);
        heat(g, theme, b, down, across, (r, k) => {
          const at = r * across + k;
          if (at >= n) return 0;
          return list.length < 2 ? value(list[0], c, at) : (value(list[1], c, at) - value(list[0], c, at)) / change(c);
        }, true);
      });
    },
    at(x, y, w) {
      const all = boxes(w);
      let row = 0, inside = null;
      all.forEach((b, i) => { if (x >= b.x && x < b.x + b.w + 6 && y >= b.y && y < b.y + b.h + 4) {
        row = i; const [down, across] = shape(cells[i]);
        inside = limit(Math.floor((y - b.y) / b.h * down), 0, down - 1) * across + limit(Math.floor((x - b.x) / b.w * across), 0, across - 1);
      } });
      return { row, inside };
    },
    tell(spot) {
      const c = cells[spot.row], n = c.down * c.across, i = spot.inside === null || spot.inside === undefined ? null : Math.min(spot.inside, n - 1);
      const name = rowName(c) + ", " + c.kind + " of " + c.rows + "×" + c.cols;
      if (i === null) return name;
      const beyond = x => x < 0 ? "at most −" : "at least ";
      const words = x => x !== x ? "NaN" : Math.abs(x) >= 1 ? beyond(x) + show(range[c.kind]) : show(x * range[c.kind]);
      return name + ", " + (n < c.rows * c.cols ? "block " : "row, column ") + Math.floor(i / c.across) + "," + i % c.across + ": " +
        told(e, v => value(v, c, i), words);
    } };
}

function seenPanel(e) {
  const seen = e.data.seen;
  if (seen.as === "nothing") return { title: "observation", name: "seen", define: "What the agent receives.",
    text: seen.shape.join("×") + " values a step: too many to be kept in this file" };
  if (seen.as === "drawing") return { title: "observation", name: "seen", height: 150,
    define: "What the agent receives at this step, as the environment draws it.", note: () => seen.shape.join("×") + " codes", at: () => ({}),
    rows: 0, tell: () => "codes, as the environment draws them",
    draw(g, w, h) { twice(g, e, w, h, (v, box) => drawWorld(g, e.theme, seen, v.drawings[v.clip(e.step)], box)); } };
  const groups = seen.groups || [], below = groups.length ? 16 : 0;
  const place = box => {
    const side = Math.min(box.w / seen.cols, box.h / seen.rows);
    if (seen.rows === 1) return { x: box.x, y: box.y, w: box.w, h: box.h - below };
    return { x: box.x + (box.w - side * seen.cols) / 2, y: box.y, w: side * seen.cols, h: side * seen.rows };
  };
  const cell = (v, i) => v.seenAt(v.clip(e.step), i);
  let lo = seen.as === "bytes" ? seen.lo : 0, hi = seen.as === "bytes" ? seen.hi : 1;
  if (seen.as === "numbers") for (const v of e.variants) for (let k = 0; k < v.n; k++) for (let i = 0; i < seen.n; i++) {
    const x = v.seenAt(k, i); lo = Math.min(lo, x); hi = Math.max(hi, x);
  }
  return { title: "observation", name: "seen", define: "What the agent receives at this step, and all that it receives.",
    height: seen.rows === 1 ? 70 + below : 170, rows: seen.as === "picture" ? 0 : seen.rows * seen.cols,
    note: () => seen.shape.join("×") + " values" + (seen.as === "picture" ? "" : ", " + show(lo, 1) + " … " + show(hi, 1)),
    draw(g, w, h) {
      twice(g, e, w, h, (v, box) => {
        if (seen.as === "picture") return v.picture(g, v.clip(e.step), place(box));
        heat(g, e.theme, place(box), seen.rows, seen.cols, (r, c) => lo < 0 ? cell(v, r * seen.cols + c) / Math.max(hi, -lo) :
          (cell(v, r * seen.cols + c) - lo) / (hi - lo || 1), lo < 0);
        groups.forEach((of, k) => {                 // where each begins, and its name where it has room
          const b = place(box), x = b.x + of.from / seen.cols * b.w, wide = of.n / seen.cols * b.w;
          g.fillStyle = e.theme.dim;
          if (k) g.fillRect(Math.round(x), b.y, 1, b.h);
          g.font = "12px system-ui, sans-serif";
          if (g.measureText(of.name).width < wide) label(g, of.name, x + 2, b.y + b.h + 13, e.theme.dim);
        });
      });
    },
    at(x, y, w, h) {
      const list = e.shown(), wide = (w - 12 * (list.length - 1)) / list.length, top = list.length > 1 ? 18 : 0;
      const b = place({ x: 0, y: top, w: wide, h: h - top }), inside = x % (wide + 12);
      return { row: limit(Math.floor((y - b.y) / b.h * seen.rows), 0, seen.rows - 1) * seen.cols +
        limit(Math.floor((inside - b.x) / b.w * seen.cols), 0, seen.cols - 1) };
    },
    tell(spot) {
      if (seen.as === "picture") return "a picture of " + seen.shape.join("×");
      const i = spot.row, where = seen.rows > 1 ? "row " + Math.floor(i / seen.cols) + ", column " + i % seen.cols : (seen.names || [])[i] || "value " + i;
      return where + (seen.parts > 1 ? ", mean of " + seen.parts + " channels" : "") + ": " + told(e, v => cell(v, i), show);
    } };
}

function trailPanel(e) {
  const of = (v, name, k) => { const x = v.truth[name]; return Array.isArray(x) ? x[k] : x; };
  const name = e.variants[0].truth.x !== undefined ? "x" : "position";
  const lines = [{ name, of: (v, k) => of(v, name, k) }];
  if (e.variants[0].truth.y !== undefined) lines.push({ name: "y", of: (v, k) => of(v, "y", k) });
  return linesPanel(e, { title: "trail", name: "trail", define: "Where the agent is at each step.", lo: 0, hi: 1, lines });
}

function panelsOf(e) {
  const { data } = e, list = [worldPanel(e)];
  if (e.has(v => v.policy.some(p => p.length))) list.push(policyPanel(e));
  if (e.has(v => v.value.some(x => x !== null))) list.push(valuePanel(e));
  if (e.has(v => v.policy.some(p => p.length))) list.push(policiesPanel(e));
  if (data.seen) list.push(seenPanel(e));
  if (e.has(v => v.truth.x !== undefined || v.truth.position !== undefined)) list.push(trailPanel(e));
  if (!e.has(v => v.policy.some(p => p.length))) return list;             // a file without internals
  list.push(...data.measures.map(about => measuredPanel(e, about)));
  list.push(...attentionPanels(e));
  data.gates.forEach((_, i) => list.push(gatePanel(e, i)));
  if (data.layers > 0) list.push(normsPanel(e));
  if (data.state.cells.length) list.push(statePanel(e));
  else if (data.state.crowded)
    list.push({ title: "memory", name: "state", define: "The recurrent state.", text: "the state has too many parts to be kept in this file" });
  return list;
}
]==]
