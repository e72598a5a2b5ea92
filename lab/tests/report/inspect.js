// Faults of the page as a person would see them.
const faults = [];
let lookedAt = 0;
const shown = (element) => element.getClientRects().length > 0;
const name = (element) => (element.textContent || element.className).trim().slice(0, 40).replace(/["';]/g, "");

// Text in figures: overlaps, beyond the figure, smaller than 8 pixels.
for (const svg of document.querySelectorAll("svg.plot, svg.network")) {
  if (!shown(svg)) continue;
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].map((text) => ({ text, box: text.getBoundingClientRect() }));
  for (const { text, box } of texts) {
    lookedAt++;
    if (box.left < frame.left - 2 || box.right > frame.right + 2 || box.top < frame.top - 2 || box.bottom > frame.bottom + 2)
      faults.push("cut " + name(text));
    const scale = text.getScreenCTM().a;
    if (parseFloat(getComputedStyle(text).fontSize) * scale < 8) faults.push("small " + name(text));
  }
  for (let a = 0; a < texts.length; a++)
    for (let b = a + 1; b < texts.length; b++) {
      const [x, y] = [texts[a].box, texts[b].box];
      const across = Math.min(x.right, y.right) - Math.max(x.left, y.left);
      const along = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
      if (across > 1 && along > 3) faults.push("overlap " + name(texts[a].text) + " and " + name(texts[b].text));
    }
  if (svg.matches(".network"))
    for (const box of svg.querySelectorAll("rect"))
      for (const { text, box: at } of texts.filter(({ text }) => text.matches(".label"))) {
        const r = box.getBoundingClientRect();
        if (Math.min(r.right, at.right) - Math.max(r.left, at.left) > 1 && Math.min(r.bottom, at.bottom) - Math.max(r.top, at.top) > 3)
          faults.push("overlap label " + name(text) + " and a host");
      }
}

// Nothing is wider than the page but what scrolls in its box.
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) faults.push("wide page " + document.documentElement.scrollWidth);
for (const element of document.querySelectorAll("body *")) {
  if (!shown(element) || element.closest("svg")) continue;
  lookedAt++;
  const box = element.getBoundingClientRect();
  if (box.right > width + 1 && !element.closest(".scroll > *, pre > *, pre, .topology > *")) faults.push("wide " + element.tagName + " " + name(element));
}
for (const box of document.querySelectorAll(".scroll, pre"))
  if (shown(box) && box.scrollWidth > box.clientWidth + 1 && !["auto", "scroll"].includes(getComputedStyle(box).overflowX))
    faults.push("wide without scrolling " + name(box));

// WCAG 2.1, 1.4.3: a contrast of 4.5 for text.
const parse = (text) => (text.match(/[\d.]+/g) || []).map(Number);
const luminance = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || !shown(element) || element.closest("script, style, title")) continue;
  lookedAt++;
  const style = getComputedStyle(element);
  const front = parse(element.closest("svg") ? style.fill : style.color);
  const [a, b] = [luminance(front), luminance(behind(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) faults.push("contrast " + contrast.toFixed(1) + " " + name(element));
}

document.body.dataset.faults = faults.slice(0, 40).join("; ");
document.body.dataset.lookedAt = lookedAt;
