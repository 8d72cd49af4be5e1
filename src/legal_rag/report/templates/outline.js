// A link opens what its place is folded into, and goes there; a frame without an address of its own cannot by itself.
const show = (place) => {
  for (let one = place; one; one = one.parentElement) if (one.localName === "details") one.open = true;
  for (const one of document.querySelectorAll(".reached")) one.classList.remove("reached");
  (place.matches(".note") ? place : place.closest(".stretch") ?? place).classList.add("reached");
  place.scrollIntoView();
};
const placeOf = (link) => document.getElementById(decodeURIComponent(link.hash.slice(1)));
addEventListener("click", (event) => {
  const link = event.target.closest("a.place");
  const place = link && placeOf(link);
  if (!place) return;
  event.preventDefault();
  show(place);
  if (!place.matches("a[href], button, summary")) place.tabIndex = -1;
  place.focus({ preventScroll: true });
});
