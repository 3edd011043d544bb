// -- drawing --------------------------------------------------------------------------------------

const MAX_SIDE_CELLS = 4096; // elements of all inputs, or of all outputs, that are drawn as cells
const MAX_FULL = 6; // large tensors of a side up to which each has a zoomed part
const [WHOLE_WIDTH, WHOLE_HEIGHT, LEAST, GAP] = [220, 260, 28, 3]; // in pixels, those of a whole tensor
const [FEW_TALL, TALL] = [16, 16]; // rows of a tile that may be so high, in pixels
const [ZOOM_ROWS, ZOOM_COLUMNS] = [12, 24];
const FEW_TILES = 4; // tiles up to which the last row of tiles may have fewer
const MAX_LOOKUPS = 4e6; // regions that are looked up for the picture of a whole tensor
const MAX_LABELS = 150;
const MANY = 4; // places that are named

const element = (tag, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
};
const limited = (value, least, most) => Math.max(least, Math.min(most, value));

class Figure {
  constructor(figure) {
    this.figure = figure;
    this.plan = planOf(JSON.parse(figure.querySelector("script").textContent));
    this.caption = figure.querySelector("figcaption");
    const tensors = this.plan.tensors;
    const drawn = [...figure.querySelectorAll("[data-tensor]")];
    this.pictures = drawn.map((place) => new Picture(this, tensors[place.dataset.tensor], place));
    for (const picture of this.pictures) picture.draw();
  }

  of(role, number) {
    return this.pictures.find(({ tensor }) => tensor.role === role && tensor.number === number);
  }

  // Say where an element comes from or goes to, and light it and those.
  show(picture, address, follow = false) {
    const [text, others] = this.said(picture, address);
    this.caption.textContent = text;
    const lit = [[picture, address], ...others.map((o) => [this.of(o.role, o.number), o.address])];
    if (follow) for (const [other, at] of lit.slice(1)) other?.reveal(at);
    for (const one of this.pictures) one.light(lit.filter(([of]) => of === one).map(([, at]) => at));
  }

  name(role, number, address) {
    const picture = this.of(role, number);
    if (!picture) return `${role} ${number}, element ${address}`;
    const { tensor } = picture;
    const index = indexIn(tensor, address);
    const place = `element ${address.toLocaleString("en")}, at byte ${(address * tensor.size).toLocaleString("en")}`;
    return index ? `${tensor.name}[${index.join(", ")}] (${place})` : `${tensor.name} ${place}`;
  }

  said({ tensor }, address) {
    const { role, number } = tensor;
    const label = this.name(role, number, address);
    return role === "output" ? this.saidOfOutput(label, number, address) : this.saidOfInput(label, number, address);
  }

  saidOfOutput(label, number, address) {
    const scattered = this.plan.regions.find(
      (r) => r.output === number && r.kind === "scatter" && (!r.selectable || indicesAt(r.selectable, address).length),
    );
    const unless = scattered ? `, unless ${this.title(scattered.indices.input)} selects it` : "";
    const source = sourceOf(this.plan, number, address);
    if (!source) return [`${label} is ${this.plan.all ? "not written" : "of a region that is not shown"}${unless}`, []];
    if (source.constant) return [`${label} is the constant ${source.constant}${unless}`, []];
    const read = { role: "input", number: source.input, address: source.address };
    if (!source.by) return [`${label} is ${this.name("input", source.input, source.address)}${unless}`, [read]];
    const { text, elements } = this.selection(source.by);
    if (source.by.rule === "reverse") {
      const length = elements.map((e) => this.name("input", e.number, e.address));
      return [`${label} is an element of ${this.title(source.input)}, whose sequence has the length ${length}`, elements];
    }
    return [`${label} is element ${source.address.toLocaleString("en")} + ${text} of ${this.title(source.input)}`, elements];
  }

  saidOfInput(label, number, address) {
    const moved = movedBy(this.plan, number, address);
    if (moved) {
      const { region, index } = moved;
      const what = region.indices.rule === "reverse" ? "is the length of a sequence of" : "is an index for";
      if (region.kind !== "scatter") {
        const to = { role: "output", number: region.output, address: addressOf(region.target, index) };
        return [`${label} ${what} ${this.name("output", to.number, to.address)}`, [to]];
      }
      const from = region.source && { role: "input", number: region.input, address: addressOf(region.source, index) };
      const copied = from ? this.name("input", from.number, from.address) : `the constant ${region.constant}`;
      return [`${label} says where ${copied} goes`, from ? [from] : []];
    }
    const targets = targetsOf(this.plan, number, address, MANY + 1);
    const named = targets.slice(0, MANY).map((to) => {
      const times = to.times > 1 ? ` and ${(to.times - 1).toLocaleString("en")} more` : "";
      if (!to.by) return this.name("output", to.output, to.address) + times;
      return `element ${to.address.toLocaleString("en")} + ${this.selection(to.by).text} of ${this.title(to.output, "output")}`;
    });
    const lit = targets.slice(0, MANY).flatMap((to) =>
      to.by ? this.selection(to.by).elements : [{ role: "output", number: to.output, address: to.address }],
    );
    const may = selectors(this.plan, number, address).map(
      (region) => `any element of ${this.title(region.output, "output")} for which ${this.title(region.indices.input)} selects it`,
    );
    const all = [...named, ...may.slice(0, 1)];
    const more = targets.length > MANY ? " and more" : "";
    if (all.length) return [`${label} goes to ${all.join("; ")}${more}`, lit];
    return [`${label} goes ${this.plan.all ? "nowhere" : "to no region that is shown"}`, []];
  }

  title(number, role = "input") {
    return this.of(role, number)?.tensor.name ?? `${role} ${number}`;
  }

  // "6 × InputTensor[1, 0]", and the elements that this names.
  selection({ input, terms }) {
    const elements = terms.map(({ address }) => ({ role: "input", number: input, address }));
    const tensor = this.of("input", input)?.tensor;
    const text = terms.map(({ address, stride }) => {
      const index = tensor && indexIn(tensor, address);
      const name = index ? `${tensor.name}[${index.join(", ")}]` : `${this.title(input)} element ${address}`;
      return stride === 1 ? name : `${stride.toLocaleString("en")} × ${name}`;
    });
    return { text: text.join(" + "), elements };
  }
}

class Picture {
  constructor(figure, tensor, place) {
    Object.assign(this, { figure, tensor, place, cells: new Map(), marks: [] });
    const side = figure.plan.tensors.filter(({ role }) => role === tensor.role);
    this.isSmall = tensor.count <= Math.min(figure.plan.maxCells, MAX_SIDE_CELLS / side.length);
    this.isFull = this.isSmall || side.length <= MAX_FULL;
    if (this.isSmall) {
      const columns = columnsOf(tensor.memory);
      this.layout = { columns, rows: Math.ceil(tensor.count / columns), tiles: 1, outer: [], shown: 0 };
    } else {
      this.layout = tilesOf(tensor.memory, (address) => this.hue(address));
    }
    this.at = { outer: this.layout.outer.map(() => 0), tile: 0, row: 0, column: 0 };
    this.window = [1, 1];
    this.zoom = element("div", { className: "cells" });
    this.build();
    this.zoom.addEventListener("pointerover", (event) => this.point(event.target.address));
    this.zoom.addEventListener("click", (event) => this.point(event.target.address, true));
  }

  point(address, follow = false) {
    if (address !== undefined) this.figure.show(this, address, follow);
  }

  colour(address) {
    const { tensor, figure } = this;
    if (address >= tensor.count) return null;
    if (tensor.role === "input") return colourOf(figure.plan, tensor.number, address);
    return sourceOf(figure.plan, tensor.number, address)?.colour ?? null;
  }

  hue(address) {
    const colour = this.colour(address);
    return this.figure.plan.colours[colour]?.[0] ?? colour;
  }

  build() {
    const scroll = element("div", { className: "scroll", tabIndex: 0 }, this.zoom);
    if (this.isSmall) return this.place.append(scroll);
    this.canvas = element("canvas", { tabIndex: 0, title: "The whole: tap to zoom there" });
    this.range = element("p", { className: "range" });
    const { outer, shown } = this.layout;
    if (outer.length) {
      const inputs = outer.map((n, axis) => {
        const input = element("input", { type: "number", min: 0, max: n - 1, value: 0 });
        input.setAttribute("aria-label", `index ${axis} of ${this.tensor.name}`);
        input.addEventListener("input", () => {
          this.at.outer[axis] = limited(Math.floor(Number(input.value)) || 0, 0, n - 1);
          this.draw();
        });
        return input;
      });
      this.inputs = inputs;
      const rest = `${", :".repeat(shown)} ]`;
      this.place.append(element("p", { className: "slice" }, "Slice [ ", ...inputs.flatMap((input, i) => (i ? [", ", input] : [input])), rest));
    }
    const whole = element("div", { className: "whole" }, this.canvas);
    const parts = [whole];
    if (this.isFull) parts.push(element("div", { className: "zoom" }, this.range, scroll));
    this.place.append(element("div", { className: "both" }, ...parts));
    this.canvas.addEventListener("pointermove", (event) => this.point(this.addressAt(event)));
    this.canvas.addEventListener("click", (event) => {
      const address = this.addressAt(event);
      if (address === undefined) return;
      this.reveal(address);
      this.point(address, true);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
      if (down === undefined) return;
      event.preventDefault();
      this.at.row += down;
      this.at.column += right;
      this.draw();
    });
  }

  // -- addresses ----------------------------------------------------------------------------------

  addressOf(tile, row, column) {
    const { columns, rows, tiles, outer } = this.layout;
    const first = outer.reduce((sum, n, axis) => sum * n + this.at.outer[axis], 0);
    return ((first * tiles + tile) * rows + row) * columns + column;
  }

  placeOf(address) {
    const { columns, rows, tiles, outer } = this.layout;
    const place = { column: address % columns, row: Math.floor(address / columns) % rows };
    let rest = Math.floor(address / columns / rows);
    place.tile = rest % tiles;
    rest = Math.floor(rest / tiles);
    place.outer = outer.map(() => 0);
    for (let axis = outer.length - 1; axis >= 0; axis--) {
      place.outer[axis] = rest % outer[axis];
      rest = Math.floor(rest / outer[axis]);
    }
    return place;
  }

  // Zoom to an element, if it is not visible.
  reveal(address) {
    if (this.isSmall || this.cells.has(address)) return;
    const place = this.placeOf(address);
    const [rows, columns] = this.window;
    place.row -= Math.floor(rows / 2);
    place.column -= Math.floor(columns / 2);
    this.at = place;
    this.inputs?.forEach((input, axis) => (input.value = place.outer[axis]));
    this.draw();
  }

  // -- pictures -----------------------------------------------------------------------------------

  draw() {
    this.style = getComputedStyle(this.figure.figure);
    const { layout, at } = this;
    this.stay();
    const wide = this.widest();
    const isDense = !this.isSmall || layout.columns > 12;
    this.zoom.classList.toggle("many", isDense);
    this.zoom.style.setProperty("--w", wide);
    const width = this.place.clientWidth;
    if (!this.isSmall) {
      const beside = width >= 420 ? width - WHOLE_WIDTH - 24 : width;
      const cell = (wide * 0.42 + 0.4) * 16 + 2;
      const columns = limited(Math.floor((beside - 4) / cell), 4, ZOOM_COLUMNS);
      this.window = [Math.min(layout.rows, ZOOM_ROWS), Math.min(layout.columns, columns)];
      this.stay();
      this.paint(width);
    } else {
      this.window = [layout.rows, layout.columns];
    }
    if (this.isFull) this.fillCells();
  }

  // Keep the zoomed part inside.
  stay() {
    const { layout, at } = this;
    at.row = limited(at.row, 0, layout.rows - this.window[0]);
    at.column = limited(at.column, 0, layout.columns - this.window[1]);
  }

  // The characters of the widest cell, if there are as many as possible.
  widest() {
    const { layout, at, tensor } = this;
    const [rows, columns] = this.isSmall ? [layout.rows, layout.columns] : [ZOOM_ROWS, ZOOM_COLUMNS];
    let wide = 2;
    for (let row = at.row; row < Math.min(at.row + rows, layout.rows); row++) {
      for (let column = at.column; column < Math.min(at.column + columns, layout.columns); column++) {
        const address = this.addressOf(at.tile, row, column);
        if (address < tensor.count) wide = Math.max(wide, this.text(address).length);
      }
    }
    return wide;
  }

  fillCells() {
    const [rows, columns] = this.window;
    const { at, tensor } = this;
    const cells = [];
    this.cells.clear();
    this.zoom.style.setProperty("--n", columns);
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const address = this.addressOf(at.tile, at.row + row, at.column + column);
        const cell = element("i");
        if (address < tensor.count) {
          cell.address = address;
          cell.textContent = this.text(address);
          this.paintCell(cell, this.colour(address));
          this.cells.set(address, cell);
        } else {
          cell.className = "outside";
        }
        cells.push(cell);
      }
    }
    this.zoom.replaceChildren(...cells);
    if (!this.range) return;
    const index = (address) => indexIn(tensor, address)?.join(", ");
    const [first, last] = [cells[0], cells.findLast((cell) => cell.address !== undefined)].map((cell) => index(cell.address));
    this.range.textContent = first && last ? `Zoomed: [${first}] to [${last}]` : "Zoomed";
  }

  text(address) {
    const { tensor, figure } = this;
    if (tensor.role === "input") return `${address}`;
    const source = sourceOf(figure.plan, tensor.number, address);
    if (!source) return "";
    if (source.constant) return "=";
    const key = (number) => figure.plan.tensors.find((t) => t.role === "input" && t.number === number)?.key ?? "?";
    if (!source.by) return `${key(source.input)}${source.address}`;
    const [first] = source.by.terms;
    return `${key(source.input)}[${key(source.by.input)}${first.address}${source.by.terms.length > 1 ? "…" : ""}]`;
  }

  paintCell(cell, colour) {
    const shade = this.figure.plan.colours[colour];
    if (shade) cell.style.cssText = `--h:${shade[0]};--d:${shade[1]}`;
    else if (colour !== null) cell.className = "rest";
  }

  // The colour of the canvas for that of a block.
  ink(colour) {
    const value = (name) => this.style.getPropertyValue(name).trim();
    if (colour === null) return value("--gap");
    const shade = this.figure.plan.colours[colour];
    return shade ? `oklch(${Number(value("--l")) + shade[1]} ${value("--c")} ${shade[0]})` : value("--line");
  }

  // Draw the whole slice: tiles of rows and columns, sampled, with the numbers of blocks.
  paint(available) {
    const { layout, canvas } = this;
    const scale = (across) => {
      const down = Math.ceil(layout.tiles / across);
      const [w, h] = [(WHOLE_WIDTH + GAP) / across - GAP, (WHOLE_HEIGHT + GAP) / down - GAP];
      return { across, down, w, h, by: Math.min(w / layout.columns, h / layout.rows) };
    };
    const isEven = (across) => layout.tiles <= FEW_TILES || layout.tiles % across === 0;
    const choices = Array.from({ length: layout.tiles }, (_, i) => i + 1).filter(isEven).map(scale);
    const best = choices.reduce((a, b) => (b.by > a.by ? b : a));
    const strip = layout.rows * layout.tiles === 1 ? Math.min(available, 2 * WHOLE_WIDTH) : 0;
    const wide = strip || limited(best.by * layout.columns, Math.min(LEAST, best.w), best.w);
    const tall = layout.rows > FEW_TALL ? LEAST : TALL * layout.rows;
    const high = limited(best.by * layout.rows, Math.min(tall, best.h), best.h);
    const [width, height] = [best.across * (wide + GAP) - GAP, best.down * (high + GAP) - GAP].map(Math.ceil);
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    Object.assign(canvas, { width: width * ratio, height: height * ratio });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    this.grid = { across: best.across, wide, high };
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.scale(ratio, ratio);
    context.font = `11px ${this.style.getPropertyValue("--mono") || "monospace"}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const samples = (width * height * Math.max(1, this.figure.plan.regions.length)) / MAX_LOOKUPS;
    const pixel = limited(Math.ceil(Math.sqrt(samples)), 2, 16);
    const inks = new Map();
    const ink = (colour) => inks.get(colour) ?? inks.set(colour, this.ink(colour)).get(colour);
    let labels = [];
    for (let tile = 0; tile < layout.tiles; tile++) {
      const [left, top] = this.corner(tile);
      for (const { x, y, w, h, colour } of this.rectangles(tile, pixel)) {
        context.fillStyle = ink(colour);
        context.fillRect(left + x, top + y, w, h);
        const text = `${colour}`;
        if (colour !== null && colour !== "any" && w > 8 + 7 * text.length && h >= 14) {
          labels.push([text, left + x + w / 2, top + y + h / 2]);
        }
      }
    }
    context.fillStyle = this.style.getPropertyValue("--ink");
    if (this.figure.plan.colours.length < 2 || labels.length > MAX_LABELS) labels = [];
    for (const [text, x, y] of labels) context.fillText(text, x, y);
    this.painted = null;
    this.mark();
  }

  corner(tile) {
    const { across, wide, high } = this.grid;
    return [(tile % across) * (wide + GAP), Math.floor(tile / across) * (high + GAP)];
  }

  // A tile as rectangles of equal colours. Where several elements share a sample, it is the one in
  // the middle, or of a fine pattern one by chance, so that this appears as noise, not as one colour.
  *rectangles(tile, pixel) {
    const { columns, rows, isFine } = this.layout;
    const { wide, high } = this.grid;
    const [across, down] = [Math.min(columns, Math.ceil(wide / pixel)), Math.min(rows, Math.ceil(high / pixel))];
    const place = (i, of, n, chance) => Math.min(n - 1, Math.floor(((i + chance) * n) / of));
    let seed = 1;
    const chance = () => (isFine ? (seed = (seed * 16807) % 2147483647) / 2147483647 : 0.5);
    let open = new Map();
    for (let j = 0; j <= down; j++) {
      const runs = new Map();
      let start = 0;
      const line = [];
      for (let i = 0; j < down && i < across; i++) {
        const address = this.addressOf(tile, place(j, down, rows, rows > down ? chance() : 0.5), place(i, across, columns, columns > across ? chance() : 0.5));
        line.push(this.colour(address));
      }
      for (let i = 1; i <= line.length; i++) {
        if (i < line.length && line[i] === line[start]) continue;
        const key = `${start},${i},${line[start]}`;
        runs.set(key, open.get(key) ?? { start, end: i, first: j, colour: line[start] });
        start = i;
      }
      for (const [key, run] of open) {
        if (runs.has(key)) continue;
        const [x, y] = [(run.start * wide) / across, (run.first * high) / down];
        yield { x, y, w: (run.end * wide) / across - x, h: (j * high) / down - y, colour: run.colour };
      }
      open = runs;
    }
  }

  addressAt({ offsetX, offsetY }) {
    const { layout, grid } = this;
    const [i, j] = [Math.floor(offsetX / (grid.wide + GAP)), Math.floor(offsetY / (grid.high + GAP))];
    const tile = j * grid.across + i;
    if (i < 0 || j < 0 || i >= grid.across || tile >= layout.tiles) return undefined;
    const [left, top] = this.corner(tile);
    const column = limited(Math.floor(((offsetX - left) * layout.columns) / grid.wide), 0, layout.columns - 1);
    const row = limited(Math.floor(((offsetY - top) * layout.rows) / grid.high), 0, layout.rows - 1);
    const address = this.addressOf(tile, row, column);
    return address < this.tensor.count ? address : undefined;
  }

  light(addresses) {
    for (const cell of this.zoom.querySelectorAll(".lit")) cell.classList.remove("lit");
    for (const address of addresses) this.cells.get(address)?.classList.add("lit");
    this.marks = addresses;
    if (this.canvas) this.mark();
  }

  // Frame the zoomed part, and circle the elements that are lit.
  mark() {
    const { canvas, layout, at, grid } = this;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    if (this.painted) context.putImageData(this.painted, 0, 0);
    else this.painted = context.getImageData(0, 0, canvas.width, canvas.height);
    context.strokeStyle = this.style.getPropertyValue("--ink");
    context.lineWidth = 1.5;
    if (this.isFull) {
      const [left, top] = this.corner(at.tile);
      const [w, h] = [(this.window[1] * grid.wide) / layout.columns, (this.window[0] * grid.high) / layout.rows];
      const [x, y] = [(at.column * grid.wide) / layout.columns, (at.row * grid.high) / layout.rows];
      const [width, height] = [Math.max(5, w), Math.max(5, h)];
      context.strokeRect(
        left + limited(x, 0.75, grid.wide - width) , top + limited(y, 0.75, grid.high - height), width - 1.5, height - 1.5,
      );
    }
    for (const address of this.marks) {
      const place = this.placeOf(address);
      if (place.outer.some((index, axis) => index !== at.outer[axis])) continue;
      const [left, top] = this.corner(place.tile);
      const [x, y] = [((place.column + 0.5) * grid.wide) / layout.columns, ((place.row + 0.5) * grid.high) / layout.rows];
      context.beginPath();
      context.arc(left + x, top + y, 4, 0, 2 * Math.PI);
      context.stroke();
    }
  }
}

// The first figures are drawn at once, the others when they come into view.
const figures = [];
const MAX_AT_ONCE = 3;
const observer = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      figures.push(new Figure(target));
    }
  },
  { rootMargin: "400px" },
);
document.querySelectorAll("figure.plan").forEach((figure, i) => {
  if (i < MAX_AT_ONCE) figures.push(new Figure(figure));
  else observer.observe(figure);
});
const redraw = () => figures.forEach(({ pictures }) => pictures.forEach((picture) => picture.draw()));
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
