"""What a body has beside the fields that are served: labels, what must be refused, and what can be left out.

CONTRACT 4 draws the line. A parameter that changes what is sampled or what is answered is honoured or refused, so
every such parameter that OpenAI, vLLM, SGLang, llama.cpp or transformers is known to take, and that is not served
here, stands in `NEUTRAL` with the values that ask for nothing; null always does. Any other field is somebody's
extension: an agent that sends it is served without it, and the call says so in a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stenograph.core import JSON, Note, NoteKind
from stenograph.wire import body

LABELS = frozenset(
    {"metadata", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "service_tier", "store", "user"}
)
"""Kept with the call, without effect."""

BUILT_IN_TOOLS = frozenset({"web_search_options"})
"""Fields that switch on a tool which only OpenAI can run."""

_OPENAI: dict[str, tuple[JSON, ...]] = {
    "audio": (),
    "background": (False,),
    "conversation": (),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "modalities": (["text"],),
    "prompt": (),
}
_VLLM: dict[str, tuple[JSON, ...]] = {
    "add_special_tokens": (False,),
    "allowed_token_ids": (),
    "bad_words": ([],),
    "best_of": (1,),
    "chat_template": (),
    "detokenize": (True,),
    "documents": ([],),
    "early_stopping": (False,),
    "echo": (False,),
    "include_reasoning": (True,),
    "include_stop_str_in_output": (False,),
    "length_penalty": (1,),
    "logits_processors": ([],),
    "logprob_token_ids": (),
    "prompt_logprobs": (),
    "repetition_detection": (),
    "return_prompt_text": (False,),
    "skip_special_tokens": (True,),
    "thinking_token_budget": (-1,),
    "truncate_prompt_tokens": (),
    "use_beam_search": (False,),
    "vllm_xargs": ({},),
    "watermarking": (False,),
}
_SGLANG: dict[str, tuple[JSON, ...]] = {
    "custom_logit_processor": (),
    "ebnf": (),
    "json_schema": (),
    "lora_path": (),
    "no_stop_trim": (False,),
    "regex": (),
    "sampling_seed": (),
    "separate_reasoning": (True,),
    "stop_regex": ([],),
    "structural_tag": (),
}
_LLAMACPP: dict[str, tuple[JSON, ...]] = {
    "dry_multiplier": (0,),
    "dynatemp_range": (0,),
    "grammar": ("",),
    "lora": ([],),
    "mirostat": (0,),
    "n_predict": (-1,),
    "repeat_penalty": (1,),
    "samplers": (),
    "tfs_z": (1,),
    "top_n_sigma": (-1, 0),
    "typical_p": (1,),
    "xtc_probability": (0,),
}
_TRANSFORMERS: dict[str, tuple[JSON, ...]] = {
    "do_sample": (True,),
    "encoder_repetition_penalty": (1,),
    "epsilon_cutoff": (0,),
    "eta_cutoff": (0,),
    "guidance_scale": (1,),
    "max_new_tokens": (),
    "no_repeat_ngram_size": (0,),
    "num_beams": (1,),
    "penalty_alpha": (0,),
    "stop_sequences": ([],),
    "thinking_budget": (),
    "top_a": (0,),
}
NEUTRAL = _OPENAI | _VLLM | _SGLANG | _LLAMACPP | _TRANSFORMERS
GUIDED = "guided_"
"""vLLM's older spelling of `structured_outputs`: `guided_json`, `guided_regex`, …"""


def labels(fields: body.Fields) -> dict[str, JSON]:
    found = {name: body.value(fields[name], name) for name in sorted(LABELS & fields.keys())}
    return {name: value for name, value in found.items() if value is not None}


def notes(fields: body.Fields, served: frozenset[str], under: str = "") -> Iterator[Note]:
    """Refuses what may not be dropped; says what is. `under`: where in the body these fields stand."""
    for name in sorted(fields.keys() - served - LABELS):
        asks_for_something = not body.is_null(fields[name])
        if name in NEUTRAL or name.startswith(GUIDED):
            refuse_unless_neutral(name, body.value(fields[name], under + name), under)
        elif asks_for_something:
            yield ignored(under + name, NoteKind.TOOL_IGNORED if name in BUILT_IN_TOOLS else NoteKind.FIELD_IGNORED)


def refuse_unless_neutral(name: str, value: JSON, under: str = "") -> None:
    neutral = NEUTRAL.get(name, ())
    if value is not None and value not in neutral:
        raise body.refuse(
            under + name,
            "it is not supported here, and an answer without it would not be what was asked for",
            code="unsupported_parameter",
        )


def ignored(name: str, kind: NoteKind = NoteKind.FIELD_IGNORED) -> Note:
    return Note(kind, name)


def each_once(notes: Iterable[Note]) -> tuple[Note, ...]:
    return tuple(dict.fromkeys(notes))
