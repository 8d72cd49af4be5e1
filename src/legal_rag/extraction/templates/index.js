const MOST_FOUND = 200; // documents listed at once

const pages = [...document.querySelectorAll("script.page")].map((block) => ({
  address: block.dataset.address,
  documents: JSON.parse(block.textContent).map(([id, title, count]) => ({ id, title, count, names: fold(`${title} ${id}`) })),
}));
const total = pages.reduce((sum, page) => sum + page.documents.length, 0);
const addressOf = (page, one) => `${page.address}#${encodeURIComponent(one.id)}`;

const found = (wanted) =>
  pages.flatMap((page) => page.documents.filter((one) => hasAll(one.names, wanted)).map((one) => [page, one]));

const search = () => {
  const wanted = wordsIn("document-query");
  const hits = wanted.length ? found(wanted) : [];
  const items = hits.slice(0, MOST_FOUND).map(([page, one]) =>
    make("li", {}, make("a", { href: addressOf(page, one) }, make("bdi", {}, one.title || one.id),
      make("span", { className: "count" }, inFrench(one.count, "entité", "entités")), make("small", {}, one.title ? one.id : ""))));
  element("document-list").replaceChildren(...items);
  element("document-count").textContent = wanted.length ? `${hits.length.toLocaleString("fr")} sur ${inFrench(total, "document", "documents")}` : "";
};

const openAddress = () => {
  const wanted = fragment();
  for (const page of wanted ? pages : [])
    for (const one of page.documents) if (one.id === wanted) return location.replace(addressOf(page, one));
};

element("finder").hidden = total === 0;
whenTyped(element("document-query"), search);
walkWithArrows(element("document-list"));
addEventListener("hashchange", openAddress);
openAddress();
