// From samples to rows that open as conversations.

function stopText(stop) {
  if (typeof stop === "string") return JSON.stringify(stop);
  return typeof DATA.tokens[stop] === "string" ? DATA.tokens[stop] : `token ${stop}`;
}

function ending(span) {
  return {
    stop: span.stop_reason === null ? "stopped" : `stopped at ${stopText(span.stop_reason)}`,
    length: "cut: no more tokens allowed",
    tool_calls: "called a tool",
    abort: "aborted",
    paused: "paused for new weights",
  }[span.finish_reason] ?? span.finish_reason;
}

function sampling(span) {
  const parameters = Object.entries(span.sampling);
  const told = parameters.filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(DATA.neutral[name]));
  const lines = [
    `by ${span.engine}`,
    `${span.logprob_kind} logprobs`,
    ...told.map(([name, value]) => `${name} ${JSON.stringify(value)}`),
    told.length < parameters.length ? "all others neutral" : "",
  ];
  const rows = lines.map((line) => make("div", "", ...written(line)));
  return make("details", "sampling", make("summary", "", "sampling"), ...rows);
}

function weights(span) {
  const version = span.weight_version === null ? "not known" : span.weight_version;
  return `${version}${span.step === null ? "" : `, step ${span.step}`}`;
}

function spanAside(sample, segment) {
  const span = segment.span;
  const parts = span.siblings.length > 1 ? `, part ${span.siblings.indexOf(span) + 1} of ${span.siblings.length}` : "";
  const choice = span.choice ? `, choice ${span.choice + 1}` : "";
  const reward = sample.rewards[span.turn_id] ?? null;
  const lines = [
    plural(segment.end - segment.start, "token"),
    span.trained ? "trained here" : "trained in another branch",
    `mean logprob ${minus(mean(Array.from(sample.logprobs.subarray(span.start, span.end))).toFixed(3))}`,
    ending(span),
    `weights ${weights(span)}`,
    span.constrained ? "constrained by a grammar" : null,
    reward === null ? null : `reward ${signed(reward)}`,
  ];
  const rows = lines.filter((line) => line !== null).map((line) => make("div", "", ...written(line)));
  return make("aside", "", make("strong", "", `turn ${span.turn}${choice}${parts}`), ...rows, sampling(span));
}

function contextAside(segment) {
  const size = plural(segment.end - segment.start, "token");
  return make("aside", "", make("strong", "", "context"), make("div", "", size));
}

function segmentNode(sample, segment) {
  const kind = segment.span ? `sampled ${segment.span.trained ? "" : "untrained"}` : "context";
  const aside = segment.span ? spanAside(sample, segment) : contextAside(segment);
  const node = make("section", `segment ${kind}`, aside, tokensBlock(sample, segment));
  node.setAttribute("aria-label", `${aside.firstChild.textContent}, ${plural(segment.end - segment.start, "token")}`);
  return node;
}

function forkText(fork) {
  return `forked at message ${fork.at + 1}: ${DATA.forks[fork.reason]}${fork.detail && ` – ${fork.detail}`}`;
}

function about(sample) {
  const chip = (text, kind = "") => make("span", `chip long ${kind}`, ...written(text));
  const notes = new Map();
  for (const note of sample.notes) {
    const text = DATA.notes[note.kind] + (note.detail && ` – ${note.detail}`);
    notes.set(text, (notes.get(text) ?? 0) + 1);
  }
  const node = make("div", "about");
  if (sample.fork) node.append(chip(forkText(sample.fork), "warn"));
  for (const [text, times] of notes) node.append(chip(times > 1 ? `${times} × ${text}` : text));
  for (const [name, score] of Object.entries(sample.scores)) node.append(chip(`score ${name}: ${signed(score)}`));
  for (const [name, value] of Object.entries(sample.metadata)) {
    node.append(chip(`${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`));
  }
  return node.childNodes.length ? node : null;
}

function chips(sample) {
  const texts = [
    sample.branches > 1 ? `branch ${sample.branch + 1} of ${sample.branches}${sample.main ? ", main" : ""}` : null,
    sample.group === null ? null : `group ${sample.group}`,
    sample.role === "train" ? null : sample.role,
    sample.status,
    sample.truncated === null ? null : `cut: ${sample.truncated}`,
    sample.fork ? `fork: ${sample.fork.reason.replaceAll("_", " ")}` : null,
  ];
  const kind = (text) => (/^(cut|fork): /.test(text) ? "chip warn" : "chip");
  return texts.filter((text) => text !== null).map((text) => make("span", kind(text), ...written(text)));
}

const STRIP_CELLS = 240;

// One gradient, in the scale's own variables: it follows the colour scheme, and costs a row one element.
function strip(sample) {
  const size = sample.tokens.length, cells = Math.min(size, STRIP_CELLS);
  const colours = [], lines = [];
  for (let cell = 0; cell < cells; cell++) {
    const from = Math.floor(cell * size / cells), to = Math.floor((cell + 1) * size / cells);
    const reported = Array.from(sample.logprobs.subarray(from, to)).filter((_, at) => sample.sampled[from + at]);
    const place = `${100 * cell / cells}% ${100 * (cell + 1) / cells}%`;
    colours.push(`var(${reported.length ? `--p${step(mean(reported))}` : "--context"}) ${place}`);
    lines.push(`${sample.mask.subarray(from, to).includes(1) ? "var(--accent)" : "transparent"} ${place}`);
  }
  const node = make("div", "strip");
  node.style.backgroundImage = `linear-gradient(90deg, ${colours}), linear-gradient(90deg, ${lines})`;
  return node;
}

function figures(sample) {
  const trained = sample.mask.reduce((sum, bit) => sum + bit, 0);
  return [
    plural(sample.turns, "turn"),
    plural(sample.tokens.length, "token"),
    `${count(sample.reported.length)} sampled`,
    `${count(trained)} trained`,
    sample.reported.length ? `mean logprob ${minus(mean(sample.reported).toFixed(3))}` : null,
    sample.versions.length ? `weights ${sample.versions.join(", ")}` : null,
  ].filter((text) => text !== null).join(" · ");
}

function summaryNode(sample) {
  const value = sample.reward === null ? "–" : signed(sample.reward);
  const reward = make("div", "reward", make("small", "", "reward"), value);
  const name = make("div", "name", make("h2", "", ...written(sample.session_id)), ...chips(sample));
  return make("summary", "", name, reward, strip(sample), make("div", "figures", ...written(figures(sample))));
}

// A rollout is drawn when it is first opened: a hundred of them cost what a hundred rows cost.
function draw(node, sample) {
  if (sample.shown) return;
  sample.shown = spellings(sample);
  node.append(make("div", "body", about(sample), ...segments(sample).map((segment) => segmentNode(sample, segment))));
}

function rolloutNode(sample, at, all) {
  const node = make("details", "rollout", summaryNode(sample));
  node.classList.toggle("next", at > 0 && all[at - 1].session_id === sample.session_id);
  node.sample = sample;
  node.addEventListener("toggle", () => node.open && draw(node, sample));
  node.firstChild.addEventListener("click", () => {
    if (!node.open) history.replaceState(null, "", `#${encodeURIComponent(sample.id)}`);
  });
  return node;
}
