// Appended to a copy of a page: uses the page as a reader does, and leaves what it saw in an attribute.
// The fragment of an address counts only when the page is loaded.
addEventListener("load", () => {
const rows = (id) => [...document.querySelectorAll(`#${id} tr[data-name]`)].filter((row) => row.offsetParent !== null);
const find = (text) => {
  const field = document.querySelector("input");
  field.value = text;
  field.dispatchEvent(new Event("input"));
  return [rows("files").length, rows("functions").length];
};
// Contrast of text with the background under it, by the formula of WCAG 2. Colours with alpha lie over those of their parents.
// The canvas turns colours of every notation into numbers.
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const parse = (color) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
const background = (node) => {
  if (node === null) return dark ? [18, 18, 18] : [255, 255, 255]; // Canvas of the browser
  return over(parse(getComputedStyle(node).backgroundColor), background(node.parentElement));
};
const light = (color) => {
  const [r, g, b] = color.map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (node) => {
  const below = background(node), text = over(parse(getComputedStyle(node).color), below);
  const [high, low] = [light(text), light(below)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};
const texts = [...document.querySelectorAll("h1, h2, th, td, a")].filter((node) => node.textContent.trim());
const target = document.querySelector(":target");
const result = {
  dark,
  contrast: Math.min(...texts.map(contrast)),
  outside: document.querySelectorAll("[src], link").length,
  links: [...document.querySelectorAll("a")].map((link) => link.getAttribute("href")),
  heading: document.querySelector("header").innerText,
  target: target ? target.id : null,
  seen: target ? target.getBoundingClientRect().top >= 0 && target.getBoundingClientRect().bottom <= innerHeight : null,
  wide: document.documentElement.scrollWidth > innerWidth,
};
if (document.querySelector("input")) {
  result.all = find("");
  result.one = find("SCALE");
  result.none = find("no such name");
  result.again = find("");
}
document.body.setAttribute("data-result", JSON.stringify(result));
});
