// The filters and the list of cases.

const PAGE = 50;
const form = document.getElementById("filters");
const list = document.getElementById("list");
const nextButton = document.getElementById("next");

let found = [];

function fillFilters() {
  const natural = new Intl.Collator("en", { numeric: true }).compare;
  const options = (select, values) =>
    select.append(...values.map((value) => make("option", { value }, value)));
  options(form.elements.only, [...subjectOf.keys()]);
  for (const [name, field] of Object.entries(FILTERS)) {
    const values = [...new Set(run.cases.map((item) => item[field]))].filter(Boolean);
    options(form.elements[name], values.sort(natural));
    if (!values.length) form.elements[name].closest("label").hidden = true;
  }
  outcomes.forEach(({ key }, severity) => {
    const box = make("input", { type: "checkbox", name: "verdict", value: key });
    const label = make("label", { class: "toggle" }, box, badge(severity), " ", make("span", { class: "n" }));
    document.getElementById("verdicts").append(label);
  });
}

function showFilters() {
  for (const name of NAMES) {
    if (name !== "verdict") form.elements[name].value = state[name] ?? "";
  }
  const chosen = new Set((state.verdict ?? "").split(","));
  for (const box of form.querySelectorAll("[name=verdict]")) box.checked = chosen.has(box.value);
  const more = document.getElementById("more");
  if ([...more.querySelectorAll("select")].some(({ value }) => value)) more.open = true;
}

function readFilters() {
  const values = new FormData(form);
  replaceState(Object.fromEntries(NAMES.map((name) => [name, values.getAll(name).join(",")])));
  showCases();
}

// Whether a result counts: of the subject that is chosen, if one is; known, new, or both.
function counts({ subject, severity, deviation }) {
  if (state.only && state.only !== subject) return false;
  return !state.known || (severity < PASS && Boolean(deviation) === (state.known === "yes"));
}

// What is searched for: a word in the id or in what the results say, or a pattern of the whole id.
function matcher(word) {
  const pattern = /[*?[]/.test(word) ? patternOf(word) : null;
  if (pattern) return (item) => pattern.test(item.id.toLowerCase());
  const says = ({ detail }) => (detail ?? "").toLowerCase().includes(word);
  return (item) => item.id.toLowerCase().includes(word) || item.results.some((result) => counts(result) && says(result));
}

// A pattern as --case takes it: that of a shell, in which * stands for slashes too.
function patternOf(word) {
  const signs = { "*": ".*", "?": ".", "[!": "[^", "[": "[", "]": "]", "-": "-" };
  const source = word.replace(/\[!|[^\w]/g, (sign) => signs[sign] ?? `\\${sign}`);
  try {
    return new RegExp(`^${source}$`);
  } catch {
    return null; // a bracket that nothing closes is a bracket
  }
}

function search() {
  const words = (state.q ?? "").toLowerCase().split(/\s+/).filter(Boolean).map(matcher);
  const fields = Object.entries(FILTERS).filter(([name]) => state[name]);
  const wanted = new Set((state.verdict ?? "").split(",").filter(Boolean));
  const totals = outcomes.map(() => 0);
  const cases = [];
  for (const item of run.cases) {
    if (!fields.every(([name, field]) => item[field] === state[name])) continue;
    if (!words.every((matches) => matches(item))) continue;
    const severities = new Set(item.results.filter(counts).map(({ severity }) => severity));
    for (const severity of severities) totals[severity] += 1;
    const matching = [...severities].filter((at) => !wanted.size || wanted.has(outcomes[at].key));
    if (matching.length) cases.push({ item, worst: Math.min(...matching) });
  }
  cases.sort((left, right) => left.worst - right.worst);
  return { cases, totals };
}

function showCases() {
  const { cases, totals } = search();
  found = cases;
  form.querySelectorAll(".toggle").forEach((label, severity) => {
    label.querySelector(".n").textContent = number(totals[severity]);
    label.hidden = !totals[severity] && !label.querySelector("input").checked;
  });
  const few = found.length ? `${number(found.length)} case${found.length === 1 ? "" : "s"}` : "No case";
  document.getElementById("count").textContent = `${few} of ${number(run.cases.length)}`;
  document.getElementById("reset").hidden = !Object.keys(filtersOnly()).length;
  list.replaceChildren();
  showNext();
}

// Shows another piece of the list, and returns its first link.
function showNext() {
  const shown = list.children.length;
  list.append(...found.slice(shown, shown + PAGE).map(listed));
  const left = found.length - list.children.length;
  nextButton.hidden = !left;
  nextButton.textContent = `Show ${Math.min(left, PAGE)} more of ${number(left)}`;
  return list.children[shown]?.querySelector("a");
}

function listed({ item, worst }) {
  const results = item.results.filter(({ subject }) => !state.only || state.only === subject);
  const first = results.find(({ severity }) => severity === worst);
  const engine = worst < PASS ? first.subject : "";
  const target = address({ ...filtersOnly(), case: item.id, engine });
  const line = outcomes.map((_, at) => results.filter(({ severity }) => severity === at));
  return make(
    "li",
    { class: `o-${outcomes[worst].key}` },
    make("a", { class: "id", href: target }, ...brokenId(item.id)),
    make("p", { class: "verdicts" }, ...line.map(verdictLine)),
    engine && first.detail ? make("p", { class: "told" }, first.detail) : null,
  );
}

function verdictLine(same, severity) {
  if (!same.length) return null;
  const many = severity >= PASS && same.length > 2;
  const names = many ? String(same.length) : same.map(({ subject }) => subject).join(", ");
  return make("span", { class: "verdict" }, badge(severity), ` ${names}`);
}
