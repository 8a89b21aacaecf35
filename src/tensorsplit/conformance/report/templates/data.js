// The data of the run, inflated as far as the list needs it.

const packed = JSON.parse(document.getElementById("data").textContent);

async function inflate(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

// All of this stands in one asynchronous function, which ends here in a browser that is too old.
if (typeof DecompressionStream === "undefined") {
  document.getElementById("old").hidden = false;
  return;
}
const data = await inflate(packed.run);

const PASS = 7;
const SKIPPED = 8;
const NO_RESULT = 9;

const outcomes = data.outcomes.map(([key, title, meaning]) => ({ key, title, meaning }));
const subjects = data.subjects.map(([name, kind, versions], number) => ({
  name,
  kind,
  versions,
  version: Object.values(versions)[0] ?? "",
  severities: Uint8Array.from(data.verdicts[number], (digit) => (digit === "." ? NO_RESULT : +digit)),
}));
const caseOf = new Map(data.ids.map((id, number) => [id, number]));
const subjectOf = new Map(subjects.map(({ name }, number) => [name, number]));
const lowered = data.ids.map((id) => id.toLowerCase());

// A deviation by its case and subject.
const deviations = new Map(data.found.map((row) => [row[0] * subjects.length + row[1], row]));

function field(name, number) {
  const { values, at } = data.fields[name];
  return values[at[number]];
}

function deviation(number, subject) {
  const row = deviations.get(number * subjects.length + subject);
  if (!row) return null;
  const [detail, signal, output, index, expected, seen, known] = row.slice(2, 9).map((at) => data.texts[at]);
  return { detail, signal, output, index, expected, seen, known, memory: Boolean(row[9]), script: row[10] };
}

// Long texts come in chunks, which are inflated when one of their items is asked for.
const chunks = new Map();

async function item(kind, place) {
  const number = Math.floor(place / packed.chunk);
  const key = `${kind} ${number}`;
  if (!chunks.has(key)) chunks.set(key, inflate(packed[kind][number]));
  return (await chunks.get(key))[place % packed.chunk];
}

async function scriptText(place) {
  const blocks = await item("scripts", place);
  return (await Promise.all(blocks.map((block) => item("blocks", block)))).join("");
}
