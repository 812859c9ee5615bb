"""What goes over the wire: bytes to values and back, one pair of pure functions a protocol.

codec.py     what every protocol's pair has in common: `decode`, an `Encoder`, `error_body`
body.py      JSON to typed values; each way to fail names the field
sampling.py  the sampling parameters, once for all OpenAI-shaped bodies
thinking.py  the switches of thinking, as arguments of the chat template
extras.py    the fields that a body has beside: labels, what is refused, what is left out and noted
fold.py      the events of an answer, folded: what a JSON answer says is what a stream adds up to
logprobs.py  the entries beside a text, one a token
sse.py       frames
errors.py    errors in the protocols' own shapes
chat*.py     OpenAI Chat Completions: request, messages, answer, and `chat.py`, the pair itself
responses*.py  OpenAI Responses: request, items, tools, output, answer, and `responses.py`, the pair itself
messages*.py  Anthropic Messages: request, history, tools, blocks, signature, answer, and `messages.py`, the pair itself
strict_json.py  arguments as models write them, to JSON that every parser takes
sessions.py  the bodies and answers of the session calls
tokenize.py  text to ids and back, in vLLM's shape
openapi.py   our own description, from the types above and the table of routes
"""
