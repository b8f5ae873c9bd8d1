// The explorer of cluster.html: draws the matrices that are in the file, and says what is under the pointer.
"use strict";
(async () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const NOTHING = 65535, SIDE = 640;

  // --- data ---

  // A matrix as Float64Array of n x n, NaN where nothing was measured; unpacked once.
  const unpacked = new Map();
  async function values(entry) {
    if (unpacked.has(entry)) return unpacked.get(entry);
    const packed = Uint8Array.from(atob(entry.data), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const n = data.machines[entry.machine].cpus.length, count = bytes.length / 2;
    const out = new Float64Array(n * n).fill(NaN);
    let k = 0;
    for (let a = 0; a < n; a++) {
      for (let b = entry.directed ? 0 : a + 1; b < n; b++, k++) {
        const whole = bytes[k] * 256 + bytes[count + k];
        if (whole === NOTHING) continue;
        out[a * n + b] = whole * entry.step;
        if (!entry.directed) out[b * n + a] = out[a * n + b];
      }
    }
    unpacked.set(entry, out);
    return out;
  }

  const sameKind = (one, other) =>
    one.measurement === other.measurement && one.home === other.home && one.machine === other.machine;

  // Pair by pair the median over nodes that are the same as their peers, the node itself left out.
  async function template(entry) {
    const same = new Set(data.nodes.filter((row) => row.same).map((row) => row.node));
    const peers = data.matrices.filter((one) => one.node !== entry.node && same.has(one.node) && sameKind(one, entry));
    const all = await Promise.all(peers.map(values));
    if (!all.length) return null;
    const out = new Float64Array(all[0].length), column = new Float64Array(all.length);
    for (let i = 0; i < out.length; i++) {
      for (let k = 0; k < all.length; k++) column[k] = all[k][i];
      const known = column.filter((v) => !Number.isNaN(v)).sort();
      const middle = known.length >> 1;
      out[i] = !known.length ? NaN : known.length % 2 ? known[middle] : (known[middle - 1] + known[middle]) / 2;
    }
    return out;
  }

  // --- what is chosen ---

  const kinds = [...new Set(data.matrices.map((m) => JSON.stringify([m.measurement, m.home])))];
  const named = (kind) => { const [name, home] = JSON.parse(kind); return home >= 10000 ? `${name}, far home` : home >= 0 ? `${name}, home ${home}` : name; };
  const fill = (select, options) => select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  const nodes = [...new Set(data.matrices.map((m) => m.node))];
  fill(byId("of"), nodes.map((node) => [node, node]));
  fill(byId("what"), kinds.map((kind) => [kind, named(kind)]));
  fill(byId("against"), [["", "the fleet"], ...nodes.map((node) => [node, node])]);
  const flagged = data.nodes.find((row) => !row.same && nodes.includes(row.node));
  if (flagged) byId("of").value = flagged.node;

  const entryOf = (node) => {
    const [measurement, home] = JSON.parse(byId("what").value);
    return data.matrices.find((m) => m.node === node && m.measurement === measurement && m.home === home);
  };

  // --- drawing ---

  const rgb = (name) => data.palettes[name].match(/../g).map((h) => parseInt(h, 16));
  const palettes = { batlow: rgb("batlow"), vik: rgb("vik") };
  let view = null; // what is drawn: entry, own and other values, shown values, low, high, palette, cell
  let cursor = null;

  function quantile(list, q) { const at = Math.min(list.length - 1, Math.floor(q * list.length)); return list[at]; }

  async function draw() {
    const entry = entryOf(byId("of").value);
    const machine = entry && data.machines[entry.machine];
    if (!entry) { view = null; byId("tip").textContent = "This node has no such matrix."; return; }
    const own = await values(entry);
    const rival = byId("against").value && entryOf(byId("against").value);
    const other = rival ? (rival.machine === entry.machine ? await values(rival) : null)
      : byId("against").value ? null : await template(entry);
    const mode = other ? byId("show").value : "value";
    const n = machine.cpus.length;
    let shown = own, low, high, palette = "batlow";
    if (mode === "other") shown = other;
    if (mode === "percent") shown = own.map((v, i) => 100 * (v / other[i] - 1));
    if (mode === "ns") shown = own.map((v, i) => v - other[i]);
    if (mode === "percent" || mode === "ns") {
      const reach = Math.max(mode === "percent" ? 5 : 1, quantile([...shown].filter((v) => !Number.isNaN(v)).map(Math.abs).sort((a, b) => a - b), 0.995) || 0);
      [low, high, palette] = [-reach, reach, "vik"];
    } else {
      [low, high] = data.scales[entry.measurement] || [0, Math.max(...shown.filter((v) => !Number.isNaN(v)))];
    }
    const cell = Math.max(1, Math.floor(SIDE / n)), side = cell * n;
    const small = new ImageData(n, n), colours = palettes[palette], levels = colours.length / 3;
    for (let i = 0; i < n * n; i++) {
      const v = shown[i], diagonal = Math.floor(i / n) === i % n;
      const at = Number.isNaN(v) ? -1 : Math.min(levels - 1, Math.max(0, Math.floor(((v - low) / (high - low)) * levels)));
      for (let c = 0; c < 3; c++) small.data[4 * i + c] = at < 0 ? (diagonal ? 255 : 205) : colours[3 * at + c];
      small.data[4 * i + 3] = 255;
    }
    const map = byId("map");
    map.width = map.height = n;
    map.style.width = map.style.height = `${side}px`;
    map.getContext("2d").putImageData(small, 0, 0);
    byId("over").width = byId("over").height = side;
    view = { entry, machine, own, other, against: byId("against").value || "the fleet", n, cell, side, low, high, palette, mode };
    cursor = null;
    overlay();
    legend();
    describe();
    for (const row of byId("list").rows) row.classList.toggle("chosen", row.dataset.node === entry.node);
  }

  // Outlines of the parts on the diagonal, and the row and column of the pair.
  function overlay() {
    const at = byId("over").getContext("2d");
    at.clearRect(0, 0, view.side, view.side);
    view.machine.bands.forEach((band, level) => {
      at.lineWidth = 0.6 + 0.6 * level;
      for (const [start, stop] of band.groups) {
        if (stop - start === view.n) continue;
        at.strokeStyle = "#fff"; at.strokeRect(start * view.cell, start * view.cell, (stop - start) * view.cell, (stop - start) * view.cell);
        at.strokeStyle = "#000"; at.strokeRect(start * view.cell, start * view.cell, (stop - start) * view.cell, (stop - start) * view.cell);
      }
    });
    if (!cursor) return;
    at.lineWidth = 1; at.strokeStyle = "#000";
    at.strokeRect(cursor.column * view.cell - 0.5, cursor.row * view.cell - 0.5, view.cell + 1, view.cell + 1);
    at.fillStyle = "rgba(0,0,0,.28)";
    at.fillRect(0, cursor.row * view.cell, cursor.column * view.cell, 1);
    at.fillRect(cursor.column * view.cell, 0, 1, cursor.row * view.cell);
  }

  function legend() {
    const canvas = byId("legend"), at = canvas.getContext("2d"), colours = palettes[view.palette], levels = colours.length / 3;
    at.clearRect(0, 0, canvas.width, canvas.height);
    for (let y = 0; y < 300; y++) {
      const k = Math.floor((1 - y / 300) * (levels - 1));
      at.fillStyle = `rgb(${colours[3 * k]},${colours[3 * k + 1]},${colours[3 * k + 2]})`;
      at.fillRect(0, 10 + y, 16, 1);
    }
    at.fillStyle = getComputedStyle(document.body).color;
    at.font = "11px sans-serif";
    for (let i = 0; i <= 4; i++) at.fillText((view.low + ((view.high - view.low) * i) / 4).toPrecision(3), 20, 14 + 300 * (1 - i / 4));
  }

  // What is under the pointer, in words; the test compares it with the data.
  function describe() {
    const tip = byId("tip");
    const { entry, machine, own, other, n } = view;
    const unit = view.mode === "percent" ? "%" : "ns";
    if (!cursor) { tip.textContent = `${entry.node}: ${named(JSON.stringify([entry.measurement, entry.home]))}\n${entry.passes}\ncolours in ${unit}`; return; }
    const { row, column } = cursor, i = row * n + column;
    const part = (k) => data.labels.map((label, j) => [label, machine.labels[k][j]]).filter(([, v]) => v !== null).map(([l, v]) => `${l} ${v}`).join(", ");
    const lines = [`CPU ${machine.cpus[row]} to CPU ${machine.cpus[column]}`];
    if (row === column) lines.push("the same CPU");
    else if (Number.isNaN(own[i])) lines.push("not measured");
    else lines.push(`${own[i].toFixed(2)} ns`);
    if (other && !Number.isNaN(own[i]) && !Number.isNaN(other[i])) {
      const shift = own[i] - other[i], sign = shift < 0 ? "" : "+";
      lines.push(`${view.against}: ${other[i].toFixed(2)} ns`, `${sign}${shift.toFixed(2)} ns, ${sign}${((100 * shift) / other[i]).toFixed(2)} %`);
    }
    lines.push(part(row), part(column), entry.passes);
    tip.textContent = lines.join("\n");
  }

  function point(row, column) {
    if (!view) return;
    cursor = { row: Math.min(view.n - 1, Math.max(0, row)), column: Math.min(view.n - 1, Math.max(0, column)) };
    overlay();
    describe();
  }

  // --- table ---

  let order = { column: -1, up: true };
  const hidden = new Set();
  const cells = (row) => [row.node, row.word, row.place, ...row.values, row.note];
  const headers = ["node", "verdict", "place", ...data.columns, "what was found"];
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
      const tr = document.createElement("tr");
      tr.dataset.node = row.node;
      cells(row).forEach((text, i) => {
        const td = document.createElement("td");
        td.textContent = i === 1 ? `${row.symbol} ${text}` : text;
        if (i === 1) { td.className = "mark"; td.style.setProperty("--mark", row.colour); }
        tr.append(td);
      });
      tr.onclick = () => { if (nodes.includes(row.node)) { byId("of").value = row.node; draw(); } };
      return tr;
    });
    byId("list").replaceChildren(head, ...body);
    byId("shown").textContent = `${rows.length} of ${data.nodes.length} nodes`;
  }

  for (const word of new Set(data.nodes.map((row) => row.word))) {
    const button = document.createElement("button");
    button.textContent = word; button.setAttribute("aria-pressed", "true");
    button.onclick = () => {
      hidden.has(word) ? hidden.delete(word) : hidden.add(word);
      button.setAttribute("aria-pressed", String(!hidden.has(word)));
      list();
    };
    byId("filters").append(button, " ");
  }

  // --- events ---

  for (const id of ["of", "what", "against", "show"]) byId(id).onchange = draw;
  byId("search").oninput = list;
  byId("map").onmousemove = (event) => { if (view) point(Math.floor(event.offsetY / view.cell), Math.floor(event.offsetX / view.cell)); };
  byId("map").onmouseleave = () => { if (view) { cursor = null; overlay(); describe(); } };
  const step = (by) => { const select = byId("of"); select.selectedIndex = (select.selectedIndex + by + nodes.length) % nodes.length; draw(); };
  document.onkeydown = (event) => {
    if (/INPUT|SELECT/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = cursor || { row: 0, column: 0 };
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (moves[event.key] && document.activeElement === byId("map")) { point(at.row + moves[event.key][0], at.column + moves[event.key][1]); event.preventDefault(); }
    if (event.key === "n") step(1);
    if (event.key === "p") step(-1);
    if (event.key === "d") { byId("show").value = byId("show").value === "percent" ? "value" : "percent"; draw(); }
    if (event.key === "/") { byId("search").focus(); event.preventDefault(); }
  };
  byId("explorer").hidden = false;
  list();
  await draw();
  document.body.dataset.ready = "yes";
})();
