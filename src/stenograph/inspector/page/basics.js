"use strict";
// Text from agents and models only ever becomes text nodes and attributes: nothing here parses markup.

const DATA = JSON.parse(document.getElementById("data").textContent);
const CONTROL = new Set(DATA.control);
// The steps of the scale, by probability: the classes p0 … p8 of page.css.
const EDGES = [0.99, 0.9, 0.75, 0.5, 0.25, 0.1, 0.02, 0.001];
const LABELS = ["≥ 99%", "≥ 90%", "≥ 75%", "≥ 50%", "≥ 25%", "≥ 10%", "≥ 2%", "≥ 0.1%", "< 0.1%"];
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function make(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== null));
  return node;
}

const count = (number) => number.toLocaleString("en-US");
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
const minus = (text) => text.replace("-", "−");
const signed = (number) => minus(String(number));
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");
const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

// The shortest digits that read back as the same float32: what was reported, no more and no less.
function digits(float32) {
  const short = [6, 7, 8].find((places) => Math.fround(float32.toPrecision(places)) === float32);
  return minus(float32.toPrecision(short ?? 9));
}

function percent(probability) {
  const value = 100 * probability;
  if (value === 100) return "100%";
  if (value > 99.99) return "> 99.99%";
  return value < 0.01 ? "< 0.01%" : `${value.toFixed(value < 1 ? 3 : 2)}%`;
}

function step(logprob) {
  const probability = Math.exp(logprob);
  const place = EDGES.findIndex((edge) => probability >= edge);
  return place < 0 ? EDGES.length : place;
}
