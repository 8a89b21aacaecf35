// Events: the address, the keyboard and the mouse.

// Whether the open case was reached from the list, so that going back leads there.
let entered = false;

function show({ moved = false } = {}) {
  const before = JSON.stringify(filtersOnly());
  const wasOpen = Boolean(state.case);
  readAddress();
  entered = moved && Boolean(state.case) && (entered || !wasOpen);
  if (moved && JSON.stringify(filtersOnly()) === before) {
    showOpen();
    return;
  }
  showFilters();
  showCases();
  showOpen();
  if (Object.keys(filtersOnly()).length && !state.case) goToCases();
}

function showOpen() {
  if (state.case) openCase();
  else if (dialog.open) dialog.close();
}

function goToCases() {
  const title = document.getElementById("cases-title");
  title.focus({ preventScroll: true });
  title.scrollIntoView();
}

// Going back takes the case from the address; a page that was opened with a case has nowhere to go.
function leaveCase() {
  if (!state.case) return;
  if (entered) history.back();
  else replaceState(filtersOnly());
}

// A link to what is shown already changes nothing that an event would tell.
function onLink(event) {
  const link = event.target.closest("a[href^='#'][href*='=']");
  if (link && link.hash === location.hash) goToCases();
}

// One stop for the tab key in a table of links; the arrow keys go from cell to cell.
function roam(table) {
  const links = [...table.querySelectorAll("td a")];
  links.forEach((link, at) => link.setAttribute("tabindex", at ? "-1" : "0"));
  table.addEventListener("focusin", ({ target }) => {
    if (!links.includes(target)) return;
    links.forEach((link) => link.setAttribute("tabindex", link === target ? "0" : "-1"));
  });
  table.addEventListener("keydown", (event) => {
    const from = event.target.closest("td a");
    if (!from || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = neighbour(links, from, event.key);
    if (to === undefined) return;
    event.preventDefault();
    to.focus();
  });
}

// The link that a key leads to; undefined for keys that lead nowhere.
function neighbour(links, from, key) {
  const at = links.indexOf(from);
  const row = links.filter((link) => link.closest("tr") === from.closest("tr"));
  switch (key) {
    case "ArrowRight": return links[at + 1] ?? from;
    case "ArrowLeft": return links[at - 1] ?? from;
    case "Home": return row[0];
    case "End": return row.at(-1);
    case "ArrowDown": return inColumn(links.slice(at + 1), from) ?? from;
    case "ArrowUp": return inColumn(links.slice(0, at).reverse(), from) ?? from;
    default: return undefined;
  }
}

// The first link of another row that is in the same column, or the row's first.
function inColumn(links, from) {
  const column = from.closest("td").cellIndex;
  const rows = links.filter((link) => link.closest("tr") !== from.closest("tr"));
  return rows.find((link) => link.closest("td").cellIndex === column) ?? rows[0];
}

fillFilters();
form.hidden = false;
let waiting = 0;
form.addEventListener("input", (event) => {
  clearTimeout(waiting);
  waiting = setTimeout(readFilters, event.target.name === "q" ? 120 : 0);
});
form.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("reset").addEventListener("click", () => {
  replaceState({});
  showFilters();
  showCases();
  form.elements.q.focus();
});
nextButton.addEventListener("click", () => showNext()?.focus());
document.addEventListener("click", onLink);
document.getElementById("close").addEventListener("click", () => dialog.close());
document.getElementById("previous").addEventListener("click", () => step(-1));
document.getElementById("following").addEventListener("click", () => step(1));
dialog.addEventListener("close", leaveCase);
dialog.addEventListener("click", (event) => {
  const outside = event.clientX < dialog.getBoundingClientRect().left;
  if (event.target === dialog && outside) dialog.close();
});
dialog.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const isFree = !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("pre, textarea");
  if (by && isFree) step(by);
});
document.querySelectorAll(".wide table").forEach(roam);
window.addEventListener("hashchange", () => show({ moved: true }));
show();
