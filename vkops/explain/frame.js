// Fits the page of a figure into the notebook around it: its height, and its light or dark colours.
"use strict";

const darkRules = [...document.styleSheets]
  .flatMap((sheet) => [...sheet.cssRules])
  .filter((rule) => rule.media?.mediaText.includes("prefers-color-scheme"));

function backgroundOf(element) {
  for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor.match(/[\d.]+/g).map(Number);
    if (colour[3] !== 0) return colour;
  }
  return [255, 255, 255];
}

function fit() {
  const frame = window.frameElement;
  const [red, green, blue] = backgroundOf(frame);
  const isDark = 0.3 * red + 0.6 * green + 0.1 * blue < 128;
  for (const rule of darkRules) rule.media.mediaText = isDark ? "all" : "not all";
  Object.assign(document.body.style, { background: "transparent", display: "flow-root" });
  frame.style.height = `${document.body.offsetHeight}px`; // with the margins of figures
  redraw();
}

if (window.frameElement) {  // it is null where a notebook keeps outputs apart, as Colab does
  fit();
  new ResizeObserver(fit).observe(window.frameElement.parentElement);
}
