"use strict";
// Which element each element of a tensor is copied from, or to: the data are those of figures.py.

const MAX_STEPS = 2000; // in the search for an element, where dimensions overlap

const divisor = (a, b) => (b ? divisor(b, a % b) : a);

// The dimensions of a view from the largest stride to the smallest; `reach` is how far those after
// it reach, `unit` the common divisor of the strides from it on.
function viewOf(sizes, [offset, strides]) {
  const dims = sizes
    .map((n, axis) => ({ axis, n, stride: strides[axis], step: Math.abs(strides[axis]) }))
    .filter((dim) => dim.n > 1 && dim.step)
    .sort((a, b) => b.step - a.step);
  let [reach, unit] = [0, 0];
  for (const dim of [...dims].reverse()) {
    dim.reach = reach;
    dim.unit = unit = divisor(dim.step, unit);
    reach += (dim.n - 1) * dim.step;
  }
  const below = dims.reduce((sum, dim) => sum + Math.min(0, (dim.n - 1) * dim.stride), 0);
  return { rank: sizes.length, dims, offset, strides, first: offset + below, last: offset + below + reach };
}

const addressOf = (view, index) =>
  view.strides.reduce((sum, stride, axis) => sum + stride * index[axis], view.offset);

// The indices whose element of a view has an address, in axes of stride 0 the first; at most
// `limit`, and not all where dimensions overlap in a way that takes too long to search.
function indicesAt(view, address, limit = 1) {
  if (address < view.first || address > view.last) return [];
  const indices = [];
  const index = new Array(view.rank).fill(0);
  let steps = 0;
  const search = (rest, k) => {
    if (k === view.dims.length) {
      if (rest === 0) indices.push([...index]);
      return;
    }
    const { axis, n, stride, step, reach, unit } = view.dims[k];
    if (rest % unit || steps++ > MAX_STEPS) return;
    const least = Math.max(0, Math.ceil((rest - reach) / step));
    for (let i = Math.min(n - 1, Math.floor(rest / step)); i >= least && indices.length < limit; i--) {
      index[axis] = stride > 0 ? i : n - 1 - i;
      search(rest - i * step, k + 1);
    }
  };
  search(address - view.first, 0);
  return indices;
}

// A plan whose views can be searched.
function planOf(data) {
  const regions = data.regions.map((region) => {
    const { sizes, source, indices, input } = region;
    const prepared = { ...region, target: viewOf(sizes, region.target), kind: "copy" };
    if (source) prepared.source = viewOf(sizes, source);
    if (indices) {
      const view = viewOf(sizes, indices.place);
      prepared.kind = indices.rule === "skip" ? "scatter" : "gather";
      prepared.indices = { ...indices, view, tuples: reached(sizes, view, indices.terms.map(([offset]) => offset)) };
      const places = indices.terms.map(([, n, stride]) => [n, stride]);
      const moved = prepared.kind === "gather" ? "source" : "target";
      if (prepared[moved]) prepared.selectable = withDims(sizes, prepared[moved], places);
    }
    return prepared;
  });
  return { ...data, regions };
}

const withDims = (sizes, view, dims) =>
  viewOf([...sizes, ...dims.map(([n]) => n)], [view.offset, [...view.strides, ...dims.map(([, s]) => s)]]);

// The view of all numbers of index tuples, which are equally far apart.
function reached(sizes, view, offsets) {
  return withDims(sizes, view, [[offsets.length, offsets.length > 1 ? offsets[1] - offsets[0] : 0]]);
}

// The number of the block of a region that an index belongs to.
const blockOf = (region, index) =>
  region.blocks.reduce((block, [axis, length, count]) => block * count + Math.floor(index[axis] / length), 0);

// How an element of an output is written: its region, its index there, and its source, which is an
// input with the address of the element, or of the one that indices move.
function sourceOf(plan, output, address) {
  for (const region of plan.regions) {
    if (region.output !== output || region.kind === "scatter") continue;
    const [index] = indicesAt(region.target, address);
    if (!index) continue;
    const written = { region, index, colour: region.colour + blockOf(region, index) };
    if (region.constant !== undefined) return { ...written, constant: region.constant };
    return { ...written, ...reading(region, index) };
  }
  return null;
}

function reading(region, index) {
  const read = { input: region.input, address: addressOf(region.source, index) };
  return region.kind === "gather" ? { ...read, by: selecting(region, index) } : read;
}

// The index tuple of an element: the address of each number, and how far it moves.
function selecting({ indices }, index) {
  const first = addressOf(indices.view, index);
  return {
    input: indices.input,
    rule: indices.rule,
    terms: indices.terms.map(([offset, , stride]) => ({ address: first + offset, stride })),
  };
}

// The colour of an element of an input: that of the first region that reads it there, or `any` where
// indices select it; null if nothing reads it.
function colourOf(plan, input, address) {
  let any = null;
  for (const region of plan.regions) {
    if (region.indices?.input === input) {
      const [index] = indicesAt(region.indices.tuples, address);
      if (index) return region.colour + blockOf(region, index);
    }
    if (region.input !== input) continue;
    if (region.kind === "gather") {
      if (indicesAt(region.selectable, address).length) any = "any";
    } else {
      const [index] = indicesAt(region.source, address);
      if (index) return region.colour + blockOf(region, index);
    }
  }
  return any;
}

// The places that an element of an input is copied to, at most `limit`: an output with an address,
// which indices may move, and how often it is repeated there.
function targetsOf(plan, input, address, limit) {
  const targets = [];
  for (const region of plan.regions) {
    if (region.input === input && region.kind !== "gather") {
      const repeats = region.sizes.filter((_, axis) => region.source.strides[axis] === 0);
      for (const index of indicesAt(region.source, address, limit - targets.length)) {
        const place = { output: region.output, address: addressOf(region.target, index) };
        if (region.kind === "scatter") place.by = selecting(region, index);
        place.times = repeats.reduce((product, n) => product * n, 1);
        targets.push(place);
      }
    }
    if (targets.length >= limit) break;
  }
  return targets;
}

// The outputs that indices may copy an element of an input to, and the inputs that hold them.
function selectors(plan, input, address) {
  return plan.regions.filter(
    (region) =>
      region.kind === "gather" && region.input === input && indicesAt(region.selectable, address).length,
  );
}

// The elements that an element of an index tensor moves: the first one, and the region.
function movedBy(plan, input, address) {
  for (const region of plan.regions) {
    if (region.indices?.input !== input) continue;
    const [index] = indicesAt(region.indices.tuples, address);
    if (index) return { region, index };
  }
  return null;
}

// The names of an element: its index in the tensor, with a range for an axis whose elements are the
// same; null for one that belongs to no index.
function indexIn(tensor, address) {
  const view = (tensor.view ??= viewOf(tensor.sizes, [0, tensor.strides]));
  const [index] = indicesAt(view, address);
  if (!index) return null;
  return index.map((i, axis) =>
    tensor.strides[axis] === 0 && tensor.sizes[axis] > 1 ? `0–${tensor.sizes[axis] - 1}` : `${i}`,
  );
}

// -- how a tensor is drawn ------------------------------------------------------------------------

const [MAX_COLUMNS, FEW_ROWS, MAX_ROWS, WRAPPED] = [64, 16, 48, 32];
const [MIN_WIDE, MAX_WIDE, MIN_HIGH] = [8, 64, 4];
const [MAX_TILES, MAX_SMALL_TILES, SMALL_TILE] = [16, 64, 1024];

const FINE = 0.3; // neighbours of different hues in a pattern that is too fine for a small picture

const product = (numbers) => numbers.reduce((a, b) => a * b, 1);

// The cells in a row of a small tensor: whole rows of the inner dimensions, if that fits.
function columnsOf(memory) {
  for (const limit of [FEW_ROWS, MAX_ROWS]) {
    for (let i = memory.length - 1; i >= 0; i--) {
      const columns = product(memory.slice(i));
      if (columns <= MAX_COLUMNS && product(memory.slice(0, i)) <= limit) return columns;
    }
  }
  const last = memory[memory.length - 1];
  return Math.floor(WRAPPED / last) * last || WRAPPED;
}

// A large tensor as tiles of rows and columns; the dimensions outside of them are chosen by the
// reader. Of several widths of a row, the best is that where most neighbours have the same hue.
function tilesOf(memory, hue) {
  const starts = memory.map((_, i) => i).filter((i) => product(memory.slice(i)) > 1).reverse();
  const columns = (i) => product(memory.slice(i));
  const fit = starts.filter((i) => columns(i) >= MIN_WIDE && columns(i) <= MAX_WIDE);
  const layouts = (fit.length ? fit : starts.slice(0, 1)).map((i) => layoutOf(memory, i));
  const costs = layouts.map((layout) => edges(layout, hue));
  const best = Math.min(...costs);
  return { ...layouts[costs.indexOf(best)], isFine: best > FINE };
}

function layoutOf(memory, first) {
  const take = (end, enough) => {
    let start = end;
    while (start > 0 && !enough(product(memory.slice(start, end)), memory[start - 1])) start--;
    return start;
  };
  const high = take(first, (rows) => rows >= MIN_HIGH);
  const most = product(memory.slice(high)) > SMALL_TILE ? MAX_TILES : MAX_SMALL_TILES;
  const tiled = take(high, (tiles, next) => tiles * next > (tiles === 1 ? most : MAX_TILES));
  const parts = [memory.slice(first), memory.slice(high, first), memory.slice(tiled, high)];
  const [columns, rows, tiles] = parts.map(product);
  return { columns, rows, tiles, outer: memory.slice(0, tiled), shown: memory.length - tiled };
}

// The share of the first elements whose neighbours have another hue.
function edges({ columns, rows }, hue) {
  const [wide, high] = [Math.min(columns, MAX_WIDE), Math.min(rows, 48)];
  let count = 0;
  let above = [];
  for (let row = 0; row < high; row++) {
    const line = Array.from({ length: wide }, (_, column) => hue(row * columns + column));
    count += line.filter((value, i) => (i && value !== line[i - 1]) || (row && value !== above[i])).length;
    above = line;
  }
  return count / (wide * high);
}
