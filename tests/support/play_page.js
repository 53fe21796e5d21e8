// play_page.js -- node play_page.js PAGE.html KEY ...: the page's own script with the least of a browser that it needs; after each key a line of JSON:
// the step, whether it plays, the theme and what is said.  "tick": five seconds pass.
const fs = require("fs"), vm = require("vm"), [page, ...keys] = process.argv.slice(2), html = fs.readFileSync(page, "utf8");
const drawing = () => new Proxy({}, { get: (g, k) => k in g ? g[k] :
  k === "createImageData" ? (c, r) => ({ data: new Uint8ClampedArray(4 * c * r) }) : () => {} });
const element = tag => ({ tagName: tag.toUpperCase(), style: {}, dataset: {}, heard: {}, clientWidth: 1000, classList: { contains: () => true },
  setAttribute() {}, append() {}, replaceChildren() {}, addEventListener(name, f) { this.heard[name] = f; }, getContext: drawing,
  getBoundingClientRect: () => ({ left: 0, top: 0, width: 1000, height: 625 }) });
const root = element("section"), body = element("div"), data = { textContent: html.match(/class="mn-data">([^<]*)</)[1] };
root.querySelector = what => what === ".mn-body" ? body : data;
let loaded, frame;
const browser = { document: { createElement: element, body: element("body"), querySelectorAll: () => [root] }, addEventListener: (_, f) => { loaded = f; },
  matchMedia: () => ({ matches: true, addEventListener() {} }), ResizeObserver: class { observe() {} }, requestAnimationFrame: f => { frame = f; },
  devicePixelRatio: 2, innerWidth: 1000, innerHeight: 800, performance, atob, Blob, Response, DecompressionStream, TextDecoder, Uint8Array };
vm.runInContext(html.match(/<script>(\(\(\) => \{\/\/ painter[\s\S]*?)<\/script>/)[1], vm.createContext(browser));
loaded();
const wait = () => root.episode ? keys.forEach(key => {
  const p = root.episode;
  if (key === "tick") frame(performance.now() + 5000);
  else root.heard.keydown({ key, target: p.canvas, preventDefault() {} });
  console.log(JSON.stringify({ step: p.step, last: p.last, playing: p.playing, theme: p.theme(), said: p.say.textContent }));
}) : setTimeout(wait, 10);
wait();
