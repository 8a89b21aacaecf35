// The filters and the list of cases.

const PAGE = 50;
const form = document.getElementById("filters");
const list = document.getElementById("list");
const nextButton = document.getElementById("next");

let found = [];
let shown = 0;

function fillFilters() {
  const options = (select, values) =>
    select.append(...values.map((value) => make("option", { value }, value)));
  options(form.elements.only, subjects.map(({ name }) => name));
  for (const [name, column] of Object.entries(FILTERS)) {
    const values = data.fields[column].values.filter((value) => value);
    options(form.elements[name], values.sort(natural));
    if (!values.length) form.elements[name].closest("label").hidden = true;
  }
  outcomes.forEach(({ key }, severity) => {
    const box = make("input", { type: "checkbox", name: "verdict", value: key });
    const label = make("label", { class: "toggle" }, box, badge(severity), " ", make("span", { class: "n" }));
    document.getElementById("verdicts").append(label);
  });
}

const natural = new Intl.Collator("en", { numeric: true }).compare;

function showFilters() {
  for (const name of NAMES) {
    if (name !== "verdict") form.elements[name].value = state[name] ?? "";
  }
  const chosen = new Set((state.verdict ?? "").split(","));
  for (const box of form.querySelectorAll("[name=verdict]")) box.checked = chosen.has(box.value);
  const more = [...form.querySelectorAll("#more select")].some(({ value }) => value);
  if (more) document.getElementById("more").open = true;
}

function readFilters() {
  const values = new FormData(form);
  const wanted = Object.fromEntries(NAMES.map((name) => [name, values.getAll(name).join(",")]));
  replaceState(wanted);
  showCases();
}

// Which results of a case count: those of one subject, or of all; known, new, or both.
function relevant(number, chosen) {
  return chosen.filter((subject) => {
    const severity = subjects[subject].severities[number];
    if (severity === NO_RESULT) return false;
    if (!state.known) return true;
    return severity < PASS && Boolean(deviation(number, subject).known) === (state.known === "yes");
  });
}

function search() {
  const words = (state.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const columns = Object.entries(FILTERS)
    .filter(([name]) => state[name])
    .map(([name, column]) => [data.fields[column].at, data.fields[column].values.indexOf(state[name])]);
  const chosen = state.only ? [subjectOf.get(state.only) ?? -1].filter((at) => at >= 0) : [...subjects.keys()];
  const wanted = new Set((state.verdict ?? "").split(",").filter(Boolean));
  const counts = new Uint32Array(outcomes.length);
  const cases = [];
  for (let number = 0; number < data.ids.length; number += 1) {
    if (!columns.every(([at, value]) => at[number] === value)) continue;
    if (!words.every((word) => lowered[number].includes(word))) continue;
    const severities = new Set(relevant(number, chosen).map((at) => subjects[at].severities[number]));
    for (const severity of severities) counts[severity] += 1;
    const matching = [...severities].filter((at) => !wanted.size || wanted.has(outcomes[at].key));
    if (matching.length) cases.push({ number, worst: Math.min(...matching) });
  }
  cases.sort((left, right) => left.worst - right.worst || left.number - right.number);
  return { cases, counts };
}

function showCases() {
  const { cases, counts } = search();
  found = cases;
  form.querySelectorAll(".toggle").forEach((label, severity) => {
    label.querySelector(".n").textContent = counts[severity].toLocaleString("en");
    label.hidden = !counts[severity] && !label.querySelector("input").checked;
  });
  const few = found.length ? plural(found.length, "case") : "No case";
  document.getElementById("count").textContent = `${few} of ${data.ids.length.toLocaleString("en")}`;
  document.getElementById("reset").hidden = !Object.keys(filtersOnly()).length;
  list.replaceChildren();
  shown = 0;
  showNext();
}

function showNext() {
  const page = found.slice(shown, shown + PAGE);
  const first = list.children.length;
  list.append(...page.map(caseItem));
  shown += page.length;
  const left = found.length - shown;
  nextButton.hidden = !left;
  nextButton.textContent = `Show ${Math.min(left, PAGE)} more of ${left.toLocaleString("en")}`;
  return list.children[first]?.querySelector("a");
}

function caseItem({ number, worst }) {
  const chosen = state.only ? [subjectOf.get(state.only)] : [...subjects.keys()];
  const bySeverity = outcomes.map(() => []);
  for (const at of chosen) {
    const severity = subjects[at].severities[number];
    if (severity !== NO_RESULT) bySeverity[severity].push(at);
  }
  const engine = subjects[bySeverity[worst][0]].name;
  const target = address({ ...filtersOnly(), case: data.ids[number], engine: worst < PASS ? engine : "" });
  const link = make("a", { class: "id", href: target }, ...brokenId(data.ids[number]));
  const line = bySeverity.flatMap((same, severity) => (same.length ? [verdictLine(severity, same)] : []));
  const told = worst < PASS ? deviation(number, bySeverity[worst][0]).detail : "";
  return make(
    "li",
    { class: `o-${outcomes[worst].key}` },
    link,
    make("p", { class: "verdicts" }, ...line),
    told ? make("p", { class: "told" }, told) : null,
  );
}

function verdictLine(severity, same) {
  const many = severity >= PASS && same.length > 2;
  const names = many ? String(same.length) : same.map((at) => subjects[at].name).join(", ");
  return make("span", { class: "verdict" }, badge(severity), ` ${names}`);
}
