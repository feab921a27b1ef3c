// Curves as SVG, which screen readers meet as one image with a text, and which follow the colours of the page.

const WIDTH = 460, HEIGHT = 300, LEFT = 72, RIGHT = 12, TOP = 12, BOTTOM = 46;

const svg = (name, attributes = {}, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

/** Round numbers between two bounds, some five of them. */
function ticks(low, high) {
  const raw = (high - low) / 5 || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i) found.push(i * step);
  return found;
}

/** A number for people: four digits. */
const shown = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "none");

function bounds(values) {
  let low = Math.min(0, ...values), high = Math.max(0, ...values);
  if (low === high) high = low + 1;
  const margin = 0.04 * (high - low);
  return [low < 0 ? low - margin : low, high > 0 ? high + margin : high];
}

/** Draw a curve into an <svg>; `x` and `y` are numbers, with their labels. */
function draw(image, { x, y, xLabel, yLabel, told }) {
  const [xLow, xHigh] = bounds(x), [yLow, yHigh] = bounds(y);
  const across = (value) => LEFT + ((value - xLow) / (xHigh - xLow)) * (WIDTH - LEFT - RIGHT);
  const up = (value) => HEIGHT - BOTTOM - ((value - yLow) / (yHigh - yLow)) * (HEIGHT - TOP - BOTTOM);
  const bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
  const parts = [];
  for (const value of ticks(xLow, xHigh)) {
    const at = across(value);
    parts.push(svg("line", { class: value ? "grid" : "axis", x1: at, x2: at, y1: TOP, y2: bottom }));
    parts.push(svg("text", { x: at, y: bottom + 17, "text-anchor": "middle" }, shown(value)));
  }
  for (const value of ticks(yLow, yHigh)) {
    const at = up(value);
    parts.push(svg("line", { class: value ? "grid" : "axis", x1: LEFT, x2: right, y1: at, y2: at }));
    parts.push(svg("text", { x: LEFT - 7, y: at + 4, "text-anchor": "end" }, shown(value)));
  }
  parts.push(svg("text", { x: (LEFT + right) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, xLabel));
  const middle = (TOP + bottom) / 2;
  const turned = `rotate(-90 15 ${middle})`;
  parts.push(svg("text", { x: 15, y: middle, transform: turned, "text-anchor": "middle" }, yLabel));
  const points = x.map((value, i) => `${across(value).toFixed(2)},${up(y[i]).toFixed(2)}`).join(" ");
  parts.push(svg("polyline", { class: "curve", points }));
  image.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  image.setAttribute("aria-label", told);
  image.replaceChildren(...parts);
}
