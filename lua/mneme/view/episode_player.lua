-- episode_player.lua -- the second half of the script of an episode's page: it reads the data, lays out panels and controls, and follows
-- slider, keys, pointer and clock.  The first half: episode_panels.lua.
return [==[
const SPEEDS = [1, 2, 5, 10, 20, 50];
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const make = (tag, about, ...inside) => {
  const node = document.createElement(tag);
  for (const key in about) { if (key in node && key !== "list") node[key] = about[key]; else node.setAttribute(key, about[key]); }
  node.append(...inside);
  return node;
};
function bytes(text) {
  const raw = atob(text), list = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) list[i] = raw.charCodeAt(i);
  return list;
}

// Drawings from what each changed of the one before, after those that are there.
function film(changes, drawings) {
  let list = [];
  for (const change of changes) {
    if (Array.isArray(change)) list = change;
    else if (change) {
      list = list.slice();
      if (change.cut) list.splice(...change.cut);
      else for (let i = 0; i < change.at.length; i += 2) list[change.at[i]] = change.at[i + 1];
    }
    drawings.push(list);
  }
  return drawings;
}

// One of the variants: tables of its own steps, and of the first variant's before they part.
class Variant {
  constructor(stored, first, data) {
    Object.assign(this, { name: stored.name, from: stored.from, n: stored.n, outcome: stored.outcome, data });
    const before = first || this;
    for (const key of ["policy", "value", "action", "reward", "ret", "norms"])
      this[key] = (first ? first[key].slice(0, this.from) : []).concat(stored[key]);
    this.truth = {};
    for (const name of new Set([...Object.keys(stored.truth), ...Object.keys(first ? first.truth : {})])) {
      const own = stored.truth[name], theirs = first && first.truth[name];
      const part = (x, n) => Array.isArray(x) ? x.slice(0, n) : Array(n).fill(x === undefined ? null : x);
      this.truth[name] = part(theirs, this.from).concat(part(own, this.n - this.from));
    }
    this.world = film(stored.world, first ? first.world.slice(0, this.from) : []);
    const gates = stored.gates.map(bytes), cells = bytes(stored.state), read = bytes(stored.attention), from = this.from;
    this.gate = (i, r, k) => {
      if (k < from) return before.gate(i, r, k);
      const about = data.gates[i];
      return about.lo + gates[i][(k - from) * about.rows.length + r] / 255 * (about.hi - about.lo);
    };
    this.cell = (c, i, k) => {
      if (k < from) return before.cell(c, i, k);
      const byte = cells[(k - from) * data.state.size + c.at + i];
      return byte === 0 ? NaN : (byte - 128) / 127;
    };
    const rows = (data.attention.rows || []).length, stride = data.attention.stride, place = {};
    let at = 0;
    for (let k = from; rows && k < this.n; k += stride) { place[k] = at; at += rows * (k + 1); }
    this.attention = (k, r, past) => {
      if (k < from) return before.attention(k, r, past);
      const kept = k - (k - from) % stride;
      if (past > kept) return null;
      const root = read[place[kept] + r * (kept + 1) + past] / 255;
      return root * root;
    };
    this.setUpSeen(stored, before);
  }
  setUpSeen(stored, before) {
    const { seen } = this.data, { from } = this;
    if (!seen || stored.seen === null) return;
    if (seen.as === "drawing") this.drawings = film(stored.seen, before === this ? [] : before.drawings.slice(0, from));
    if (seen.as === "numbers") this.seenAt = (k, i) => k < from ? before.seenAt(k, i) : stored.seen[k - from][i];
    if (seen.as === "bytes") {
      const all = bytes(stored.seen), size = seen.rows * seen.cols;
      this.seenAt = (k, i) => k < from ? before.seenAt(k, i) : seen.lo + all[(k - from) * size + i] / 255 * (seen.hi - seen.lo);
    }
    if (seen.as === "picture") {
      const sheet = new Image(), s = stored.seen;
      this.ready = new Promise(done => { sheet.onload = sheet.onerror = done; });
      sheet.src = "data:image/png;base64," + s.png;
      this.picture = (g, k, b) => {
        if (k < from) return before.picture(g, k, b);
        g.imageSmoothingEnabled = false;
        g.drawImage(sheet, (k - from) % s.wide * s.cols, Math.floor((k - from) / s.wide) * s.rows, s.cols, s.rows, b.x, b.y, b.w, b.h);
      };
    }
  }
  clip(k) { return Math.min(k, this.n - 1); }
}

class Episode {
  constructor(root) {
    this.root = root;
    this.data = JSON.parse(root.querySelector("script").textContent);
    const { data } = this;
    this.variants = [];
    data.variants.forEach(v => this.variants.push(new Variant(v, v.from > 0 ? this.variants[0] : null, data)));
    this.length = Math.max(...this.variants.map(v => v.n));
    this.last = Math.max(...this.variants.map(v => v.n + (v.outcome ? 1 : 0))) - 1;       // the end has a place of its own
    this.step = limit(data.open, 0, this.last);
    this.mode = 0; this.playing = false; this.due = 0;
    this.theme = new Theme(root);
    this.build();
    this.show();
    this.variants.forEach(v => v.ready && v.ready.then(() => this.show()));
  }
  has(f) { return this.variants.some(f); }
  // The variants that are drawn: one, or both for their difference.
  shown() { return this.mode < this.variants.length ? [this.variants[this.mode]] : this.variants; }

  // ---- words ----
  ended(v) { return v.outcome && this.step >= v.n; }
  outcome(v) {
    const o = v.outcome;
    if (!o) return "";
    return (o.score === null ? "" : o.score >= 1 ? "solved, " : "score " + show(o.score, 2) + ", ") + "return " + show(o.ret, 2) + ", " + o.length + " steps";
  }
  facts() { return this.shown().map(v => this.ended(v) ? "end: " + this.outcome(v) : "").filter(x => x).join(" | "); }
  truth() {
    const names = Object.keys(this.variants[0].truth).slice(0, 12);
    return names.length ? names.map(name => name + " " + told(this, v => v.truth[name][v.clip(this.step)], x => x === null ? "–" : String(x))).join(", ") :
      "the environment states no facts";
  }
  sentence() {
    const parts = this.shown().map(v => {
      if (this.ended(v)) return (v.name ? v.name + ": " : "") + "end, " + this.outcome(v);
      const k = v.clip(this.step), a = v.action[k], p = a === null ? null : (v.policy[k] || [])[a];
      return (v.name ? v.name + ": " : "") + [a === null ? "" : this.data.actions[a] + (p === null || p === undefined ? "" : " with " + percent(p)),
        v.value[k] === null ? "" : "value " + show(v.value[k], 2), "return so far " + show(v.ret[k], 2)].filter(x => x).join(", ");
    });
    return "step " + Math.min(this.step, this.length - 1) + " of " + (this.length - 1) + " – " + parts.join(" | ");
  }
  // Since which step the variants differ.
  parting() {
    const [a, b] = this.variants;
    for (let k = 0; k < Math.min(a.n, b.n); k++)
      if (a.action[k] !== b.action[k] || a.value[k] !== b.value[k] || a.reward[k] !== b.reward[k] || a.world[k].join() !== b.world[k].join()) return k;
    return a.n === b.n ? null : Math.min(a.n, b.n);
  }

  // ---- the page ----
  build() {
    const { root, data } = this;
    const button = (text, label, f) => make("button", { type: "button", textContent: text, title: label, "aria-label": label, onclick: f });
    const to = step => () => { this.pause(); this.go(step()); };
    this.play = button("▶", "play or pause (space)", () => this.toggle());
    this.slider = make("input", { type: "range", min: 0, max: this.last, step: 1, value: this.step, "aria-label": "step",
      oninput: () => { this.pause(); this.go(+this.slider.value); } });
    this.speed = make("select", { title: "steps per second", "aria-label": "steps per second" },
      ...SPEEDS.map(s => make("option", { value: s, textContent: s + "/s" })));
    this.speed.value = calm.matches ? 1 : 5;
    this.say = make("p", { className: "mn-say", role: "status" });
    this.controls = make("div", { className: "mn-controls" },
      button("❚◀", "first step (Home)", to(() => 0)), button("◁", "previous step (←)", to(() => this.step - 1)), this.play,
      button("▷", "next step (→)", to(() => this.step + 1)), this.slider, this.speed);
    const rows = [this.controls];
    if (this.variants.length > 1) {
      const names = this.variants.map(v => v.name).concat("difference"), group = root.id + "-variant";
      this.choices = names.map((name, i) => make("input", { type: "radio", name: group, value: i, checked: i === this.mode, onchange: () => this.choose(i) }));
      const parts = this.parting();
      rows.push(make("fieldset", { className: "mn-variants" }, make("legend", { textContent: "the same episode" }),
        ...names.map((name, i) => make("label", {}, this.choices[i], " " + name + " ", make("kbd", { textContent: i + 1 }))),
        make("span", { className: "mn-dim", textContent: parts === null ? "identical" : "differ since step " + parts })));
    }
    this.panels = panelsOf(this).map(p => this.frame(p));
    this.tip = make("div", { className: "mn-tip", role: "tooltip", hidden: true });
    const all = make("div", { className: "mn-panels" }, ...this.panels.map(p => p.node));
    root.querySelector(".mn-body").replaceChildren(...rows, this.say, all, this.help(), this.tip);
    root.addEventListener("keydown", event => this.key(event));
    const again = () => { this.theme = new Theme(root); this.show(); };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    new ResizeObserver(() => this.show()).observe(root);
  }
  help() {
    const keys = [["space", "play or pause"], ["← →", "one step"], ["PgUp PgDn", "ten steps"], ["Home End", "first, last step"]];
    if (this.variants.length > 1) keys.push(["1 2 3", "one variant, the other, their difference"]);
    if (this.root.classList.contains("mn-alone")) keys.push(["t", "dark or light"]);
    keys.push(["Tab ↑ ↓", "a panel, and a row in it"], ["click", "go to a step"]);
    return make("p", { className: "mn-dim mn-help" }, ...keys.flatMap(([k, what]) => [make("kbd", { textContent: k }), " " + what + "   "]));
  }
  // A panel's frame: title, note, drawing; it can be focused, and says the value under the pointer or the row chosen by keys.
  frame(panel) {
    panel.heading = make("span", { className: "mn-note" });
    panel.node = make("figure", { className: "mn-panel" + (panel.wide ? " mn-wide" : ""), "data-panel": panel.name },
      make("figcaption", { title: panel.define }, make("b", { textContent: panel.title }), " ", panel.heading));
    if (panel.text) { panel.node.append(make("p", { className: "mn-dim", textContent: panel.text })); return panel; }
    panel.canvas = make("canvas", { tabIndex: 0, role: "img" });
    panel.canvas.style.height = panel.height + "px";
    panel.node.append(panel.canvas);
    const spot = event => {
      const b = panel.canvas.getBoundingClientRect();
      return panel.at(event.clientX - b.left, event.clientY - b.top, b.width, b.height);
    };
    panel.canvas.addEventListener("pointermove", event => {
      const s = spot(event);
      this.point(panel, s, event.clientX, event.clientY);
      if (event.buttons === 1 && s.step !== undefined) { this.pause(); this.go(s.step); }
    });
    panel.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    panel.canvas.addEventListener("pointerdown", event => { const s = spot(event); if (s.step !== undefined) { this.pause(); this.go(s.step); } });
    panel.canvas.addEventListener("focus", () => { if (panel.canvas.matches(":focus-visible")) this.tellRow(panel); });
    panel.canvas.addEventListener("blur", () => { this.tip.hidden = true; });
    return panel;
  }
  // The value of a spot next to it, and what the panel shows.
  point(panel, spot, x, y) {
    const where = spot.step === undefined ? Math.min(this.step, this.length - 1) : spot.step;
    const line = text => make("span", { textContent: text });
    this.tip.replaceChildren(make("b", { textContent: panel.tell(spot) }), line("step " + where), line(panel.define));
    this.tip.hidden = false;
    const box = this.tip.getBoundingClientRect();
    this.tip.style.left = limit(x + 14, 4, Math.max(4, innerWidth - box.width - 4)) + "px";
    this.tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18) + "px";
  }
  tellRow(panel) {
    const b = panel.canvas.getBoundingClientRect();
    panel.row = limit(panel.row || 0, 0, Math.max(0, panel.rows - 1));
    this.point(panel, { row: panel.row, step: Math.min(this.step, this.length - 1) }, b.left, b.bottom - 16);
    this.say.textContent = panel.title + ", " + panel.tell({ row: panel.row, step: Math.min(this.step, this.length - 1) });
  }

  // ---- time ----
  go(step) { this.step = limit(step, 0, this.last); this.show(); }
  choose(mode) { this.mode = mode; if (this.choices) this.choices[mode].checked = true; this.show(); }
  pause() { this.playing = false; this.play.textContent = "▶"; this.say.setAttribute("aria-live", "polite"); }
  toggle() {
    if (this.playing) { this.pause(); return this.show(); }
    if (this.step >= this.last) this.step = 0;
    this.playing = true; this.play.textContent = "❚❚";
    this.say.setAttribute("aria-live", "off");
    this.due = performance.now() + 1000 / this.speed.value;
    requestAnimationFrame(now => this.tick(now));
  }
  tick(now) {
    if (!this.playing) return;
    const period = 1000 / this.speed.value;
    if (now >= this.due) {
      const steps = Math.max(1, Math.floor((now - this.due) / period) + 1);
      this.due = now + period;
      this.go(this.step + Math.min(steps, 10));
      if (this.step >= this.last) { this.pause(); this.show(); }
    }
    requestAnimationFrame(t => this.tick(t));
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const panel = this.panels.find(p => p.canvas === document.activeElement), { key, target } = event, onSlider = target === this.slider;
    if (target.tagName === "SELECT" || target.type === "radio" && key.startsWith("Arrow")) return;
    if (target.tagName === "BUTTON" && (key === " " || key === "Enter")) return;
    const to = { ArrowRight: this.step + 1, ArrowLeft: this.step - 1, PageDown: this.step + 10, PageUp: this.step - 10, Home: 0, End: this.last };
    if (key in to) { this.pause(); this.go(to[key]); }
    else if (panel && (key === "ArrowDown" || key === "ArrowUp")) {
      panel.row = limit((panel.row || 0) + (key === "ArrowDown" ? 1 : -1), 0, Math.max(0, panel.rows - 1));
      this.tellRow(panel);
    } else if (onSlider && key.startsWith("Arrow")) return;
    else if (key === " ") this.toggle();
    else if (key >= "1" && key <= "3" && this.choices && this.choices[key - 1]) this.choose(key - 1);
    else if (key === "t" && this.root.classList.contains("mn-alone")) this.turn();
    else if (key === "Escape") { this.tip.hidden = true; return; }
    else return;
    if (panel && key in to && !this.tip.hidden) this.tellRow(panel);
    event.preventDefault();
  }
  turn() {
    const dark = (this.root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    this.root.dataset.theme = document.body.dataset.theme = dark ? "light" : "dark";
    this.theme = new Theme(this.root);
    this.show();
  }
  show() {
    this.slider.value = this.step;
    this.slider.setAttribute("aria-valuetext", "step " + this.step);
    this.root.dataset.step = this.step; this.root.dataset.mode = this.mode;
    this.say.textContent = this.sentence();
    for (const panel of this.panels) {
      if (!panel.canvas) continue;
      if (panel.note) panel.heading.textContent = panel.note();
      const { canvas } = panel, w = canvas.clientWidth, h = canvas.clientHeight, fine = devicePixelRatio || 1;
      if (!w || !h) continue;
      canvas.width = Math.round(w * fine); canvas.height = Math.round(h * fine);
      canvas.setAttribute("aria-label", panel.title + ". " + panel.define);
      const g = canvas.getContext("2d");
      g.scale(fine, fine);
      panel.draw(g, w, h);
    }
  }
}

addEventListener("DOMContentLoaded", () => document.querySelectorAll(".mn-episode").forEach(root => { root.episode = new Episode(root); }));
]==]
