// The drawing moves under the mouse, fingers and keys; filters hide, in the drawing and in the table alike.
const all = (selector) => [...document.querySelectorAll(selector)];
const one = (selector) => document.querySelector(selector);
const drawing = one("#drawing > svg"), stage = one(".stage"), form = one("#filters"), card = one("#panel .card");
const nodes = all("g.node"), links = all(".links .link"), rows = all("tbody tr");
const box = drawing.viewBox.baseVal, size = { width: box.width, height: box.height }, whole = drawing.getAttribute("viewBox");
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const LEAST_READABLE = 0.7, REACH = 60;
document.body.classList.add("live");

const svg = d3.select(drawing);
const zoom = d3.zoom().scaleExtent([0.05, 4])
  .translateExtent([[-REACH, -REACH], [size.width + REACH, size.height + REACH]])
  .filter((event) => !event.button && (event.type !== "wheel" || event.ctrlKey || event.metaKey))
  .on("zoom", ({ transform }) => stage.setAttribute("transform", transform.toString()));
const moved = () => (still ? svg : svg.transition().duration(250));
const fitting = () => Math.min(1.2, drawing.clientWidth / size.width, drawing.clientHeight / size.height);
const placeOf = (node) => node.transform.baseVal.consolidate().matrix;
const fit = (selection = moved()) => zoom.transform(selection, d3.zoomIdentity
  .translate((drawing.clientWidth - size.width * fitting()) / 2, (drawing.clientHeight - size.height * fitting()) / 2).scale(fitting()));
const centre = (node, selection = moved()) => {
  const { e, f } = placeOf(node);
  zoom.transform(selection, d3.zoomIdentity.translate(drawing.clientWidth / 2, drawing.clientHeight / 2)
    .scale(Math.max(fitting(), LEAST_READABLE)).translate(-e - 86, -f - 12));
};
drawing.removeAttribute("viewBox");
svg.call(zoom).on("dblclick.zoom", null);
if (fitting() >= LEAST_READABLE) fit(svg);
else centre(nodes[0], svg);

// On paper the whole drawing stands in the width of the page.
const onPaper = (isOn) => {
  if (isOn) { drawing.setAttribute("viewBox", whole); stage.removeAttribute("transform"); }
  else { drawing.removeAttribute("viewBox"); stage.setAttribute("transform", d3.zoomTransform(drawing).toString()); }
};
matchMedia("print").addEventListener("change", ({ matches }) => onPaper(matches));

one("#closer").addEventListener("click", () => zoom.scaleBy(moved(), 1.4));
one("#farther").addEventListener("click", () => zoom.scaleBy(moved(), 1 / 1.4));
one("#fit").addEventListener("click", () => fit());
one("#middle").addEventListener("click", () => centre(nodes[0]));

// A node's card: its name, and what the table says of its links.
const quoteOf = (row) => {
  const part = document.createElement("div");
  part.className = row.className;
  for (const cell of [row.cells[0], row.cells[3]]) {
    const line = document.createElement("p");
    if (cell === row.cells[0]) line.append(one("h1").firstElementChild.cloneNode(true), " ");
    line.append(...[...cell.childNodes].map((child) => child.cloneNode(true)));
    part.append(line);
  }
  return part;
};
const choose = (number, isFocused) => {
  const node = nodes[number], of = rows.filter((row) => row.dataset.node === String(number));
  for (const other of nodes) other.setAttribute("aria-pressed", String(other === node));
  for (const link of links) link.classList.toggle("chosen", Boolean(node) && link.dataset.node === String(number));
  card.hidden = !node;
  one(".hint").hidden = Boolean(node);
  if (!node) return;
  card.querySelector("h2 bdi").textContent = node.getAttribute("aria-label");
  card.querySelector(".facts").replaceChildren(...[...(of[0]?.querySelector(".facts") ?? one("header .quiet")).childNodes].map((child) => child.cloneNode(true)));
  card.querySelector(".quotes").replaceChildren(...of.map(quoteOf));
  for (const other of nodes) other.tabIndex = other === node ? 0 : -1;
  if (isFocused) card.querySelector("h2").focus();
};
one("#close").addEventListener("click", () => { const last = one("g.node[aria-pressed=true]"); choose(-1); last?.focus(); });
for (const [number, node] of nodes.entries()) node.addEventListener("click", () => choose(number, innerWidth <= 960));
addEventListener("click", (event) => {
  const named = event.target.closest("button.plain");
  if (!named) return;
  choose(Number(named.dataset.node));
  centre(nodes[named.dataset.node]);
  one("#drawing").scrollIntoView({ block: "nearest" });
  card.querySelector("h2").focus({ preventScroll: innerWidth > 960 });
});

// Arrows go to the nearest node on that side.
const SIDES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const nearest = (from, [across, down]) => {
  const { e, f } = placeOf(from);
  let best = null, least = Infinity;
  for (const other of nodes) {
    const { e: x, f: y } = placeOf(other), along = (x - e) * across + (y - f) * down;
    const far = along + 2 * Math.abs((x - e) * down) + 2 * Math.abs((y - f) * across);
    if (other !== from && along > 0 && far < least && !other.hasAttribute("hidden")) [best, least] = [other, far];
  }
  return best;
};
drawing.addEventListener("keydown", (event) => {
  const node = event.target.closest("g.node");
  if (!node) return;
  if (event.key === "Enter" || event.key === " ") choose(nodes.indexOf(node), true);
  else if (event.key === "+" || event.key === "-") zoom.scaleBy(moved(), event.key === "+" ? 1.4 : 1 / 1.4);
  else if (SIDES[event.key]) {
    const next = nearest(node, SIDES[event.key]);
    if (next) { node.tabIndex = -1; next.tabIndex = 0; next.focus({ preventScroll: true }); centre(next); }
  } else return;
  event.preventDefault();
});
addEventListener("keydown", (event) => { if (event.key === "Escape" && !card.hidden) one("#close").click(); });

// Filters.
const folded = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
const words = nodes.map((node, number) => folded([node.getAttribute("aria-label"), ...rows.filter((row) => row.dataset.node === String(number)).map((row) => row.textContent)].join(" ")));
const show = () => {
  const data = new FormData(form), kinds = new Set(data.getAll("kind")), lanes = new Set(data.getAll("lane"));
  const from = Number(one("#from")?.value) || -Infinity, to = Number(one("#to")?.value) || Infinity;
  const asked = folded(one("#search").value).split(/\s+/).filter(Boolean);
  const isShown = nodes.map((node, number) => {
    const year = Number(node.dataset.year);
    return !number || (lanes.has(node.dataset.lane) && (!year || (year >= from && year <= to)));
  });
  const linked = new Set([0]);
  for (const some of [links, rows]) {
    for (const link of some) {
      const number = Number(link.dataset.node), passes = isShown[number] && kinds.has(link.dataset.kind);
      if (passes) linked.add(number);
      const isFound = asked.every((word) => words[number].includes(word));
      link.toggleAttribute("hidden", !passes || (some === rows && !isFound));
      link.classList.toggle("away", passes && !isFound);
    }
  }
  let found = 0;
  for (const [number, node] of nodes.entries()) {
    const isFound = asked.every((word) => words[number].includes(word));
    node.toggleAttribute("hidden", !linked.has(number));
    node.classList.toggle("found", asked.length > 0 && isFound);
    node.classList.toggle("away", number > 0 && !isFound);
    found += number > 0 && linked.has(number) && isFound;
  }
  const total = nodes.length - 1;
  one("#status").textContent = found === total ? `${total} nœud${total > 1 ? "s" : ""} autour de celui-ci.` : `${found} nœud${found > 1 ? "s" : ""} sur ${total} répond${found > 1 ? "ent" : ""} aux filtres.`;
};
form.addEventListener("input", show);
form.addEventListener("reset", () => setTimeout(show));
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const first = nodes.find((node) => node.classList.contains("found") && !node.hasAttribute("hidden"));
  if (first) { choose(nodes.indexOf(first)); centre(first); }
});
show();
