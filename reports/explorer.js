// The explorer of cluster.html: draws the matrices that are in the file, and says what is under the pointer.
"use strict";
(async () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const NOTHING = 65535, LEFT = 84, BOTTOM = 44, RIGHT = 76, LEVEL = 15;
  let TOP = 8; // above the matrix stands a line for each level of parts

  // --- data ---

  // What is made of an entry (a promise) is made once.
  function once(make) {
    const made = new Map();
    return (entry) => {
      if (!made.has(entry)) made.set(entry, make(entry));
      return made.get(entry);
    };
  }

  // A matrix as Float64Array of n x n, NaN where nothing was measured.
  const values = once(async (entry) => {
    const packed = Uint8Array.from(atob(entry.data), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const n = data.machines[entry.machine].cpus.length, count = bytes.length / 2;
    const out = new Float64Array(n * n).fill(NaN);
    let k = 0;
    for (let a = 0; a < n; a++) {
      for (let b = a + 1; b < n; b++, k++) {
        const whole = bytes[k] * 256 + bytes[count + k];
        if (whole !== NOTHING) out[a * n + b] = out[b * n + a] = whole * entry.step;
      }
    }
    return out;
  });

  const kindOf = (entry) => `${entry.measurement}|${entry.home}`;
  const sameKind = (entry, other) => kindOf(entry) === kindOf(other) && entry.machine === other.machine;

  function median(list) {
    const known = list.filter((v) => !Number.isNaN(v)).sort((a, b) => a - b), middle = known.length >> 1;
    return !known.length ? NaN : known.length % 2 ? known[middle] : (known[middle - 1] + known[middle]) / 2;
  }

  // Pair by pair the median over nodes that are the same as their peers (over all, where none is), the node left out.
  const template = once(async (entry) => {
    const same = new Set(data.nodes.filter((row) => row.same).map((row) => row.node));
    const others = data.matrices.filter((other) => other.node !== entry.node && sameKind(other, entry));
    const peers = others.some((other) => same.has(other.node)) ? others.filter((other) => same.has(other.node)) : others;
    const all = await Promise.all(peers.map(values));
    return all.length ? { values: all[0].map((_, i) => median(all.map((of) => of[i]))), count: all.length } : null;
  });

  // --- what is chosen ---

  const titles = new Map(data.matrices.map((m) => [kindOf(m), m.title]));
  const fill = (select, options) => select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  const nodes = [...new Set(data.matrices.map((m) => m.node))];
  fill(byId("of"), nodes.map((node) => [node, node]));
  fill(byId("what"), [...titles]);
  fill(byId("against"), [["", "the fleet"], ...nodes.map((node) => [node, node])]);
  byId("against").closest("label").hidden = nodes.length < 2;
  const flagged = data.nodes.find((row) => row.finding && nodes.includes(row.node));
  if (flagged) byId("of").value = flagged.node;

  const entryOf = (node) => data.matrices.find((m) => m.node === node && kindOf(m) === byId("what").value);

  let area = null; // of the matrix that is shown: first row, first column, rows and columns
  const CHOICES = { node: "of", measurement: "what", against: "against", show: "show", scale: "scale" };

  function permalink() {
    const chosen = new URLSearchParams();
    for (const [name, id] of Object.entries(CHOICES)) chosen.set(name, byId(id).value);
    if (area) chosen.set("area", [area.row, area.column, area.size].join(","));
    byId("link").href = `#explorer?${chosen}`;
  }

  function follow() {
    const [, query] = location.hash.split("?");
    if (!location.hash.startsWith("#explorer") || !query) return;
    const chosen = new URLSearchParams(query);
    for (const [name, id] of Object.entries(CHOICES)) {
      const value = chosen.get(name);
      if (value !== null && [...byId(id).options].some((option) => option.value === value)) byId(id).value = value;
    }
    const [row, column, size] = (chosen.get("area") || "").split(",").map(Number);
    area = size > 0 ? { row, column, size } : null;
    byId("explorer").scrollIntoView();
  }

  // --- drawing ---

  const rgb = (name) => data.palettes[name].match(/../g).map((h) => parseInt(h, 16));
  const palettes = { values: rgb("values"), differences: rgb("differences") };
  let view = null; // what is drawn
  let cursor = null;
  let dragged = null;

  async function draw() {
    const entry = entryOf(byId("of").value);
    if (!entry) { view = null; byId("tip").textContent = "This node has no such matrix."; return; }
    const machine = data.machines[entry.machine], n = machine.cpus.length;
    const own = await values(entry);
    const rival = byId("against").value && entryOf(byId("against").value);
    const found = byId("against").value ? null : await template(entry);
    const other = rival ? (rival.machine === entry.machine ? await values(rival) : null) : found && found.values;
    const mode = other ? byId("show").value : "value";
    byId("show").closest("label").hidden = !other; // nothing to differ from: its values are shown
    const against = rival ? rival.node : found ? `the median of ${found.count} peers` : "";
    let shown = own, palette = "values";
    if (mode === "other") shown = other;
    if (mode === "percent") shown = own.map((v, i) => 100 * (v / other[i] - 1));
    if (mode === "ns") shown = own.map((v, i) => v - other[i]);
    const within = inside(machine);
    byId("scale").closest("label").hidden = !within || mode === "percent" || mode === "ns";
    const narrow = within && !byId("scale").closest("label").hidden && byId("scale").value === "inside";
    const known = [...shown].filter((v, i) => !Number.isNaN(v) && (!narrow || within(Math.floor(i / n), i % n))).sort((a, b) => a - b);
    const end = (q) => known[Math.min(known.length - 1, Math.floor(q * known.length))];
    let [low, high] = known.length ? [end(0.001), end(0.999)] : [0, 1];
    if (mode === "percent" || mode === "ns") {
      const reach = Math.max(mode === "percent" ? 5 : 1, Math.abs(low), Math.abs(high));
      [low, high, palette] = [-reach, reach, "differences"];
    }
    if (area && (area.row + area.size > n || area.column + area.size > n)) area = null;
    view = { entry, machine, own, other, shown, against, n, low, high: high > low ? high : low + 1, palette, mode };
    view.title = mode === "percent" ? `difference from ${against}, %` : mode === "ns" ? `difference from ${against}, ns` : "ns";
    if (narrow) view.title += `, of pairs inside a socket beyond their ${levelsOf(machine)[0]}; all others as the ends`;
    TOP = 8 + LEVEL * levelsOf(machine).length;
    cursor = null;
    paint();
    describe();
    permalink();
    for (const row of byId("list").rows) row.classList.toggle("chosen", row.dataset.node === entry.node);
  }

  // Which pairs are of one socket and of different parts of its finest level; null on machines of one socket or level.
  function inside(machine) {
    const levels = levelsOf(machine);
    const socket = data.labels.indexOf("socket"), finest = machine.components.filter(([level]) => level === levels[0]);
    if (levels.length < 2 || !levels.some((level) => level.split(" = ").includes("socket"))) return null;
    const part = new Map(finest.flatMap(([, start, stop], number) => [...Array(stop - start).keys()].map((k) => [start + k, number])));
    return (a, b) => machine.labels[a][socket] === machine.labels[b][socket] && part.get(a) !== part.get(b);
  }

  function colorOf(v) {
    if (Number.isNaN(v)) return [205, 205, 205];
    const colors = palettes[view.palette], levels = colors.length / 3;
    const at = 3 * Math.min(levels - 1, Math.max(0, Math.floor(((v - view.low) / (view.high - view.low)) * levels)));
    return [colors[at], colors[at + 1], colors[at + 2]];
  }

  // The part of the matrix that is shown, and how large a cell is on the screen.
  function frame() {
    const shown = area || { row: 0, column: 0, size: view.n };
    const room = Math.min(byId("map").parentElement.parentElement.clientWidth, 700) - LEFT - RIGHT;
    return { ...shown, side: Math.max(120, room), cell: Math.max(120, room) / shown.size };
  }

  function picture() {
    const { row, column, size } = frame(), small = document.createElement("canvas");
    small.width = small.height = size;
    const image = new ImageData(size, size);
    for (let r = 0; r < size; r++) {
      for (let c = 0; c < size; c++) {
        const a = row + r, b = column + c;
        image.data.set([...(a === b ? [255, 255, 255] : colorOf(view.shown[a * view.n + b])), 255], 4 * (r * size + c));
      }
    }
    small.getContext("2d").putImageData(image, 0, 0);
    return small;
  }

  function ticks(first, size) {
    const step = [1, 2, 4, 8, 16, 32, 64, 128].find((k) => size / k <= 12) || 256;
    return [...Array(size).keys()].filter((k) => (first + k) % step === 0);
  }

  const levelsOf = (machine) => [...new Set(machine.components.map(([level]) => level))];

  const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;");
  const box = (x, y, width, height, look) => `<rect x="${x}" y="${y}" width="${width}" height="${height}" ${look}/>`;
  const word = (x, y, anchor, text) => `<text x="${x}" y="${y}" text-anchor="${anchor}">${escaped(text)}</text>`;

  // The cells with their parts, names and scale: elements of the SVG on the page and in a file.
  function elements() {
    const { row, column, size, side, cell } = frame(), outlines = [], out = [];
    out.push(`<image href="${picture().toDataURL()}" x="${LEFT}" y="${TOP}" width="${side}" height="${side}" style="image-rendering:pixelated"/>`);
    for (const [, start, stop] of view.machine.components) {
      const [x, y] = [start - column, start - row], w = stop - start;
      if (w === view.n || x + w <= 0 || y + w <= 0 || x >= size || y >= size) continue;
      const [l, t] = [Math.max(0, x), Math.max(0, y)], [r, b] = [Math.min(size, x + w), Math.min(size, y + w)];
      outlines.push(box(LEFT + l * cell, TOP + t * cell, (r - l) * cell, (b - t) * cell, ""));
    }
    for (const pen of ['stroke="#fff" stroke-width="1.6"', 'stroke="#000" stroke-width="0.6"']) out.push(`<g fill="none" ${pen}>`, ...outlines, "</g>");
    levelsOf(view.machine).forEach((level, number) => {
      const y = TOP - 6 - number * LEVEL, parts = view.machine.components.filter((part) => part[0] === level);
      out.push(word(LEFT - 5, y + 3, "end", level));
      let free = -Infinity; // where the last number ends
      for (const [, start, stop, label] of parts) {
        const [l, r] = [Math.max(0, start - column), Math.min(size, stop - column)], middle = LEFT + ((l + r) / 2) * cell;
        if (r <= l) continue;
        out.push(`<path d="M${LEFT + l * cell + 1} ${y + 4}H${LEFT + r * cell - 1}" stroke="#5b6570"/>`);
        const half = 4 * String(label).length;
        if (middle - half > free) { out.push(word(middle, y + 2, "middle", label)); free = middle + half + 2; }
      }
    });
    for (const k of ticks(column, size)) out.push(word(LEFT + (k + 0.5) * cell, TOP + side + 14, "middle", view.machine.cpus[column + k]));
    for (const k of ticks(row, size)) out.push(word(LEFT - 5, TOP + (k + 0.5) * cell + 4, "end", view.machine.cpus[row + k]));
    out.push(word(LEFT + side / 2, TOP + side + 34, "middle", "CPU"), word(2, TOP + side / 2, "start", "CPU"));
    const at = (share) => view.low + share * (view.high - view.low), step = side / 64;
    for (let k = 0; k < 64; k++) out.push(box(LEFT + side + 10, TOP + side - (k + 1) * step, 14, step + 0.5, `fill="rgb(${colorOf(at((k + 0.5) / 64))})"`));
    for (let i = 0; i <= 4; i++) out.push(word(LEFT + side + 30, TOP + 10 + (side - 10) * (1 - i / 4), "start", at(i / 4).toPrecision(3)));
    return out;
  }

  function paint() {
    const { side } = frame(), map = byId("map");
    map.setAttribute("width", LEFT + side + RIGHT);
    map.setAttribute("height", TOP + side + BOTTOM);
    map.innerHTML = [...elements(), '<g id="over"></g>'].join("");
    mark();
  }

  // The pair under the pointer and the area that is dragged over, which change alone with every movement.
  function mark() {
    const { side, cell, row, column } = frame(), out = [];
    if (cursor) {
      const [x, y] = [LEFT + (cursor.column - column) * cell, TOP + (cursor.row - row) * cell], shade = 'fill="#000" opacity="0.3"';
      out.push(box(x - 1, y - 1, cell + 2, cell + 2, 'fill="none" stroke="#000" stroke-width="1.5"'));
      out.push(box(LEFT, y + cell / 2, x - LEFT, 1, shade), box(x + cell / 2, y + cell, 1, TOP + side - y - cell, shade));
    }
    if (dragged && dragged.far) {
      const { x, y, toX, toY } = dragged;
      out.push(box(Math.min(x, toX), Math.min(y, toY), Math.abs(toX - x), Math.abs(toY - y), 'fill="none" stroke="#1f5fa8" stroke-width="2"'));
    }
    byId("over").innerHTML = out.join("");
  }

  // What is under the pointer, in words; the test compares it with the data.
  function describe() {
    const { entry, machine, own, other, n } = view, tip = byId("tip");
    if (!cursor) { tip.textContent = `${data.origin ? data.origin + "\n" : ""}${entry.node}: ${entry.title}\ncolors: ${view.title}`; return; }
    const { row, column } = cursor, i = row * n + column;
    const part = (k) => data.labels.map((label, j) => [label, machine.labels[k][j]]).filter(([, v]) => v >= 0).map(([l, v]) => `${l} ${v}`).join(", ");
    const lines = [`CPU ${machine.cpus[row]} to CPU ${machine.cpus[column]}`];
    if (row === column) lines.push("the same CPU");
    else if (Number.isNaN(own[i])) lines.push("not measured");
    else lines.push(`${own[i].toFixed(2)} ns`);
    if (other && !Number.isNaN(own[i]) && !Number.isNaN(other[i])) {
      const shift = own[i] - other[i], sign = shift < 0 ? "" : "+";
      lines.push(`${view.against}: ${other[i].toFixed(2)} ns`, `${sign}${shift.toFixed(2)} ns, ${sign}${((100 * shift) / other[i]).toFixed(2)} %`);
    }
    lines.push(part(row), part(column));
    tip.textContent = lines.join("\n");
  }

  function point(row, column) {
    if (!view) return;
    const { row: first, column: left, size } = frame(), within = (k, from) => Math.min(from + size - 1, Math.max(from, k));
    cursor = { row: within(row, first), column: within(column, left) };
    mark();
    describe();
  }

  function zoom(to) {
    area = to && to.size < view.n ? to : null;
    cursor = null;
    paint();
    describe();
    permalink();
  }

  // Half as many or twice as many CPUs around the cursor.
  function step(larger) {
    const { size, row, column } = frame(), wanted = larger ? Math.max(4, Math.round(size / 2)) : Math.min(view.n, size * 2);
    const middle = cursor || { row: row + size / 2, column: column + size / 2 };
    const from = (k) => Math.min(view.n - wanted, Math.max(0, Math.round(k - wanted / 2)));
    const kept = cursor;
    zoom({ row: from(middle.row), column: from(middle.column), size: wanted });
    if (kept) point(kept.row, kept.column);
  }

  // --- files ---

  function save(name, kind, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: kind }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  const stem = () => `${view.entry.node}-${view.entry.title}-${view.mode}`.replace(/[^A-Za-z0-9_-]+/g, "_");
  const origin = () => [`campaign ${data.campaign}`, `node ${view.entry.node}`, view.entry.title, view.title, data.origin].filter(Boolean).join(", ");

  function csv() {
    const { row, column, size } = frame(), unit = view.mode === "percent" ? "difference, %" : view.mode === "ns" ? "difference, ns" : "latency, ns";
    const lines = [`# ${origin()}`, `CPU a,CPU b,"${unit}"`];
    for (let a = row; a < row + size; a++) {
      for (let b = column; b < column + size; b++) {
        const v = view.shown[a * view.n + b];
        if (a !== b && !Number.isNaN(v)) lines.push(`${view.machine.cpus[a]},${view.machine.cpus[b]},${v.toPrecision(6)}`);
      }
    }
    return lines.join("\n") + "\n";
  }

  function svg() {
    const { side } = frame();
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${LEFT + side + RIGHT}" height="${TOP + side + BOTTOM + 16}" font-family="sans-serif" font-size="12" fill="#1c2329">`,
      ...elements(),
      `<text x="${LEFT}" y="${TOP + side + BOTTOM + 8}" font-size="10">${escaped(origin())}</text>`,
      "</svg>",
    ].join("\n");
  }

  // --- table ---

  let order = { column: -1, up: true };
  const hidden = new Set();
  const cells = (row) => [row.node, row.word, row.place, row.finding];
  const headers = ["node", "outcome", "rack", "first finding"];
  const collator = new Intl.Collator("en", { numeric: true });

  function list() {
    const wanted = byId("search").value.toLowerCase();
    const rows = data.nodes.filter((row) => !hidden.has(row.word) && cells(row).join(" ").toLowerCase().includes(wanted));
    if (order.column >= 0) rows.sort((a, b) => collator.compare(cells(a)[order.column], cells(b)[order.column]) * (order.up ? 1 : -1));
    const head = document.createElement("tr");
    headers.forEach((text, i) => {
      const th = document.createElement("th");
      th.scope = "col"; th.tabIndex = 0;
      th.textContent = text + (order.column === i ? (order.up ? " ↑" : " ↓") : "");
      const turn = () => { order = { column: i, up: order.column === i ? !order.up : true }; list(); };
      th.onclick = turn;
      th.onkeydown = (event) => { if (event.key === "Enter") turn(); };
      head.append(th);
    });
    const body = rows.map((row) => {
      const tr = document.createElement("tr"), choose = () => { if (nodes.includes(row.node)) { byId("of").value = row.node; draw(); } };
      tr.dataset.node = row.node;
      tr.tabIndex = nodes.includes(row.node) ? 0 : -1;
      cells(row).forEach((text, i) => {
        const td = document.createElement("td");
        td.textContent = i === 1 ? `${row.symbol} ${text}` : text;
        if (i === 1) td.className = `mark ${row.color}`;
        tr.append(td);
      });
      tr.onclick = choose;
      tr.onkeydown = (event) => { if (event.key === "Enter") choose(); };
      return tr;
    });
    byId("list").replaceChildren(head, ...body);
    byId("shown").textContent = `${rows.length} of ${data.nodes.length} nodes`;
  }

  for (const word of new Set(data.nodes.map((row) => row.word))) {
    const button = document.createElement("button");
    button.type = "button"; button.textContent = word; button.setAttribute("aria-pressed", "true");
    button.onclick = () => {
      hidden.has(word) ? hidden.delete(word) : hidden.add(word);
      button.setAttribute("aria-pressed", String(!hidden.has(word)));
      list();
    };
    byId("filters").append(button, " ");
  }

  // --- events ---

  for (const id of Object.values(CHOICES)) byId(id).onchange = draw;
  byId("search").oninput = list;
  byId("all").onclick = () => view && zoom(null);
  byId("csv").onclick = () => view && save(`${stem()}.csv`, "text/csv", csv());
  byId("svg").onclick = () => view && save(`${stem()}.svg`, "image/svg+xml", svg());

  const map = byId("map");
  const place = (event) => {
    const { row, column, cell } = frame();
    return { row: row + Math.floor((event.offsetY - TOP) / cell), column: column + Math.floor((event.offsetX - LEFT) / cell) };
  };
  map.onpointerdown = (event) => {
    if (!view) return;
    map.setPointerCapture(event.pointerId);
    dragged = { x: event.offsetX, y: event.offsetY, toX: event.offsetX, toY: event.offsetY, from: place(event), far: false };
    point(dragged.from.row, dragged.from.column);
  };
  map.onpointermove = (event) => {
    if (!view) return;
    if (dragged) {
      [dragged.toX, dragged.toY] = [event.offsetX, event.offsetY];
      dragged.far = dragged.far || Math.hypot(dragged.toX - dragged.x, dragged.toY - dragged.y) > 12;
      if (dragged.far) { mark(); return; }
    }
    const at = place(event);
    point(at.row, at.column);
  };
  map.onpointerup = (event) => {
    const ended = dragged;
    dragged = null;
    if (!view || !ended || !ended.far) return;
    const to = place(event), { n } = view;
    const size = Math.min(n, Math.max(4, 1 + Math.max(Math.abs(to.row - ended.from.row), Math.abs(to.column - ended.from.column))));
    const start = (a, b) => Math.min(n - size, Math.max(0, Math.min(a, b)));
    zoom({ row: start(to.row, ended.from.row), column: start(to.column, ended.from.column), size });
  };
  map.onpointerleave = (event) => { if (view && event.pointerType === "mouse" && !dragged) { cursor = null; mark(); describe(); } };
  map.ondblclick = () => view && zoom(null);
  const turn = (by) => { const select = byId("of"); select.selectedIndex = (select.selectedIndex + by + nodes.length) % nodes.length; draw(); };
  map.onkeydown = (event) => {
    if (!view || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = cursor || frame(), moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const keys = {
      "+": () => step(true), "=": () => step(true), "-": () => step(false), Escape: () => zoom(null), n: () => turn(1), p: () => turn(-1),
      d: () => { byId("show").value = byId("show").value === "percent" ? "value" : "percent"; draw(); },
    };
    if (moves[event.key]) point(at.row + moves[event.key][0], at.column + moves[event.key][1]);
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  };
  window.addEventListener("hashchange", () => { follow(); draw(); });
  window.addEventListener("resize", () => { if (view) paint(); });
  byId("explorer").hidden = false;
  list();
  follow();
  await draw();
  document.body.dataset.ready = "yes";
})();
