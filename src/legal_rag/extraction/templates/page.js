const PASSAGE = 100; // characters: an entity longer than this is underlined, not filled
const MOST_LINES = 3; // under a word that several entities share
const LISTED = 2000; // entities in the list beside the text

const settings = JSON.parse(element("settings").textContent);
const labels = new Map(settings.labels);
const preferred = new Map(settings.colours);
const alignments = new Map(settings.alignments);
const label = (name) => labels.get(name) ?? name;

const documents = [...document.querySelectorAll("script.document")].map((block) => ({
  block,
  id: block.dataset.id,
  title: block.dataset.title,
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
    const named = hasAll(one.names, wanted) || wanted.every((word) => one.names.includes(word) || foldedText(one).includes(word));
    one.number.textContent = count.toLocaleString("fr");
    one.item.hidden = !named || (wantedEntity.length > 0 && count === 0);
    found += one.item.hidden ? 0 : 1;
  }
  element("document-count").textContent =
    found === documents.length ? inFrench(found, "document", "documents") : `${found} sur ${inFrench(documents.length, "document", "documents")}`;
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

const showText = () => {
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
  listEntities();
  if (!visible.includes(chosen)) choose(null);
  else choose(chosen);
};

const listEntities = () => {
  const items = visible.slice(0, LISTED).map((entity) => {
    const text = entityText(current, entity).slice(0, 200);
    const { item, button } = listItem(text, "", label(entity.name), () => choose(entity));
    paint(button, entity.name);
    entity.button = button;
    return item;
  });
  element("entity-list").replaceChildren(...items);
  stopAt(element("entity-list"), visible[0]?.button);
  const all = read(current).entities.length;
  const count = inFrench(all, "entité", "entités");
  element("entity-count").textContent = visible.length === all ? count : `${visible.length} sur ${count}`;
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
  showText();
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
  entity.button?.setAttribute("aria-pressed", "true");
  stopAt(element("entity-list"), entity.button);
  entity.button?.scrollIntoView({ block: "nearest" });
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
  if (links.length) detail.append(make("p", { className: "choices" }, "Au même endroit :", ...links));
  detail.append(make("p", { className: "choices" }, close));
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
    if (first) return open(first, false);
  }
  if (current) showText();
};

const listen = () => {
  whenTyped(element("document-query"), refresh);
  whenTyped(element("entity-query"), refresh);
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
listen();
refreshDocuments();
openAddress();
if (!documents.length) element("title").textContent = "Aucun document";
