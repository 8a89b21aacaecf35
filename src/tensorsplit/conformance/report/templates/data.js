// The run, unpacked by the browser, and the state of the page: what is shown is in the address,
// after the #: filters, and the case that is open.

async function unpacked(id) {
  const text = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

// All of this is in one asynchronous function, which ends here in a browser that is too old.
if (typeof DecompressionStream === "undefined") {
  document.getElementById("old").hidden = false;
  return;
}
const run = await unpacked("run");

// The scripts and models are large, and unpacked when the first case is shown.
let texts = null;

async function scriptOf(id, subject) {
  texts ??= unpacked("scripts");
  const { lines, scripts } = await texts;
  return scripts[id]?.[subject]?.map((number) => lines[number]).join("\n");
}

// The model of a case, its input and what is expected, each as lines; undefined for a case that was
// not known where the page was made.
async function contentsOf(id) {
  texts ??= unpacked("scripts");
  const { lines, contents } = await texts;
  const linesOf = (numbers = []) => numbers.map((number) => lines[number]);
  const { [id]: found } = contents;
  return found && { model: linesOf(found.model), input: linesOf(found.input), expected: linesOf(found.expected) };
}

const { outcomes } = run;
const PASS = outcomes.findIndex(({ key }) => key === "pass");
const subjectOf = new Map(run.subjects.map((subject) => [subject.name, subject]));
const caseOf = new Map(run.cases.map((item) => [item.id, item]));

for (const { results } of run.cases) results.sort((left, right) => left.severity - right.severity);

function versionOf(subject) {
  return Object.values(subjectOf.get(subject).versions)[0] ?? "";
}

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
  const given = new URLSearchParams(words);
  const values = [...NAMES, "case", "engine"].map((name) => [name, given.get(name)]);
  state = Object.fromEntries(values.filter(([, value]) => value));
}

function address(wanted) {
  const words = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value)).toString();
  return `#${words.replaceAll("%2F", "/").replaceAll("%2C", ",")}`;
}

function filtersOnly() {
  return Object.fromEntries(NAMES.map((name) => [name, state[name]]).filter(([, value]) => value));
}

function replaceState(wanted) {
  history.replaceState(null, "", address(wanted));
  readAddress();
}

// Elements, made without HTML in texts: what engines say is never parsed.

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

// The legend of the page has one of each.
function badge(severity) {
  return document.querySelector(`.legend .o-${outcomes[severity].key}`).cloneNode(true);
}

// A case's id, which may break after each of its segments.
function brokenId(id) {
  return id.split("/").flatMap((segment, at) => (at ? ["/", make("wbr"), segment] : [segment]));
}

// A sentence of our own, in which names are between backticks.
function sentence(text) {
  return text.split("`").map((piece, at) => (at % 2 ? make("code", {}, piece) : piece));
}

function terms(rows) {
  const shown = rows.filter(([, value]) => value);
  const made = shown.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  return make("dl", { class: "terms" }, ...made);
}

function number(count) {
  return count.toLocaleString("en");
}
