// One case: what it tests, the split, and the result of each subject.

const dialog = document.getElementById("case");
const body = document.getElementById("case-body");

function openCase() {
  const item = caseOf.get(state.case);
  if (item) {
    showCase(item);
  } else {
    body.replaceChildren(
      make("h2", { id: "case-title", tabindex: "-1" }, "There is no such case"),
      make("p", {}, "This run has none of the id ", make("code", {}, ...brokenId(state.case)), "."),
    );
  }
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  document.getElementById("case-title").focus({ preventScroll: true });
  const at = placeInList();
  document.getElementById("previous").disabled = at <= 0;
  document.getElementById("following").disabled = at < 0 || at === found.length - 1;
  document.getElementById("place").textContent = at < 0 ? "" : `${number(at + 1)} of ${number(found.length)}`;
}

function placeInList() {
  return found.findIndex(({ item }) => item.id === state.case);
}

function step(by) {
  const next = found[placeInList() + by];
  if (!next) return;
  replaceState({ ...filtersOnly(), case: next.item.id, engine: state.engine });
  openCase();
}

function showCase(item) {
  const { decision, cut } = item;
  const contents = make("section", { class: "contents" });
  body.replaceChildren(
    make("h2", { id: "case-title", tabindex: "-1" }, ...brokenId(item.id)),
    make("section", {},
      make("h3", {}, item.expects === "refusal" ? "Why it has to be refused" : "What the standard says"),
      make("p", {}, ...sentence(item.rule)),
      decision && make("p", { class: "decision" }, run.errata ? make("a", { href: run.errata, rel: "noreferrer" }, decision) : decision, " ", ...sentence(run.decisions[decision] ?? ""))),
    make("div", { class: "columns" },
      terms([
        ["operator", item.operator],
        ["opset", String(item.opset)],
        ["element type", item.element_type],
        ["shape", `${cut ? `(${cut.shape.join(", ")})` : `rank ${item.rank}`}, ${item.shape_class}`],
        ["axis", cut && String(cut.axis)],
        ["lengths", cut && some(cut.sizes)],
        ["lengths as", item.spelling],
        ["node in", item.place],
        ["sequence use", item.use],
        ["expects", item.expects],
        ["format", item.model_format],
      ]),
      picture(item)),
    contents,
    make("section", { class: "results" }, make("h3", {}, "Results"), ...results(item)),
  );
  showContents(contents, item);
}

// Some numbers, and how many there are in all.
function some(numbers) {
  if (numbers.length <= 16) return numbers.join(", ") || "none";
  return `${numbers.slice(0, 12).join(", ")}, ... (${number(numbers.length)})`;
}

async function showContents(place, item) {
  const found = await contentsOf(item.id);
  if (!found || !place.isConnected) return;
  const text = found.model.length ? found.model.join("\n") : "Not expressible in onnx's text format.";
  place.append(
    make("h3", {}, "Model"), block("Model", text),
    make("h3", {}, "Input"), block("Input", values(found.input) || "none", "values"),
    make("h3", {}, "Expected"), block("Expected", item.expects === "refusal" ? "a refusal" : values(found.expected), "values"),
  );
}

// A line for each array, as the reproduction has them in a dictionary.
function values(lines) {
  return lines.map((line) => line.trim().replace(/,$/, "")).join("\n");
}

function block(title, text, kind = "model") {
  return make("pre", { class: kind, tabindex: "0", "aria-label": title }, make("code", {}, text));
}

function picture({ picture: place }) {
  if (place === undefined) {
    return make("p", { class: "split none" }, "No picture: the case asks for no parts that could be drawn.");
  }
  // Drawn by tensorsplit.pages, which escapes what it writes.
  const svg = new DOMParser().parseFromString(run.pictures[place], "image/svg+xml").documentElement;
  return make("figure", { class: "split" }, document.importNode(svg, true));
}

function results(item) {
  const chosen = item.results.find(({ subject }) => subject === state.engine) ?? item.results[0];
  const fine = (at) => item.results.filter(({ severity }) => severity === at);
  return [
    ...item.results.filter(({ severity }) => severity < PASS).map((result) => resultOf(item.id, result, result === chosen)),
    ...[...outcomes.keys()].filter((at) => at >= PASS && fine(at).length).map((at) =>
      make("p", { class: "fine" }, badge(at), " ", ...fine(at).map(
        ({ subject }, place) => make("span", {}, `${place ? ", " : ""}${subject} `, version(subject))))),
  ];
}

function version(subject) {
  return make("span", { class: "version" }, versionOf(subject));
}

function resultOf(id, result, open) {
  const { subject, severity, deviation } = result;
  const reproduction = make("div", { class: "script" });
  const details = make("details", { class: `result o-${outcomes[severity].key}`, "data-subject": subject },
    make("summary", {}, badge(severity), make("b", {}, subject), version(subject),
      deviation ? null : make("span", { class: "tag" }, "new")),
    make("p", {}, result.detail || outcomes[severity].meaning),
    terms([
      ["signal", result.signal],
      ["output", result.output],
      ["first difference at", result.index && `[${result.index.join(", ")}]`],
      ["expected", result.expected],
      ["seen", result.seen],
      ["memory", result.memory ? "read or written outside a buffer" : ""],
      ["known as", deviation && knownAs(deviation)],
      ["versions", Object.entries(subjectOf.get(subject).versions).map((pair) => pair.join(" ")).join(", ")],
    ]),
    reproduction,
  );
  details.addEventListener("toggle", () => {
    if (!details.open || !details.isConnected || !state.case) return;
    replaceState({ ...state, engine: subject });
    if (!reproduction.hasChildNodes()) showReproduction(reproduction, id, subject);
  });
  details.open = open;
  return details;
}

function knownAs(name) {
  const [seen, link] = run.known[name] ?? ["", ""];
  const shown = link ? make("a", { href: link, rel: "noreferrer" }, name) : name;
  return make("span", {}, shown, ...sentence(seen && `: ${seen}`));
}

async function showReproduction(place, id, subject) {
  const command = `tensorsplit conformance --repro ${id} --engine ${subject}`;
  const script = await scriptOf(id, subject);
  if (place.hasChildNodes()) return;
  if (script) place.append(copyable("Reproduction", script));
  place.append(copyable(script ? "Print it again" : "Print the reproduction", command));
}

function copyable(title, text) {
  const status = make("span", { role: "status", class: "quiet" });
  const code = block(title, text, "code");
  const button = make("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    if (await copied(text)) {
      status.textContent = "Copied";
    } else {
      getSelection().selectAllChildren(code);
      status.textContent = "Selected: copy it with your keyboard";
    }
  });
  return make("div", { class: "copyable" }, make("div", { class: "row" }, make("h4", {}, title), status, button), code);
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedBySelection(text);
  }
}

// Where a page may not use the clipboard itself. A dialog makes all outside of it inert, so the text
// that is selected has to be inside.
function copiedBySelection(text) {
  const holder = make("textarea", { class: "unseen", readonly: "", "aria-hidden": "true", tabindex: "-1" });
  holder.value = text;
  dialog.append(holder);
  const focused = document.activeElement;
  holder.select();
  const done = document.execCommand("copy");
  holder.remove();
  focused?.focus();
  return done;
}
