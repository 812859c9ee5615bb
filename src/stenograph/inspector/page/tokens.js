// From packed samples to token nodes.

function unpacked(text, type) {
  return new type(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

function arrays(sample) {
  sample.tokens = unpacked(sample.tokens, Int32Array);
  sample.sampled = unpacked(sample.sampled, Uint8Array);
  sample.mask = unpacked(sample.mask, Uint8Array);
  sample.logprobs = unpacked(sample.logprobs, Float32Array);
  sample.reported = Array.from(sample.logprobs).filter((_, at) => sample.sampled[at]);
  const turns = [...new Set(sample.spans.map((span) => span.turn_id))];
  for (const span of sample.spans) {
    span.turn = turns.indexOf(span.turn_id) + 1;
    span.siblings = sample.spans.filter((other) => other.turn_id === span.turn_id);
  }
  sample.turns = turns.length;
}

function segments(sample) {
  const found = [];
  let at = 0;
  for (const span of sample.spans) {
    if (span.start > at) found.push({ start: at, end: span.start, span: null });
    found.push({ start: span.start, end: span.end, span });
    at = span.end;
  }
  if (at < sample.tokens.length) found.push({ start: at, end: sample.tokens.length, span: null });
  return found;
}

// What each token shows. A character that several tokens make up is shown on the last of them.
function spellings(sample) {
  const shown = new Array(sample.tokens.length);
  for (let at = 0; at < shown.length; at++) {
    const own = DATA.tokens[sample.tokens[at]];
    if (typeof own === "string") { shown[at] = { text: own }; continue; }
    const end = wholeFrom(sample.tokens, at);
    if (end < 0) { shown[at] = { code: hex(own) }; continue; }
    const bytes = Array.from(sample.tokens.subarray(at, end), (id) => DATA.tokens[id]).flat();
    for (; at < end - 1; at++) shown[at] = { half: true };
    shown[at] = { text: UTF8.decode(Uint8Array.from(bytes)) };
  }
  return shown;
}

function wholeFrom(tokens, start) {
  const bytes = [];
  for (let end = start; end < tokens.length && end < start + 8; end++) {
    const own = DATA.tokens[tokens[end]];
    if (typeof own === "string") return -1;
    bytes.push(...own);
    try { UTF8.decode(Uint8Array.from(bytes)); return end + 1; } catch { /* more bytes are needed */ }
  }
  return -1;
}

// Characters that hide, or that change how their neighbours are laid out, are named instead of written.
const UNSEEN = /([\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{Cn}\p{Default_Ignorable_Code_Point}])/u;

function mark(className, shown) {
  const node = make("span", `mark ${className}`);
  node.dataset.shown = shown;
  return node;
}

// The glyphs are generated content: text that is copied from the page is the tokens' own.
function written(text) {
  return text.split(UNSEEN).map((piece, at) => {
    if (at % 2 === 0) return piece;
    if (piece === "\n") return make("span", "", mark("", "↵"), "\n");
    if (piece === "\t") return make("span", "", mark("", "⇥"), "\t");
    return mark("code", `U+${piece.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
  });
}

function glyphs(spelling, id) {
  if (spelling.half) return [mark("", "·")];
  if (spelling.code) return [mark("code", spelling.code)];
  return spelling.text === "" ? [mark("code", `id ${id}`)] : written(spelling.text);
}

function tokenNode(sample, at) {
  const id = sample.tokens[at];
  const node = make("span", "token", ...glyphs(sample.shown[at], id));
  node.classList.add(sample.sampled[at] ? `p${step(sample.logprobs[at])}` : "context");
  node.classList.toggle("trained", sample.mask[at] === 1);
  node.classList.toggle("control", CONTROL.has(id));
  node.dataset.at = at;
  node.tabIndex = -1;
  return node;
}

function tokenNodes(sample, start, end) {
  const nodes = [];
  for (let at = start; at < end; at++) nodes.push(tokenNode(sample, at));
  return nodes;
}

const FOLD_ABOVE = 240, FOLD_HEAD = 60, FOLD_TAIL = 90;

function tokensBlock(sample, { start, end, span }) {
  const block = make("div", "tokens");
  if (span === null && end - start > FOLD_ABOVE) {
    const [from, to] = [start + FOLD_HEAD, end - FOLD_TAIL];
    block.append(...tokenNodes(sample, start, from), more(sample, from, to), ...tokenNodes(sample, to, end));
  } else {
    block.append(...tokenNodes(sample, start, end));
  }
  block.querySelector(".token").tabIndex = 0;
  return block;
}

// A long context is folded, so that what the model said is never far.
function more(sample, start, end) {
  const button = make("button", "more", `show ${count(end - start)} more tokens of context`);
  button.type = "button";
  button.addEventListener("click", () => {
    const nodes = tokenNodes(sample, start, end);
    button.replaceWith(...nodes);
    nodes[0].focus();
  });
  return button;
}
