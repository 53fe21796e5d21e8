// record_painter.js -- node record_painter.js PAINTER.js PAGE.html THEME: what painter.js draws of each step, a line of JSON each, on a canvas that
// notes every call with the styles that it is drawn in; then what it says under each point of stdin, "step x y" a line.
const fs = require("fs"), [painter, page, theme] = process.argv.slice(2), { read, paint, under } = require(painter);
function canvas() {
  const calls = [], g = { canvas: null, calls };
  for (const name of ["fillRect", "strokeRect", "beginPath", "arc", "fill", "moveTo", "lineTo", "stroke", "save", "restore", "translate", "rotate", "fillText"])
    g[name] = (...args) => { calls.push([name, ...args, ...(name === "fillText" ? [g.fillStyle, g.font] : name.startsWith("fill") ? [g.fillStyle] :
      name.startsWith("stroke") ? [g.strokeStyle, g.lineWidth, g.lineCap] : [])]); };
  g.stroke = () => {                                             // the lines of a path one by one, as if each had been drawn alone
    const path = calls.splice(calls.findLastIndex(call => call[0] === "beginPath")).slice(1);
    path.forEach((call, i) => {
      if (call[0] === "lineTo") calls.push(["beginPath"], ["moveTo", ...path[i - 1].slice(1)], call, ["stroke", g.strokeStyle, g.lineWidth, g.lineCap]);
    });
  };
  g.createImageData = (cols, rows) => ({ data: new Uint8ClampedArray(4 * cols * rows) });
  g.putImageData = image => { g.image = image; };
  g.drawImage = (small, ...box) => {
    calls.push(["drawImage", small.width, small.height, ...box, Array.from(small.g.image.data).filter((_, i) => i % 4 < 3)]);
  };
  return { g, getContext: () => g };
}
global.document = { createElement: canvas };
const text = fs.readFileSync(page, "utf8").match(/class="mn-data">([^<]*)</)[1];
read(text).then(data => {
  for (let step = 0; step < data.pages.length; step++) {
    const { g } = canvas();
    paint(g, data, step, theme);
    console.log(JSON.stringify(g.calls));
  }
  for (const line of fs.readFileSync(0, "utf8").trim().split("\n")) {
    if (line) console.log(JSON.stringify(under(data, ...line.split(" ").map(Number))));
  }
});
