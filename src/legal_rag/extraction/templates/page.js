const PASSAGE = 100; // characters: an entity longer than this is underlined, not filled
const MOST_LINES = 3; // under a word that several entities share
const LISTED = 2000; // values in the list beside the text
const PLACES = 60; // of one value, as buttons
const PLACES_NAMED = 4; // of one value, in the list
const NO_FACET = "Non précisée"; // the empty value, among the choices

const settings = JSON.parse(element("settings").textContent);
const labels = new Map(settings.labels);
const preferred = new Map(settings.colours);
const alignments = new Map(settings.alignments);
const label = (name) => labels.get(name) ?? name;

const documents = [...document.querySelectorAll("script.document")].map((block) => ({
  block,
  id: block.dataset.id,
  title: block.dataset.title,
  facets: JSON.parse(block.dataset.facets), // court, date, outcome
  counts: new Map(JSON.parse(block.dataset.counts)),
  read: null,
}));

// A document is parsed when it is first needed. Offsets count code points, which JavaScript's own strings do not.
const read = (one) => {
  if (one.read) return one.read;
  const { text, entities } = JSON.parse(one.block.textContent);
  const characters = /[\ud800-\udfff]/.test(text) ? Array.from(text) : text;
  const slice = (start, end) => (characters === text ? text.slice(start, end) : characters.slice(start, end).join(""));
  one.read = {
    text,
    slice,
    length: characters.length,
    entities: entities.map(([name, start, end, attributes, alignment]) => ({ name, start, end, attributes, alignment })),
  };
  one.block.remove(); // the text is in memory once, not twice
  return one.read;
};

const foldedText = (one) => (read(one).folded ??= fold(read(one).text));
const entityText = (one, entity) => read(one).slice(entity.start, entity.end);
const foldedEntity = (one, entity) =>
  (entity.folded ??= fold([entityText(one, entity), ...entity.attributes.map(([, value]) => value)].join(" ")));

const totals = new Map();
for (const one of documents) for (const [name, count] of one.counts) totals.set(name, (totals.get(name) ?? 0) + count);
const ranked = [...totals.keys()].sort((a, b) => {
  const [first, second] = [preferred.get(a) ?? Infinity, preferred.get(b) ?? Infinity];
  return first === second ? label(a).localeCompare(label(b), "fr") : first - second;
});
const colours = new Map();
for (const name of ranked) {
  const taken = new Set(colours.values());
  let colour = preferred.get(name) ?? 0;
  while (taken.has(colour % settings.palette) && taken.size < settings.palette) colour += 1;
  colours.set(name, colour % settings.palette);
}
const paint = (node, name) => {
  node.style.setProperty("--fill", `var(--fill-${colours.get(name)})`);
  node.style.setProperty("--line", `var(--line-${colours.get(name)})`);
  return node;
};

const shown = new Set(ranked); // classes
let everywhere = false; // whether the list shows the entities of all documents that pass the filters
let current = null; // document
let chosen = null; // entity of it
let visible = []; // entities of it, in order

const isVisible = (one, entity, wanted) =>
  shown.has(entity.name) && (!wanted.length || hasAll(foldedEntity(one, entity), wanted));

const countOf = (one, wanted) => {
  if (wanted.length) return read(one).entities.filter((entity) => isVisible(one, entity, wanted)).length;
  return [...one.counts].reduce((sum, [name, count]) => sum + (shown.has(name) ? count : 0), 0);
};

// A list is one stop for the tab key, however long it is: the arrows go on from there.
const stopAt = (list, button) => {
  for (const other of list.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
  if (button) button.tabIndex = 0;
};

// The list of documents

const listItem = (name, count, detail, act) => {
  const number = make("span", { className: "count" }, count);
  const button = make("button", { type: "button", tabIndex: -1, onclick: act }, make("bdi", {}, name), number, make("small", {}, detail));
  return { item: make("li", {}, button), button, number };
};

const listDocuments = () => {
  for (const one of documents) {
    const title = one.title || one.id;
    Object.assign(one, listItem(title, "", title === one.id ? "" : one.id, () => open(one, true)));
    one.names = fold(`${one.title} ${one.id}`);
  }
  element("document-list").append(...documents.map((one) => one.item));
};

const refreshDocuments = () => {
  const [wanted, wantedEntity] = [wordsIn("document-query"), wordsIn("entity-query")];
  let found = 0;
  for (const one of documents) {
    const count = countOf(one, wantedEntity);
    const passes = passesFacets(one);
    const named = hasAll(one.names, wanted) || wanted.every((word) => one.names.includes(word) || foldedText(one).includes(word));
    one.number.textContent = count.toLocaleString("fr");
    one.item.hidden = !passes || !named || (wantedEntity.length > 0 && count === 0);
    found += one.item.hidden ? 0 : 1;
  }
  element("document-count").textContent =
    found === documents.length ? inFrench(found, "document", "documents") : `${found} sur ${inFrench(documents.length, "document", "documents")}`;
};

// Facets: court, outcome, dates, and the articles that a document cites

const facetValue = (id, value) => element(id).value === "" || element(id).value === (value || NO_FACET);

const squeezed = (text) => fold(text).replace(/[\s.]+/g, "").replace(/[‐‑–]/g, "-");

// "L. 1152-1" is in "article L1152-1 du code du travail", and not in "L. 1152-10"; "1240" is not in "L. 1240".
const citesArticle = (text, wanted) => {
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) {
    const [before, after] = [text.slice(0, at), text.slice(at + wanted.length)];
    const longer = /[\d-]$/.test(before) || /^-?\d/.test(after);
    if (!longer && !(/^\d/.test(wanted) && /(^|articles?|[^a-z])(lo|[lrda])$/.test(before))) return true;
  }
  return false;
};

const articlesOf = (one) =>
  (one.articles ??= read(one).entities
    .filter(({ name }) => settings.articles.includes(name))
    .map((entity) => squeezed([entityText(one, entity), ...entity.attributes.map(([, value]) => value)].join(" "))));

const passesFacets = (one) => {
  const [court, date, outcome] = one.facets;
  const [from, to, article] = [element("date-from").value, element("date-to").value, squeezed(element("article").value)];
  if (!facetValue("court", court) || !facetValue("outcome", outcome)) return false;
  if ((from || to) && !(date && date >= from && (!to || date <= to))) return false;
  return !article || articlesOf(one).some((text) => citesArticle(text, article));
};

const listChoices = (id, index) => {
  const counts = new Map();
  for (const { facets } of documents) counts.set(facets[index] || NO_FACET, (counts.get(facets[index] || NO_FACET) ?? 0) + 1);
  const rows = [...counts].sort(([a, m], [b, n]) => n - m || a.localeCompare(b, "fr"));
  element(id).append(make("option", { value: "" }, "Toutes"), ...rows.map(([value, count]) => make("option", { value }, `${value} (${count.toLocaleString("fr")})`)));
};

const clearFacets = () => {
  for (const id of ["court", "outcome", "date-from", "date-to", "article"]) element(id).value = "";
  refresh();
};

// Values: equal texts of one class are one row, with their places

const groupsOf = (places) => {
  const groups = new Map();
  for (const place of places) {
    const text = entityText(place.one, place.entity);
    const key = `${place.entity.name}\n${fold(text)}`;
    const group = groups.get(key) ?? { text, name: place.entity.name, places: [], documents: new Set() };
    groups.set(key, group);
    group.places.push(place);
    group.documents.add(place.one);
  }
  return [...groups.values()];
};

const placesShown = () => {
  if (!everywhere) return visible.map((entity) => ({ one: current, entity }));
  const wanted = wordsIn("entity-query");
  return documents.filter((one) => !one.item.hidden).flatMap((one) =>
    read(one).entities.filter((entity) => isVisible(one, entity, wanted)).map((entity) => ({ one, entity })));
};

const whereOf = ({ places, documents: inside }) => {
  if (everywhere) return inFrench(inside.size, "document", "documents");
  if (places.length === 1) return "";
  const starts = places.slice(0, PLACES_NAMED).map(({ entity }) => entity.start.toLocaleString("fr"));
  return `aux caractères ${starts.join(", ")}${places.length > PLACES_NAMED ? "…" : ""}`;
};

// A click on a value goes to its first place, another to the next one.
const nextPlace = (group) => {
  const at = group.places.findIndex(({ entity }) => entity === chosen);
  goTo(group.places[(at + 1) % group.places.length]);
};

const goTo = ({ one, entity }) => {
  if (one !== current) open(one, true);
  choose(entity);
};

// CSV as spreadsheets in French open it; a cell that would be a formula is kept a text by an apostrophe.
const csvCell = (value) => {
  const text = String(value);
  const safe = /^[=+@\t\r]|^-(?![\d\s.,]*$)/.test(text) ? `'${text}` : text;
  return /[";\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

const csvText = () => {
  const places = placesShown();
  const counts = new Map(groupsOf(places).flatMap((group) => group.places.map((place) => [place, group.places.length])));
  const head = ["document", "titre", "juridiction", "date", "issue", "classe", "valeur", "début", "fin", "occurrences", "attributs"];
  const rows = places.map((place) => [place, place.one, place.entity]).map(([place, one, entity]) => [
    one.id, one.title, ...one.facets, label(entity.name), entityText(one, entity), entity.start, entity.end, counts.get(place),
    entity.attributes.map(([name, value]) => `${name} : ${value}`).join(" | "),
  ]);
  return `\ufeff${[head, ...rows].map((row) => row.map(csvCell).join(";")).join("\r\n")}\r\n`;
};

const download = () => {
  const address = URL.createObjectURL(new Blob([csvText()], { type: "text/csv;charset=utf-8" }));
  make("a", { href: address, download: "entites.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000); // milliseconds: the browser has read it by then
};

// The text: cut wherever an entity begins or ends, so that entities may lie in or across each other

const cuts = (entities, length) => {
  const places = new Set([0, length]);
  for (const { start, end } of entities) places.add(start).add(end);
  return [...places].sort((a, b) => a - b);
};

const underline = (node, covering) => {
  const lines = covering.slice(0, MOST_LINES).flatMap((entity, level) => [
    `0 ${3 * level + 2}px 0 var(--line-${colours.get(entity.name)})`,
    `0 ${3 * level + 3}px 0 var(--paper)`,
  ]);
  node.style.setProperty("box-shadow", lines.join(", "));
};

const isPassage = (entity) => entity.end - entity.start > PASSAGE;

const markOf = (one, covering, start, end) => {
  const inmost = covering[0];
  const node = paint(make("span", { className: "mark" }, read(one).slice(start, end)), inmost.name);
  node.classList.toggle("passage", isPassage(inmost));
  node.title = covering.map((entity) => label(entity.name)).join(" · ");
  underline(node, covering);
  const beginning = covering.filter((entity) => entity.start === start);
  if (beginning.length) node.classList.add("begins");
  node.dataset.labels = beginning.map((entity) => label(entity.name)).join(" · ");
  node.addEventListener("click", () => choose(inmost));
  for (const entity of covering) entity.marks.push(node);
  return node;
};

const showText = (keepList = false) => {
  const { entities, slice, length } = read(current);
  const wanted = wordsIn("entity-query");
  visible = entities.filter((entity) => isVisible(current, entity, wanted));
  for (const entity of visible) entity.marks = [];
  const places = cuts(visible, length);
  const nodes = [];
  let next = 0;
  let covering = [];
  for (let i = 0; i + 1 < places.length; i += 1) {
    covering = covering.filter((entity) => entity.end > places[i]);
    while (next < visible.length && visible[next].start === places[i]) covering.push(visible[next++]);
    covering.sort((a, b) => a.end - a.start - (b.end - b.start)); // the inmost first
    const [start, end] = [places[i], places[i + 1]];
    nodes.push(covering.length ? markOf(current, covering.slice(), start, end) : slice(start, end));
  }
  element("text").replaceChildren(...nodes);
  if (!keepList) listEntities();
  if (!visible.includes(chosen)) choose(null);
  else choose(chosen);
};

const listEntities = () => {
  const places = placesShown();
  const groups = groupsOf(places);
  for (const group of groups) for (const { entity } of group.places) entity.group = group;
  if (everywhere) groups.sort((a, b) => b.places.length - a.places.length); // else in the order of the text
  const items = groups.slice(0, LISTED).map((group) => {
    const count = group.places.length;
    const detail = [label(group.name), whereOf(group)].filter(Boolean).join(" · ");
    const { item, button } = listItem(group.text.slice(0, 200), count > 1 ? `× ${count.toLocaleString("fr")}` : "", detail, () => nextPlace(group));
    group.button = paint(button, group.name);
    return item;
  });
  element("entity-list").replaceChildren(...items);
  stopAt(element("entity-list"), groups[0]?.button);
  const inside = everywhere ? documents.filter((one) => !one.item.hidden) : [current];
  const all = inside.reduce((sum, one) => sum + [...one.counts.values()].reduce((total, count) => total + count, 0), 0);
  const count = inFrench(all, "entité", "entités");
  const listed = groups.length > LISTED ? `, ${inFrench(LISTED, "montrée", "montrées")}` : "";
  const values = groups.length < places.length ? ` : ${inFrench(groups.length, "valeur", "valeurs")}${listed}` : "";
  element("entity-count").textContent = (places.length === all ? count : `${places.length.toLocaleString("fr")} sur ${count}`) + values;
};

const open = (one, byHand) => {
  current?.button.removeAttribute("aria-current");
  current = one;
  chosen = null;
  one.button.setAttribute("aria-current", "true");
  stopAt(element("document-list"), one.button);
  one.button.scrollIntoView({ block: "nearest" });
  element("title").textContent = one.title || one.id;
  element("identifier").textContent = one.title && one.title !== one.id ? one.id : "";
  showText(everywhere);
  element("reading").scrollTop = 0;
  if (byHand) keepInAddress(one.id);
};

const keepInAddress = (id) => {
  try {
    history.replaceState(null, "", `#${encodeURIComponent(id)}`);
  } catch {
    // a page inside a notebook has no address
  }
};

// The entity chosen

const choose = (entity) => {
  for (const node of document.querySelectorAll(".chosen, .around")) node.classList.remove("chosen", "around");
  for (const node of document.querySelectorAll("[aria-pressed=true]")) node.removeAttribute("aria-pressed");
  chosen = entity;
  element("detail").hidden = !entity;
  if (!entity) return;
  for (const node of entity.marks) {
    node.classList.add(isPassage(entity) ? "around" : "chosen");
    node.style.setProperty("--around", `var(--fill-${colours.get(entity.name)})`);
  }
  const button = entity.group?.button;
  button?.setAttribute("aria-pressed", "true");
  if (button) stopAt(element("entity-list"), button);
  button?.scrollIntoView({ block: "nearest" });
  entity.marks[0]?.scrollIntoView({ block: "center" });
  showDetail(entity);
};

const pairs = (entity) => [
  ...entity.attributes,
  ["caractères", `${entity.start} à ${entity.end}`],
  ...(entity.alignment ? [["repérage", alignments.get(entity.alignment) ?? entity.alignment]] : []),
];

const showDetail = (entity) => {
  const list = make("dl", {}, ...pairs(entity).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  const others = visible.filter((one) => one !== entity && one.start < entity.end && entity.start < one.end);
  const links = others.slice(0, 12).map((one) =>
    make("button", { type: "button", onclick: () => choose(one) }, `${label(one.name)} : ${entityText(current, one).slice(0, 40)}`));
  const close = make("button", { type: "button", onclick: () => choose(null) }, "Fermer");
  const detail = paint(element("detail"), entity.name);
  detail.replaceChildren(make("h3", {}, label(entity.name)), make("blockquote", {}, entityText(current, entity)), list);
  const places = entity.group?.places ?? [];
  if (places.length > 1) detail.append(placesOf(entity, places));
  if (links.length) detail.append(make("p", { className: "choices" }, "Au même endroit :", ...links));
  detail.append(make("p", { className: "choices" }, close));
};

const placesOf = (entity, places) => {
  const at = places.findIndex((place) => place.entity === entity);
  const first = Math.max(0, Math.min(at - PLACES / 2, places.length - PLACES));
  const buttons = places.slice(first, first + PLACES).map((place) => {
    const where = place.entity.start.toLocaleString("fr") + (everywhere ? ` · ${place.one.title || place.one.id}` : "");
    const button = make("button", { type: "button", onclick: () => goTo(place) }, make("bdi", {}, where));
    if (place.entity === entity) button.setAttribute("aria-current", "true");
    return button;
  });
  return make("p", { className: "choices places" }, `Occurrence ${at + 1} sur ${places.length.toLocaleString("fr")}, aux caractères :`, ...buttons);
};

const step = (by) => {
  if (!visible.length) return;
  const at = visible.indexOf(chosen);
  choose(visible[at < 0 ? (by > 0 ? 0 : visible.length - 1) : (at + by + visible.length) % visible.length]);
};

// Filters

const listClasses = () => {
  const rows = ranked.map((name) => {
    const box = make("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => {
      box.checked ? shown.add(name) : shown.delete(name);
      refresh();
    });
    const swatch = paint(make("span", { className: "swatch" }, label(name)), name);
    return make("label", {}, box, swatch, make("span", { className: "count" }, totals.get(name).toLocaleString("fr")));
  });
  element("classes").append(...rows);
};

const checkAll = (checked) => {
  for (const name of ranked) checked ? shown.add(name) : shown.delete(name);
  for (const box of element("classes").querySelectorAll("input")) box.checked = checked;
  refresh();
};

const refresh = () => {
  refreshDocuments();
  if (current?.item.hidden) {
    const first = documents.find((one) => !one.item.hidden);
    if (first) open(first, false);
  }
  if (current) showText();
};

const listen = () => {
  whenTyped(element("document-query"), refresh);
  whenTyped(element("entity-query"), refresh);
  for (const id of ["court", "outcome", "date-from", "date-to"]) element(id).addEventListener("change", refresh);
  whenTyped(element("article"), refresh);
  element("no-facet").addEventListener("click", clearFacets);
  for (const id of ["scope-one", "scope-all"])
    element(id).addEventListener("change", () => {
      everywhere = element("scope-all").checked;
      if (current) showText();
    });
  element("csv").hidden = window !== window.top; // a notebook's frame may not download
  element("csv").addEventListener("click", download);
  element("all-classes").addEventListener("click", () => checkAll(true));
  element("no-class").addEventListener("click", () => checkAll(false));
  element("labels").addEventListener("change", (event) => element("text").classList.toggle("labelled", event.target.checked));
  element("text").addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    step(by);
  });
  document.addEventListener("keydown", (event) => event.key === "Escape" && choose(null));
  addEventListener("hashchange", openAddress);
  walkWithArrows(element("document-list"));
  walkWithArrows(element("entity-list"));
};

const openAddress = () => {
  const wanted = fragment();
  const one = documents.find(({ id }) => id === wanted) ?? current ?? documents[0];
  if (one && one !== current) open(one, false);
};

const all = [...totals.values()].reduce((sum, count) => sum + count, 0);
element("summary").textContent = `${inFrench(documents.length, "document", "documents")}, ${inFrench(all, "entité", "entités")}`;
if (matchMedia("(max-width: 60rem)").matches) element("filters").open = false;
listDocuments();
listClasses();
listChoices("court", 0);
listChoices("outcome", 2);
listen();
refreshDocuments();
openAddress();
if (!documents.length) element("title").textContent = "Aucun document";
