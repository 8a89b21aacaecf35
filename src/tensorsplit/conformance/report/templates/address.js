// What is shown stands in the address, after the #: filters, and the case that is open.

const FILTERS = {
  operator: "operator",
  type: "element_type",
  decision: "decision",
  place: "place",
  spelling: "spelling",
  shape: "shape_class",
  use: "use",
  expects: "expects",
};
const NAMES = ["q", "only", ...Object.keys(FILTERS), "verdict", "known"];

let state = {};

// A plain anchor, such as the link that skips to the cases, leaves the state as it is.
function readAddress() {
  const words = location.hash.slice(1);
  if (words && !words.includes("=")) return;
  const found = new URLSearchParams(words);
  state = {};
  for (const name of [...NAMES, "case", "engine"]) {
    const value = found.get(name);
    if (value) state[name] = value;
  }
}

function address(wanted) {
  const entries = Object.entries(wanted).filter(([, value]) => value);
  const words = new URLSearchParams(entries).toString();
  return `#${words.replaceAll("%2F", "/").replaceAll("%2C", ",")}`;
}

function filtersOnly() {
  return Object.fromEntries(NAMES.map((name) => [name, state[name]]).filter(([, value]) => value));
}

function replaceState(wanted) {
  history.replaceState(null, "", address(wanted));
  readAddress();
}
