// The atlas: search by processor, and one or two machines on one scale. Data come as scripts, which a browser loads
// from a disk, too.
const atlas = { cards: new Map(), add(id, card) { this.cards.set(id, card); draw(); } };
const search = document.getElementById("search");
const boxes = [...document.querySelectorAll("#machines input[type=checkbox]")];
let shown = []; // ids, the oldest first

search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/);
  for (const row of document.querySelectorAll("#machines tbody tr")) {
    row.hidden = !words.every((word) => row.dataset.name.includes(word));
  }
});
for (const box of boxes) box.addEventListener("change", () => choose(box));

function choose(box) {
  shown = shown.filter((id) => id !== box.value);
  if (box.checked) shown = [...shown, box.value].slice(-2);
  for (const each of boxes) each.checked = shown.includes(each.value);
  location.hash = shown.join("+");
  load();
}

function load() {
  for (const id of shown.filter((id) => !atlas.cards.has(id))) {
    const script = document.createElement("script");
    script.src = `machines/${id}.js`;
    document.body.append(script);
  }
  draw();
}

// Values from 2 % to 98 % of all that are shown: one slow pair must not take the colors from the others.
function limits(cards) {
  const values = cards.flatMap((card) => card.matrix.tenths_ns.filter((tenths) => tenths >= 0)).sort((a, b) => a - b);
  return [values[Math.floor(0.02 * (values.length - 1))], values[Math.ceil(0.98 * (values.length - 1))]];
}

function color(share) {
  const place = Math.min(Math.max(share, 0), 1) * (colors.length - 1);
  const first = Math.min(Math.floor(place), colors.length - 2);
  const channels = [1, 3, 5].map((at) => {
    const [a, b] = [first, first + 1].map((index) => parseInt(colors[index].slice(at, at + 2), 16));
    return Math.round(a + (b - a) * (place - first));
  });
  return `rgb(${channels.join(",")})`;
}

function draw() {
  const cards = shown.map((id) => atlas.cards.get(id)).filter((card) => card && card.matrix);
  const views = document.getElementById("views");
  const scale = document.getElementById("scale");
  views.replaceChildren();
  scale.hidden = cards.length === 0;
  if (cards.length === 0) return;
  const [low, high] = limits(cards);
  for (const card of cards) views.append(figure(card, low, high));
  document.getElementById("low").textContent = `${low / 10} ns `;
  document.getElementById("high").textContent = ` ${high / 10} ns`;
  const bar = scale.querySelector("canvas");
  const context = bar.getContext("2d");
  for (let x = 0; x < bar.width; x++) {
    context.fillStyle = color(x / (bar.width - 1));
    context.fillRect(x, 0, 1, bar.height);
  }
}

function figure(card, low, high) {
  const { places, tenths_ns: tenths, operation, home } = card.matrix;
  const size = places.cpus.length;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  let at = 0;
  for (let row = 0; row < size; row++) {
    for (let column = row + 1; column < size; column++, at++) {
      if (tenths[at] < 0) continue;
      context.fillStyle = color((tenths[at] - low) / Math.max(high - low, 1));
      context.fillRect(column, row, 1, 1);
      context.fillRect(row, column, 1, 1);
    }
  }
  const out = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.textContent = `${card.processor.name}: ${operation}, home of the line: ${home || "unknown"}`;
  canvas.title = "move over it for values";
  canvas.addEventListener("mousemove", (event) => {
    const [a, b] = [event.offsetY, event.offsetX].map((offset) => Math.floor((offset / canvas.clientWidth) * size));
    const [row, column] = [Math.min(a, b), Math.max(a, b)];
    if (row === column || row < 0 || column >= size) return;
    const value = tenths[row * size - (row * (row + 1)) / 2 + (column - row - 1)];
    canvas.title = `CPU ${places.cpus[row]} and ${places.cpus[column]}: ${value < 0 ? "not measured" : `${value / 10} ns`}`;
  });
  out.append(caption, canvas);
  return out;
}

shown = location.hash.slice(1).split("+").filter((id) => boxes.some((box) => box.value === id)).slice(0, 2);
for (const box of boxes) box.checked = shown.includes(box.value);
load();
