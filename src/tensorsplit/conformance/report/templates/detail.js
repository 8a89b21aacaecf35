// One case: what it tests, the cut, and what came of it with each subject.

const dialog = document.getElementById("case");
const body = document.getElementById("case-body");

function openCase() {
  const number = caseOf.get(state.case);
  if (number === undefined) {
    body.replaceChildren(
      make("h2", { id: "case-title", tabindex: "-1" }, "There is no such case"),
      make("p", {}, "This run has none of the id ", make("code", {}, ...brokenId(state.case)), "."),
    );
  } else {
    showCase(number);
  }
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  document.getElementById("case-title").focus({ preventScroll: true });
  showPlace(number);
}

function showPlace(number) {
  const at = found.findIndex((entry) => entry.number === number);
  document.getElementById("previous").disabled = at <= 0;
  document.getElementById("following").disabled = at < 0 || at === found.length - 1;
  document.getElementById("place").textContent =
    at < 0 ? "" : `${(at + 1).toLocaleString("en")} of ${found.length.toLocaleString("en")}`;
}

function step(by) {
  const at = found.findIndex((entry) => entry.number === caseOf.get(state.case)) + by;
  if (!found[at]) return;
  replaceState({ ...filtersOnly(), case: data.ids[found[at].number], engine: state.engine });
  openCase();
}

function showCase(number) {
  const decision = field("decision", number);
  const expects = field("expects", number);
  body.replaceChildren(
    make("h2", { id: "case-title", tabindex: "-1" }, ...brokenId(data.ids[number])),
    make("section", { class: "rule" },
      make("h3", {}, expects === "refusal" ? "Why it has to be refused" : "What the standard says"),
      make("p", {}, ...sentence(field("rule", number))),
      decision ? make("p", { class: "decision" }, make("b", {}, decision), " ", ...sentence(data.decisions[decision] ?? "")) : null,
    ),
    make("div", { class: "columns" }, facts(number), cut(number)),
    make("section", { class: "results" }, make("h3", {}, "What came of it"), ...results(number)),
  );
}

function facts(number) {
  return terms([
    ["operator", field("operator", number)],
    ["opset", String(data.opsets[number])],
    ["element type", field("element_type", number)],
    ["shape", `rank ${data.ranks[number]}, ${field("shape_class", number)}`],
    ["lengths as", field("spelling", number)],
    ["place", field("place", number)],
    ["sequence use", field("use", number)],
    ["expects", field("expects", number)],
    ["format", field("model_format", number)],
  ]);
}

function cut(number) {
  const picture = data.cuts[number];
  if (picture < 0) {
    return make("p", { class: "cut none" }, "No picture: the case asks for no parts that could be drawn.");
  }
  const figure = make("figure", { class: "cut" });
  item("pictures", picture).then((svg) => {
    // Drawn by tensorsplit.pictures, which escapes what it writes.
    const drawing = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    figure.append(document.importNode(drawing, true));
  });
  return figure;
}

function results(number) {
  const order = [...subjects.keys()]
    .filter((at) => subjects[at].severities[number] !== NO_RESULT)
    .sort((left, right) => subjects[left].severities[number] - subjects[right].severities[number]);
  const chosen = subjectOf.get(state.engine) ?? order[0];
  const fine = (severity) => order.filter((at) => subjects[at].severities[number] === severity);
  const lines = [PASS, SKIPPED].filter((severity) => fine(severity).length);
  return [
    ...order
      .filter((at) => subjects[at].severities[number] < PASS)
      .map((at) => resultOf(number, at, at === chosen)),
    ...lines.map((severity) => make("p", { class: "fine" }, badge(severity), " ", ...fine(severity).map(
      (at, place) => make("span", {}, `${place ? ", " : ""}${subjects[at].name} `, version(at)),
    ))),
  ];
}

function version(at) {
  return make("span", { class: "version" }, subjects[at].version);
}

function resultOf(number, at, open) {
  const told = deviation(number, at);
  const severity = subjects[at].severities[number];
  const script = make("div", { class: "script" });
  const details = make(
    "details",
    { class: `result o-${outcomes[severity].key}`, "data-subject": subjects[at].name },
    make("summary", {}, badge(severity), make("b", {}, subjects[at].name), version(at),
      told.known ? null : make("span", { class: "tag" }, "new")),
    make("p", {}, told.detail || outcomes[severity].meaning),
    terms([
      ["signal", told.signal],
      ["output", told.output],
      ["first difference at", told.index],
      ["expected", told.expected],
      ["seen", told.seen],
      ["memory", told.memory ? "read or written outside a buffer" : ""],
      ["known as", knownAs(told.known)],
      ["versions", Object.entries(subjects[at].versions).map((pair) => pair.join(" ")).join(", ")],
    ]),
    script,
  );
  details.addEventListener("toggle", () => {
    if (!details.open || !details.isConnected || !state.case) return;
    replaceState({ ...state, engine: subjects[at].name });
    if (!script.hasChildNodes()) showScript(script, number, at, told.script);
  });
  details.open = open;
  return details;
}

function knownAs(name) {
  const [seen, link] = data.known[name] ?? ["", ""];
  const shown = link ? make("a", { href: link, rel: "noreferrer" }, name) : name;
  return name && make("span", {}, shown, ...sentence(seen && `: ${seen}`));
}

function showScript(place, number, at, script) {
  const command = `tensorsplit conformance --repro ${data.ids[number]} --engine ${subjects[at].name}`;
  if (script < 0) {
    place.append(copyable("Print the reproduction", command));
    return;
  }
  scriptText(script).then((text) => {
    place.append(copyable("Reproduction", text), copyable("Print it again", command));
  });
}

function copyable(title, text) {
  const status = make("span", { role: "status", class: "quiet" });
  const code = make("pre", { tabindex: "0", "aria-label": title }, make("code", {}, text));
  const button = make("button", { type: "button", onclick: async () => {
    if (await copy(text, dialog)) {
      status.textContent = "Copied";
    } else {
      getSelection().selectAllChildren(code);
      status.textContent = "Selected: copy it with your keyboard";
    }
  } }, "Copy");
  return make("div", { class: "copyable" }, make("div", { class: "row" }, make("h4", {}, title), status, button), code);
}
