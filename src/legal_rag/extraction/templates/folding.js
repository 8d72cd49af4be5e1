// Text as it is compared in searches: without case, accents or typography.
const fold = (text) =>
  text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().replace(/[’‘]/g, "'").replace(/œ/g, "oe")
    .replace(/æ/g, "ae").replace(/\s+/g, " ").trim();

// What is typed is words: all of them have to be there, wherever.
const wordsIn = (id) => fold(element(id).value).split(" ").filter(Boolean);
const hasAll = (folded, words) => words.every((word) => folded.includes(word));

const element = (id) => document.getElementById(id);

const make = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children); // as text: nothing that a document says is ever read as markup
  return made;
};

const inFrench = (count, one, many) => `${count.toLocaleString("fr")} ${count < 2 ? one : many}`;

// Up and down, home and end among the buttons or links of a list.
const walkWithArrows = (list) =>
  list.addEventListener("keydown", (event) => {
    const all = [...list.querySelectorAll("li:not([hidden]) > :is(a, button)")];
    const at = all.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (next === undefined || at < 0) return;
    event.preventDefault();
    all[Math.max(0, Math.min(next, all.length - 1))].focus();
  });

const whenTyped = (input, act) => {
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(act, 150); // milliseconds: once the typing pauses
  });
};

const fragment = () => {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return ""; // not a fragment of ours
  }
};
