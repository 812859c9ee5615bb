"""Templates that nobody has seen: what a fine-tune may bring, each odd in its own way."""

PLAIN_TEXT = (
    "{% for m in messages %}"
    "{% if m.role == 'system' %}### Instructions:\n{{ m.content }}\n\n"
    "{% elif m.role == 'user' %}### User:\n{{ m.content }}\n\n"
    "{% elif m.role == 'tool' %}### Result:\n{{ m.content }}\n\n"
    "{% else %}### Assistant:\n{{ m.content }}\n\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}### Assistant:\n{% endif %}"
)
"""No control token anywhere: a reply ends where the next heading begins."""

ODD_MARKERS = (
    "{% set ns = namespace(last=-1) %}"
    "{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}"
    "{% if m.role == 'assistant' %}[[bot]]"
    "{% if m.reasoning is defined and m.reasoning and loop.index0 > ns.last %}"
    "((mind {{ m.reasoning }} mind)){% endif %}"
    "{{ m.content | trim }}"
    "{% for c in m.tool_calls or [] %}"
    "@@call {{ c.function.name }} with {{ c.function.arguments | tojson }} @@{% endfor %}"
    "[[/bot]]"
    "{% else %}[[{{ m.role }}]]{{ m.content }}[[/{{ m.role }}]]{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}[[bot]]{% endif %}"
)
"""Markers in plain text, history that strips reasoning, calls in a form of its own."""

SYSTEM_IN_USER = (
    "{% set sys = messages[0].content if messages[0].role == 'system' else '' %}"
    "{% set loop_messages = messages[1:] if sys else messages %}"
    "{% for m in loop_messages %}"
    "{% if m.role == 'user' %}<|im_start|>user\n"
    "{% if loop.first and sys %}{{ sys }}\n\n{% endif %}{{ m.content }}<|im_end|>\n"
    "{% else %}<|im_start|>model\n{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>model\n{% endif %}"
)
"""A system prompt that moves into the first user turn (gemma's way)."""

ROUNDS = (
    "{% for m in messages %}<|im_start|>{{ m.role }} {{ loop.index }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant {{ messages | length + 1 }}\n{% endif %}"
)
"""Counts its messages: a short history cannot stand in for a long one."""

LISTENS = (
    "{% set ns = namespace(quiet=false) %}"
    "{% for m in messages %}"
    "{% if m.role == 'user' and '/quiet' in m.content %}{% set ns.quiet = true %}{% endif %}{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if ns.quiet %}(quiet) {% endif %}{% endif %}"
)
"""Looks into the texts of old messages."""

THOUSANDTH = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if messages | length > 12 %}(long) {% endif %}{% endif %}"
)
"""Changes its ways behind a certain length."""

XML_CALLS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'tool' %}<output>{{ m.content }}</output>{% else %}{{ m.content }}{% endif %}"
    '{% for c in m.tool_calls or [] %}\n<run tool="{{ c.function.name }}">'
    "{% for k, v in c.function.arguments.items() %}"
    '\n<with key="{{ k }}">{{ v if v is string else v | tojson }}</with>{% endfor %}'
    "\n</run>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

ALL = {
    "plain_text": PLAIN_TEXT,
    "odd_markers": ODD_MARKERS,
    "system_in_user": SYSTEM_IN_USER,
    "rounds": ROUNDS,
    "listens": LISTENS,
    "thousandth": THOUSANDTH,
    "xml_calls": XML_CALLS,
}
