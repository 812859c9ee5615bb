"""More templates that nobody has seen, each with one thing that makes its replies hard to read."""

_TURN = "{% for m in messages %}<|im_start|>{{ m.role }}\n"
_OPEN = "{% if add_generation_prompt %}<|im_start|>assistant\n"
_JSON_CALLS = (
    "{% for c in m.tool_calls or [] %}<call>"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</call>{% endfor %}'
)

NULL_CONTENT = (
    _TURN + "{% if m.content is none %}" + _JSON_CALLS + "{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
    f"{_OPEN}{{% endif %}}"
)
"""Calls are written only where there is no content, which is not content of no letters (DeepSeek's R1)."""

THINKING_PART = (
    _TURN + "{% if m.content is string %}{{ m.content }}{% else %}{% for part in m.content %}"
    "{{ '<jupyter_start>' + part.thinking + '<jupyter_text>' if part.type == 'thinking' else part.text }}{% endfor %}"
    "{% endif %}" + _JSON_CALLS + "<|im_end|>\n{% endfor %}" + _OPEN + "{% endif %}"
)
"""Reasoning is a part of the content (Mistral's)."""

SHUT_MIND = (
    _TURN + "{% if m.reasoning_content %}<jupyter_start>thought\n{{ m.reasoning_content }}\n<jupyter_text>{% endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}"
    + _OPEN
    + "{% if not minds %}<jupyter_start>thought\n<jupyter_text>{% endif %}{% endif %}"
)
"""A prompt has an empty block of reasoning, which history has not (gemma 4's)."""

EMPTY_MIND = (
    _TURN + "{% if m.role == 'assistant' %}<mind:a>{{ m.reasoning_content or '' }}</mind:a>{% endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}" + _OPEN + "<mind:a>{{ '</mind:a>' if not minds }}{% endif %}"
)
"""A prompt has one, and so has every reply without reasoning."""

BEGUN_MIND = (
    _TURN + "{% if m.reasoning_content and loop.last %}My steps:\n{{ m.reasoning_content }}\n[SO]\n{% endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}" + _OPEN + "My steps:\n{% endif %}"
)
"""A prompt begins the reasoning in words, and history drops it, words and all."""

MOVED_TOOLS = (
    "{% for m in messages %}{% if m.role == 'user' and tools and loop.last %}<repo_name>{{ tools | tojson }}{% endif %}"
    "{% if m.role == 'user' %}<reponame>{{ m.content }}<filename>"
    "{% elif m.role == 'tool' %}<gh_stars>{{ m.content }}<issue_start>"
    "{% else %}{{ m.content }}" + _JSON_CALLS + "<|im_end|>{% endif %}{% endfor %}"
)
"""The tools stand before the latest question only, and nothing opens a reply."""

TWO_CLOSES = (
    _TURN + "{% if m.role == 'assistant' %}<jupyter_start>{{ m.content }}<jupyter_text>{% else %}{{ m.content }}"
    "{% endif %}<|im_end|>\n{% endfor %}" + _OPEN + "{% endif %}"
)
"""One closes the answer, and one the turn (Cohere's)."""

RESULT_INSIDE = (
    "{% for m in messages %}{% set inside = m.role == 'tool' or not loop.first and loop.previtem.role == 'tool' %}"
    "{% if not inside %}<|im_start|>{{ m.role }}\n{% endif %}"
    "{% if m.role == 'tool' %}<issue_start>{{ m.content }}<issue_closed>{% else %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<jupyter_start>{{ c.function | tojson }}<jupyter_text>{% endfor %}"
    "{% if not m.tool_calls %}<|im_end|>\n{% endif %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt and messages[-1].role != 'tool' %}<|im_start|>assistant\n{% endif %}"
)
"""A call is closed by a control token, and its result stands in the same turn (gemma 4's)."""

ALWAYS_OPEN = _TURN + "{{ m.content }}" + _JSON_CALLS + "<|im_end|>{% endfor %}<|im_start|>assistant\n"
"""Opens a reply whether it is asked to or not."""

NAME_TWICE = (
    _TURN + "{{ m.content }}{% for c in m.tool_calls or [] %}<to {{ c.function.name }}>"
    '<invoke name="{{ c.function.name }}">{% for k, v in c.function.arguments.items() %}'
    '<with name="{{ k }}">{{ v if v is string else v | tojson }}</with>{% endfor %}</invoke>{% endfor %}'
    "<|im_end|>\n{% endfor %}" + _OPEN + "{% endif %}"
)
"""The name of a tool is written twice."""

NAMED = (
    _TURN + "{{ m.content }}{% for c in m.tool_calls or [] %}<jupyter_start>{{ c.function.name }}<jupyter_code>"
    "{{ c.function.arguments | tojson }}<jupyter_text>{% endfor %}<|im_end|>\n{% endfor %}" + _OPEN + "{% endif %}"
)
"""A control token stands in the middle of a call."""

PRINTED = (
    _TURN + "{{ m.content }}{% for c in m.tool_calls or [] %}<do {{ c.function.name }}>"
    "{% for k, v in c.function.arguments.items() %}<with {{ k }}>{{ v }}</with>{% endfor %}</do>{% endfor %}"
    "<|im_end|>\n{% endfor %}" + _OPEN + "{% endif %}"
)
"""Values are printed as Python does."""

IN_ASCII = (
    _TURN + "{{ m.content }}{% for c in m.tool_calls or [] %}<call>"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson(ensure_ascii=True) }}}</call>'
    "{% endfor %}<|im_end|>\n{% endfor %}" + _OPEN + "{% endif %}"
)

TOOL_PLAN = (
    _TURN + "{% if m.tool_calls %}<jupyter_start>{{ m.tool_plan or '' }}<jupyter_text>" + _JSON_CALLS + "{% else %}"
    "{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}" + _OPEN + "{% endif %}"
)
"""Reasoning stands before calls only, and has a name of its own (Cohere's)."""

LATER_ID = (
    _TURN + "{{ m.content }}{% if m.tool_calls %}<calls>[{% for c in m.tool_calls %}"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}'
    '{% if not loop.last or messages[-1].role == \'tool\' %}, "id": "{{ c.id }}"{% endif %}}'
    "{% if not loop.last %}, {% endif %}{% endfor %}]</calls>{% endif %}<|im_end|>\n{% endfor %}"
    + _OPEN
    + "{% endif %}"
)
"""A call gets its id once it has been answered."""


def like_python(value: str, joint: str = ", ") -> str:
    """Calls as Python has them, in one list, with values that are written carelessly."""
    return (
        _TURN + "{{ m.content }}{% if m.tool_calls %}[{% for c in m.tool_calls %}{{ c.function.name }}("
        "{% for k, v in c.function.arguments.items() %}{{ k }}="
        + value
        + "{% if not loop.last %}"
        + joint
        + "{% endif %}"
        "{% endfor %}){% if not loop.last %}, {% endif %}{% endfor %}]{% endif %}<|im_end|>\n{% endfor %}"
        + _OPEN
        + "{% endif %}"
    )


UNESCAPED = like_python("{% if v is string %}'{{ v }}'{% else %}{{ v }}{% endif %}")
QUOTED_ALL = like_python('"{{ v }}"')
UNQUOTED = like_python("{{ v }}")
NO_COMMA = like_python("{{ v | tojson }}", joint="")

ADDRESSED = (
    "{% for m in messages %}<|im_start|>{{ m.role }}{% if m.role == 'assistant' %}"
    "{% if m.reasoning_content %} to=self<jupyter_code>{{ m.reasoning_content }}<jupyter_text><|im_start|>assistant"
    "{% endif %}{% for c in m.tool_calls or [] %} to={{ c.function.name }}<jupyter_code>"
    "{{ c.function.arguments | tojson }}{% else %} to=user<jupyter_code>{{ m.content }}{% endfor %}"
    "{% else %}<jupyter_code>{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant{% endif %}"
)
"""What opens a call begins like what opens an answer, and reasoning."""

SPACED_COLON = (
    "{% for m in messages %}{% if m.role == 'assistant' %}BOT:{{ '\\n' if m.tool_calls else ' ' }}"
    "{{ m.content }}" + _JSON_CALLS + "<|im_end|>\n{% else %}HUMAN: {{ m.content }}\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}BOT: \n{% endif %}"
)
"""The white space in which a prompt ends becomes another."""

KEYS_AS_TAGS = (
    _TURN + '{{ m.content }}{% for c in m.tool_calls or [] %}<run name="{{ c.function.name }}">\n'
    "{% for k, v in c.function.arguments.items() %}<{{ k }}>{{ v if v is string else v | tojson }}</{{ k }}>\n"
    "{% endfor %}</run>{% endfor %}<|im_end|>\n{% endfor %}" + _OPEN + "{% endif %}"
)
"""Each argument is a tag of its own."""

SHUT_ALONE = (
    _TURN
    + "{% if m.role == 'assistant' %}{% if m.reasoning_content %}<jupyter_start>{{ m.reasoning_content }}{% endif %}"
    "<jupyter_text>{% endif %}{{ m.content }}" + _JSON_CALLS + "<|im_end|>\n{% endfor %}" + _OPEN + "{% endif %}"
)
"""A reply without reasoning begins with the end of it."""

NAME_AS_KEY = (
    _TURN + "{{ m.content }}{% if m.tool_calls %}<jupyter_start>[{% for c in m.tool_calls %}"
    '{"{{ c.function.name }}": {{ c.function.arguments | tojson }}}{% if not loop.last %}, {% endif %}{% endfor %}]'
    "{% endif %}<|im_end|>\n{% endfor %}" + _OPEN + "{% endif %}"
)
"""A call is an object whose key is the tool (Apertus')."""

COVERED = (
    _TURN + '{{ m.content }}{% for c in m.tool_calls or [] %}<run name="{{ c.function.name }}">'
    "{% for k, v in c.function.arguments.items() %}"
    "<with name=\"{{ k }}\">{{ '<![CDATA[' + v + ']]>' if v is string and '<' in v else v }}</with>{% endfor %}"
    "</run>{% endfor %}<|im_end|>\n{% endfor %}" + _OPEN + "{% endif %}"
)
"""Values are covered where they look like tags."""
