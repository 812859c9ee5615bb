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

OPENED_THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}"
    "<think>{% if m.reasoning_content %}\n{{ m.reasoning_content }}\n{% endif %}</think>{% endif %}"
    "{{ m.content }}{% for c in m.tool_calls or [] %}<do>{{ c.function | tojson }}</do>{% endfor %}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
"""The prompt opens the reasoning, and a reply without any closes it: with less white space than the model did."""

CHANNELS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}"
    "<|im_start|>mind<|im_end|>{{ m.reasoning_content or '' }}<|im_start|>mind<|im_end|>"
    "<|im_start|>voice<|im_end|>{{ m.content }}<|im_start|>voice<|im_end|><|im_start|>turn{% else %}{{ m.content }}"
    "{% endif %}<|endoftext|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<|im_start|>mind<|im_end|>{% endif %}"
)
"""Reasoning and answer are channels, whose names are text between control tokens, behind the answer, too."""

QUOTED_TOKENS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<repo_name>{{ c.function.name }}("
    "{% for k, v in c.function.arguments | dictsort %}"
    "{{ k }}:{% if v is string %}<file_sep>{{ v }}<file_sep>{% else %}{{ v | tojson }}{% endif %}"
    "{% if not loop.last %},{% endif %}{% endfor %})<jupyter_start>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Arguments with commas between them only, sorted, and strings alone in quotes that are control tokens."""

LIKE_PYTHON = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% if m.tool_calls %}[{% for c in m.tool_calls %}{{ c.function.name }}("
    "{% for k, v in c.function.arguments.items() %}"
    "{{ k }}={% if v is string %}'{{ v }}'{% else %}{{ v }}{% endif %}{% if not loop.last %}, {% endif %}{% endfor %})"
    "{% if not loop.last %}, {% endif %}{% endfor %}]{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Calls as Python would write them, in one list."""

TYPED = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    '{% for c in m.tool_calls or [] %}<run name="{{ c.function.name }}" number="{{ loop.index }}">'
    "{% for k, v in c.function.arguments.items() %}"
    "<with name=\"{{ k }}\" text=\"{{ 'yes' if v is string else 'no' }}\">{{ v if v is string else v | tojson }}</with>"
    "{% endfor %}</run>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Arguments say whether they are strings, and calls are counted."""

BARE_LIST = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% if m.tool_calls %}[{% for c in m.tool_calls %}"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}'
    "{% if not loop.last %}, {% endif %}{% endfor %}]{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A JSON list, and nothing around it."""

SIDE_BY_SIDE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% if m.tool_calls %}<calls>{% for c in m.tool_calls %}"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}{% endfor %}</calls>{% endif %}'
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""JSON objects with nothing between them."""

DEAF = (
    "{% for m in messages %}"
    "{% if loop.first and m.role == 'system' or m.role in ['user', 'assistant', 'tool'] %}"
    "<|im_start|>{{ m.role }}\n{{ m.content | upper if m.role == 'system' else m.content }}<|im_end|>\n"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Leaves out instructions that come later, and whatever is called; the first ones it shouts."""

LATEST = (
    "{% for m in messages %}<|im_start|>{{ m.role }} {{ 'new' if loop.revindex0 < 3 else 'old' }}\n"
    "{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant new\n{% endif %}"
)
"""Rewrites what it wrote before a reply in as many letters, and nothing of the reply."""

ALL = {
    "plain_text": PLAIN_TEXT,
    "odd_markers": ODD_MARKERS,
    "system_in_user": SYSTEM_IN_USER,
    "rounds": ROUNDS,
    "listens": LISTENS,
    "thousandth": THOUSANDTH,
    "xml_calls": XML_CALLS,
    "opened_thinking": OPENED_THINKING,
    "channels": CHANNELS,
    "quoted_tokens": QUOTED_TOKENS,
    "like_python": LIKE_PYTHON,
    "typed": TYPED,
    "bare_list": BARE_LIST,
    "side_by_side": SIDE_BY_SIDE,
}
CALLING = ("quoted_tokens", "like_python", "typed", "bare_list", "side_by_side")
"""Those of them that write calls in a form of their own, and close their turns with a control token."""

_DOUBLING = "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s OP ns.s %}{% endfor %}"
BOMBS = {
    "long range": "{% for i in range(100000000) %}{% endfor %}",
    "loops in loops": "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
    "endless recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "broad recursion": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "long text": "{{ 'x' * 10 ** 11 }}",
    "long list": "{{ ([0] * 10 ** 11) | length }}",
    "large number": "{{ 9 ** (9 ** 9) }}",
    "sums": _DOUBLING.replace("OP", "+"),
    "joints": _DOUBLING.replace("OP", "~"),
    "long output": "{% for i in range(9999) %}{{ 'x' * 99999 }}{% endfor %}",
    "no sense": "{{ 1 / 0 }}",
}
"""Templates that go on for ever, or fill the memory."""
