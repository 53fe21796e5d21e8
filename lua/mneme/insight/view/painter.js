// painter.js -- paints the pages of an episode, which lua/mneme/insight/view/episode_data.lua keeps as lists of shapes, on a canvas, and plays them.
// It loads nothing.  A shape is [kind, colour, x, y, w, h, data, more] in hundredths of a pixel; kinds and what the numbers mean: engine/canvas.h.
"use strict";
const RECT = 0, FRAME = 1, DISC = 2, LINE = 3, TRIANGLE = 4, TEXT = 5, HEAT = 6, IMAGE = 7, TIP = 8, GRID = 9, VISIT = 10;
const FONT = 'px "DejaVu Sans","Bitstream Vera Sans",Verdana,sans-serif';          // of the same widths: the window's font
const limit = (x, lo, hi) => Math.max(lo, Math.min(hi, x));

// ---- what is kept ----

// Lists of numbers from columns of differences.
function rowsOf(columns) {
  const rows = Array.from(columns[0], () => []);
  for (const column of columns) column.reduce((sum, x, i) => rows[i][rows[i].length] = sum + x | 0, 0);
  return rows;
}

// From bytes: JSON, a zero, and the bytes of heat maps, images and shapes.  Pages come as changes of the page before.
function unpack(bytes) {
  const end = bytes.indexOf(0), data = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  data.bytes = bytes.subarray(end + 1);
  const [shapes, at] = data.shapes, column = k => new Int32Array(data.bytes.slice(at + 4 * shapes * k, at + 4 * shapes * (k + 1)).buffer);
  data.shapes = rowsOf([0, 1, 2, 3, 4, 5, 6, 7].map(column));
  data.heats = rowsOf(data.heats);
  let page = data.pages[0] ? [] : Array.from(data.shapes.keys()), known = 0;
  if (!data.pages[0]) data.pages = [[]];                          // one page, of all shapes
  data.pages = data.pages.map(change => {
    const next = [];
    let from = 0, place = 0;
    for (let i = 0; i < change.length;) {
      place += change[i];
      const [go, come] = change.slice(i + 1, i + 3);
      for (; from < place; from++) next.push(page[from]);
      i += 3; from += go;
      for (let k = 0; k < come; k++, i++) { const shape = known - change[i]; next.push(shape); known = Math.max(known, shape + 1); }
    }
    return page = next.concat(page.slice(from));
  });
  return data;
}

async function read(text) {
  const packed = Uint8Array.from(atob(text.trim()), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return unpack(new Uint8Array(await new Response(stream).arrayBuffer()));
}

// The value of a cell of a heat map; NaN where there is none, undefined beyond its columns.
function cell(data, heat, row, col) {
  const [rows, cols, tall, wide, least, most, at] = data.heats[heat], lo = data.numbers[least], hi = data.numbers[most];
  if (col >= cols || row >= rows) return undefined;
  const byte = data.bytes[at + Math.floor(row / tall) * Math.ceil(cols / wide) + Math.floor(col / wide)];
  return byte === 0 ? NaN : lo + (byte - 1) / 254 * (hi - lo);
}

// ---- colours ----

const parts = c => [1, 3, 5].map(i => parseInt(c.slice(i, i + 2), 16));
// A colour of the list in a theme: those of the page have names.
function ink(data, number, theme) {
  const known = (data.inks ||= {})[theme] ||= [];
  if (known[number]) return known[number];
  const [name, alpha] = data.colours[number], rgb = parts(name[0] === "#" ? name : data.themes[theme][name]);
  return known[number] = alpha === 255 ? `rgb(${rgb})` : `rgba(${rgb},${+(alpha / 255).toFixed(4)})`;
}
// The colours of the bytes of a heat map; 0 is no number.
const ramps = new Map();
function ramp(points) {
  const key = points.join();
  if (!ramps.has(key)) {
    ramps.set(key, Array.from({ length: 256 }, (_, byte) => {
      if (byte === 0) return [128, 128, 128];
      const at = (byte - 1) / 254 * (points.length - 1), i = Math.min(Math.floor(at), points.length - 2), a = parts(points[i]), b = parts(points[i + 1]);
      return a.map((x, k) => Math.floor(x + (b[k] - x) * (at - i) + 0.5));
    }));
  }
  return ramps.get(key);
}

// ---- paint ----

let cells;                                                       // a canvas of a pixel a cell; a new one for each grid would cost three times as much
// Cells stretched over a box; where they are smaller than pixels, a pixel has their mean.  `color` of a list of cells.
function stretch(g, cols, rows, color, x, y, w, h, fine) {
  const left = Math.round(x), top = Math.round(y), wide = Math.round(x + w) - left, high = Math.round(y + h) - top;
  const across = limit(Math.round(wide * fine), 1, cols), down = limit(Math.round(high * fine), 1, rows);
  cells ||= document.createElement("canvas");
  cells.width = across; cells.height = down;
  const s = cells.getContext("2d"), image = s.createImageData(across, down), alone = across === cols && down === rows, one = [0];
  for (let r = 0, i = 0; r < down; r++) {
    const r0 = Math.floor(r * rows / down), r1 = Math.floor((r + 1) * rows / down);
    for (let c = 0; c < across; c++, i += 4) {
      image.data[i + 3] = 255;
      if (alone) {
        one[0] = i / 4;
        [image.data[i], image.data[i + 1], image.data[i + 2]] = color(one);
        continue;
      }
      const c0 = Math.floor(c * cols / across), c1 = Math.floor((c + 1) * cols / across), under = [];
      for (let y1 = r0; y1 < r1; y1++) for (let x1 = c0; x1 < c1; x1++) under.push(y1 * cols + x1);
      [image.data[i], image.data[i + 1], image.data[i + 2]] = color(under);
    }
  }
  s.putImageData(image, 0, 0);
  g.imageSmoothingEnabled = false;
  g.drawImage(cells, left, top, wide, high);
}
const mean = (list, of) => list.reduce((sum, i) => sum + of(i), 0) / list.length;

function paintShape(g, data, shape, theme, fine) {
  const [kind, color, ...numbers] = shape, [x, y, w, h, more] = numbers.slice(0, 5).map(v => v / 100), last = shape[7];
  if (kind >= TIP) return;
  if (kind !== HEAT) g.fillStyle = g.strokeStyle = ink(data, color, theme);
  if (kind === RECT) g.fillRect(x, y, w, h);
  else if (kind === FRAME) {
    const t = Math.min(more || 1, Math.min(w, h) / 2);
    g.lineWidth = t; g.lineCap = "butt"; g.strokeRect(x + t / 2, y + t / 2, w - t, h - t);
  } else if (kind === DISC) { g.beginPath(); g.arc(x, y, w, 0, 2 * Math.PI); g.fill(); }
  else if (kind === TRIANGLE) {
    g.save(); g.translate(x + w / 2, y + h / 2); g.rotate(more);
    g.beginPath(); g.moveTo(-w / 2, -h / 2); g.lineTo(w / 2, 0); g.lineTo(-w / 2, h / 2); g.fill(); g.restore();
  } else if (kind === TEXT) {                                    // on whole pixels, in quarters of a size, and never wider than where it was laid out
    g.font = Math.round(4 * h) / 4 + FONT; g.fillText(data.strings[last], x, Math.round(y * fine) / fine, more + 1);
  } else if (kind === HEAT) {
    const [rows, cols, tall, wide, , , at] = data.heats[last], across = Math.ceil(cols / wide);
    const colors = ramp(data.ramps[shape[6]][theme === "light" ? 1 : 0]);
    stretch(g, across, Math.ceil(rows / tall), list => colors[list.some(i => !data.bytes[at + i]) ? 0 : Math.round(mean(list, i => data.bytes[at + i]))],
      x, y, w, h, fine);
  } else if (kind === IMAGE) {
    const [rows, cols, at] = data.images[last];
    stretch(g, cols, rows, list => [0, 1, 2].map(k => mean(list, i => data.bytes[at + 3 * i + k])), x, y, w, h, fine);
  }
}

// Lines in a row that look alike, from shape `i` of a page on, as one path; where they are seen through, each alone.  The first shape after them.
function paintLines(g, data, page, i, theme) {
  const [, color, , , , , thick] = data.shapes[page[i]], most = data.colours[color][1] === 255 ? page.length : i + 1;
  g.strokeStyle = ink(data, color, theme); g.lineWidth = thick / 100 || 1; g.lineCap = g.lineJoin = "round";
  g.beginPath();
  let endX, endY;
  for (; i < most; i++) {
    const [kind, c, x, y, w, h, t] = data.shapes[page[i]];
    if (kind !== LINE || c !== color || t !== thick) break;
    if (x !== endX || y !== endY) g.moveTo(x / 100, y / 100);
    g.lineTo((endX = w) / 100, (endY = h) / 100);
  }
  g.stroke();
  return i;
}

function paint(g, data, step, theme, fine = 1) {
  g.textAlign = "left"; g.textBaseline = "alphabetic"; g.textRendering = "geometricPrecision";         // as wide as measured
  g.fillStyle = data.themes[theme].page;
  g.fillRect(0, 0, data.width, data.height);
  const page = data.pages[step];
  for (let i = 0; i < page.length;) {
    if (data.shapes[page[i]][0] === LINE) i = paintLines(g, data, page, i, theme);
    else paintShape(g, data, data.shapes[page[i++]], theme, fine);
  }
}

// ---- the pointer ----

const show = x => x !== x ? "NaN" : String(Math.abs(x) >= 1e4 || x !== 0 && Math.abs(x) < 1e-3 ? x.toPrecision(2) : +x.toPrecision(2)).replace("-", "−");

function wordsOf(data, shape, across, down) {
  const [kind, heat, , , , , root, more] = shape;
  if (kind === TIP) return data.strings[more];
  const [cols, tall, wide, ...words] = data.lists[more], wideBlocks = Math.ceil(cols / wide), rows = Math.ceil(words.length / wideBlocks);
  const col = Math.min(cols - 1, Math.floor(across * cols)), row = Math.floor(down * rows * tall);
  const text = words[limit(Math.floor(row / tall), 0, rows - 1) * wideBlocks + Math.floor(col / wide)];
  if (text < 0) return undefined;
  const said = data.strings[text], value = said.endsWith(" ") && heat >= 0 ? cell(data, heat, row, col) : undefined;
  return said.endsWith(" ") ? said + (value === undefined ? "not there yet" : show(root ? value * value : value)) : said;
}

// What is under a point: words for the pointer, and the step that it leads to.
function under(data, step, px, py) {
  const found = {}, shapes = data.pages[step].map(number => data.shapes[number]).reverse();
  for (const shape of shapes) {
    const [x, y, w, h] = shape.slice(2, 6).map(v => v / 100), across = (px - x) / w, down = (py - y) / h;
    if (shape[0] < TIP || !(across >= 0 && across < 1 && down >= 0 && down < 1)) continue;
    if (shape[0] === VISIT) {
      if (found.step === undefined) found.step = Math.floor(across * shape[7] - (shape[6] ? 0.5 : 0) + 0.5);
    } else if (found.words === undefined) found.words = wordsOf(data, shape, across, down);
  }
  return found;
}

// ---- the player ----

function make(tag, fields, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(fields)) if (key.includes("-")) node.setAttribute(key, value); else node[key] = value;
  node.append(...children);
  return node;
}

class Player {
  constructor(root, data) {
    Object.assign(this, { root, data, step: data.open, last: data.pages.length - 1, playing: false, due: 0 });
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.alone = root.classList.contains("mn-alone");
    const button = (text, label, f) => make("button", { type: "button", textContent: text, title: label, "aria-label": label, onclick: f });
    const to = step => () => { this.pause(); this.go(step()); };
    this.play = button("▶", "play or pause (space)", () => this.toggle());
    this.slider = make("input", { type: "range", min: 0, max: this.last, step: 1, "aria-label": "step",
      oninput: () => { this.pause(); this.go(+this.slider.value); } });
    this.speed = make("select", { title: "steps per second", "aria-label": "steps per second" },
      ...[0.5, 1, 2, 5, 10, 20, 50].map(s => make("option", { value: s, textContent: s + "/s" })));
    this.speed.value = matchMedia("(prefers-reduced-motion: reduce)").matches ? 1 : 5;
    this.say = make("p", { className: "mn-say", role: "status" });
    this.canvas = make("canvas", { role: "img", tabIndex: 0 });
    this.tip = make("div", { className: "mn-tip", role: "tooltip", hidden: true });
    const keys = [["space", "play or pause"], ["← →", "one step"], ["PgUp PgDn", "ten steps"], ["Home End", "first, last step"],
      ...this.alone ? [["t", "dark or light"]] : [], ["pointer", "what a part is"], ["click", "on a curve: go to a step"]];
    root.querySelector(".mn-body").replaceChildren(
      make("div", { className: "mn-controls" }, button("❚◀", "first step (Home)", to(() => 0)),
        button("◁", "previous step (←)", to(() => this.step - 1)),
        this.play, button("▷", "next step (→)", to(() => this.step + 1)), this.slider, this.speed),
      this.say, make("div", { className: "mn-scroll" }, this.canvas),
      make("p", { className: "mn-dim mn-help" }, ...keys.flatMap(([k, what]) => [make("kbd", { textContent: k }), " " + what + "   "])), this.tip);
    const at = event => {
      const b = this.canvas.getBoundingClientRect();
      return under(data, this.step, (event.clientX - b.left) / b.width * data.width, (event.clientY - b.top) / b.height * data.height);
    };
    this.canvas.addEventListener("pointermove", event => this.point(at(event), event));
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("pointerdown", event => {
      const found = at(event);
      this.point(found, event);
      if (found.step !== undefined) { this.pause(); this.go(found.step); }
    });
    root.addEventListener("keydown", event => this.key(event));
    this.dark.addEventListener("change", () => this.show());
    new ResizeObserver(() => this.show()).observe(this.canvas);
    this.show();
  }
  theme() { return this.root.dataset.theme || (document.body.dataset.theme || (this.dark.matches ? "dark" : "light")); }
  point(found, event) {
    this.tip.hidden = found.words === undefined;
    if (this.tip.hidden) return;
    this.tip.textContent = found.words;
    const box = this.tip.getBoundingClientRect(), { clientX: x, clientY: y } = event;
    this.tip.style.left = limit(x + 14, 4, Math.max(4, innerWidth - box.width - 4)) + "px";
    this.tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18) + "px";
  }
  go(step) { this.step = limit(step, 0, this.last); this.tip.hidden = true; this.show(); }
  pause() { this.playing = false; this.play.textContent = "▶"; this.say.setAttribute("aria-live", "polite"); }
  toggle() {
    if (this.playing) return this.pause();
    if (this.step >= this.last) this.go(0);
    this.playing = true; this.play.textContent = "❚❚";
    this.say.setAttribute("aria-live", "off");
    this.due = performance.now() + 1000 / this.speed.value;
    requestAnimationFrame(now => this.tick(now));
  }
  tick(now) {
    if (!this.playing) return;
    if (now >= this.due) {
      const period = 1000 / this.speed.value, steps = limit(Math.floor((now - this.due) / period) + 1, 1, 10);
      this.due = now + period;
      this.go(this.step + steps);
      if (this.step >= this.last) this.pause();
    }
    requestAnimationFrame(t => this.tick(t));
  }
  key(event) {
    const { key, target } = event, onButton = target.tagName === "BUTTON" && (key === " " || key === "Enter");
    if (event.ctrlKey || event.metaKey || event.altKey || target.tagName === "SELECT" || onButton) return;
    const to = { ArrowRight: this.step + 1, ArrowLeft: this.step - 1, PageDown: this.step + 10, PageUp: this.step - 10, Home: 0, End: this.last };
    if (key in to) { this.pause(); this.go(to[key]); }
    else if (key === " ") this.toggle();
    else if (key === "t" && this.alone) {
      this.root.dataset.theme = document.body.dataset.theme = this.theme() === "dark" ? "light" : "dark";
      this.show();
    } else if (key === "Escape") { this.tip.hidden = true; return; }
    else return;
    event.preventDefault();
  }
  show() {
    const { canvas, data } = this, w = canvas.clientWidth, fine = (devicePixelRatio || 1) * w / data.width, text = data.steps[this.step];
    this.root.dataset.step = this.slider.value = this.step;
    this.slider.setAttribute("aria-valuetext", "step " + this.step);
    this.say.textContent = `step ${this.step} of ${this.last} – ${text}`;
    canvas.setAttribute("aria-label", this.say.textContent);
    if (!w) return;
    canvas.width = Math.round(data.width * fine); canvas.height = Math.round(data.height * fine);
    const g = canvas.getContext("2d");
    g.scale(fine, fine);
    paint(g, data, this.step, this.theme(), fine);
  }
}

if (typeof module !== "undefined") module.exports = { read, unpack, paint, under };           // in a test
else addEventListener("DOMContentLoaded", () => document.querySelectorAll(".mn-episode").forEach(root =>
  read(root.querySelector("script.mn-data").textContent).then(data => { root.episode = new Player(root, data); })));
