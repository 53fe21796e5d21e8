// browser.js -- a window of Mneme in a browser: asks for page after page (scenes/view/web_server.c), which painter.js paints, and sends keys and the pointer.
const KEY = 2, PRESS = 3, RELEASE = 4, MOVE = 5, WHEEL = 6, RESIZE = 7;                 // scenes/view/view.h
const KEYS = { ArrowLeft: 256, ArrowRight: 257, ArrowUp: 258, ArrowDown: 259, Home: 260, End: 261, PageUp: 262, PageDown: 263,
  Backspace: 8, Tab: 9, Enter: 13, Escape: 27, Delete: 127 };
const NOTCH = 50, MOST = 64;                     // pixels of a turned wheel; events of a request
const AGAIN = 1000, LATE = 1000, REST = 500;     // ms until the next attempt; that are slow; between two changes of the address

class Window {
  constructor(canvas, status) {
    Object.assign(this, { canvas, status, number: 0, events: [], sending: false, turned: 0, pages: 0, page: null });
    this.token = new URLSearchParams(location.search).get("token");
    addEventListener("keydown", event => this.key(event));
    addEventListener("resize", () => this.resize());
    canvas.addEventListener("contextmenu", event => event.preventDefault());
    canvas.addEventListener("pointerdown", event => {
      canvas.setPointerCapture(event.pointerId);
      this.at(PRESS, event.button + 1, event);
    });
    canvas.addEventListener("pointerup", event => this.at(RELEASE, event.button + 1, event));
    canvas.addEventListener("pointermove", event => this.at(MOVE, 0, event));
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      this.turned -= event.deltaY * (event.deltaMode ? NOTCH : 1);
      const steps = Math.trunc(this.turned / NOTCH);
      this.turned -= steps * NOTCH;
      if (steps) this.at(WHEEL, steps, event);
    }, { passive: false });
    addEventListener("hashchange", () => this.go());
    this.go();
    this.resize();
    this.follow();
  }
  ask(path, more = {}) { return fetch(path, { ...more, headers: { "X-Token": this.token }, cache: "no-store", signal: AbortSignal.timeout(60000) }); }
  say(text) { this.status.textContent = text; this.status.hidden = !text; }

  // ---- to the program ----

  send(...event) {
    const last = this.events[this.events.length - 1];
    if (event[0] === MOVE && last && last[0] === MOVE) this.events.pop();
    this.events.push(event);
    if (!this.sending) this.post();
  }
  async post() {
    this.sending = true;
    while (this.events.length) {
      const body = this.events.splice(0, MOST).map(event => event.join(" ") + "\n").join("");
      const begun = performance.now();
      try { await this.ask("events", { method: "POST", body }); } catch { this.events = []; }          // follow() says what is wrong
      this.answered = performance.now() - begun;
      if (this.answered > LATE) this.tell(this.answered);
    }
    this.sending = false;
  }
  tell(late) { this.say(late > LATE ? `A slow connection: ${(late / 1000).toFixed(1)} s for a page.` : ""); }
  // Show the moment that the address names; and have it name the one that is shown: while an episode plays, every half a second.
  go() {
    const wanted = location.hash.slice(1);
    if (wanted && wanted !== this.address) this.ask("address", { method: "POST", body: wanted }).catch(() => {});
  }
  name(address = "") {
    this.address = address;
    this.naming ||= setTimeout(() => {
      this.naming = 0;
      if (location.hash.slice(1) !== this.address) history.replaceState(null, "", "#" + this.address);
    }, REST);
  }
  resize() { const fine = devicePixelRatio || 1; this.send(RESIZE, Math.round(1000 * fine), Math.round(innerWidth * fine), Math.round(innerHeight * fine)); }
  at(kind, by, event) {
    const box = this.canvas.getBoundingClientRect();
    this.send(kind, by, Math.round((event.clientX - box.left) / box.width * this.canvas.width),
      Math.round((event.clientY - box.top) / box.height * this.canvas.height));
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const { key } = event, code = KEYS[key] || (key === "=" ? 43 : key.length === 1 ? key.charCodeAt(0) : 0);          // + without shift
    if (!KEYS[key] && (code < 32 || code > 126)) return;
    event.preventDefault();
    this.send(KEY, code, 0, 0);
  }

  // ---- from the program ----

  async follow() {
    let lost = false, next = null;
    for (;;) {
      await new Promise(requestAnimationFrame);                 // a page that nobody sees asks for nothing
      try {
        const answer = await (next || this.ask("page?after=" + this.number)), begun = performance.now();
        next = null;
        if (answer.status === 410 || answer.status === 403) return this.say(answer.status === 410 ? "The program has ended." :
          "Another program answers here: open the link that it printed.");
        if (!answer.ok) throw new Error(answer.status);
        if (lost) { lost = false; this.resize(); }
        if (answer.status === 200) {
          const page = new Uint8Array(await answer.arrayBuffer());
          this.number = +answer.headers.get("X-Page");
          next = this.ask("page?after=" + this.number);         // which is drawn there while this one is painted here
          next.catch(() => {});
          this.show(unpack(page));
        }
        this.tell(Math.max(performance.now() - begun, this.answered || 0));
      } catch {
        lost = true;
        next = null;
        this.say("No connection to the program; trying again …");
        await new Promise(done => setTimeout(done, AGAIN));
      }
    }
  }
  show(data) {
    const { canvas } = this, fine = devicePixelRatio || 1, fit = Math.min(1, innerWidth * fine / data.width, innerHeight * fine / data.height);
    const set = (of, key, value) => { if (of[key] !== value) of[key] = value; };          // what is set anew is laid out anew, even if it is the same
    set(canvas, "width", data.width); set(canvas, "height", data.height);
    set(canvas.style, "width", data.width * fit / fine + "px"); set(canvas.style, "height", data.height * fit / fine + "px");
    set(document, "title", data.title);
    if (this.theme !== data.theme) document.body.style.background = data.themes[this.theme = data.theme].page;
    paint(canvas.getContext("2d", { alpha: false }), data, 0, data.theme);
    Object.assign(this, { page: data, pages: this.pages + 1 });
    this.name(data.address);
  }
}

addEventListener("DOMContentLoaded", () => { window.mneme = new Window(document.querySelector("canvas"), document.querySelector("p")); });
