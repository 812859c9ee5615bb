"""Tinker's datum, by its users' class and by its wire's. The reward in it is the advantage, on whatever is trained."""

from __future__ import annotations

import json
import sys

from tinker import Datum, ModelInput, TensorData
from tinker.types._pydantic_types.datum import Datum as OnTheWire

told = []
for line in sys.stdin:
    row = json.loads(line)["datum"]
    (chunk,) = OnTheWire.model_validate(row).model_input.chunks
    datum = Datum(
        model_input=ModelInput.from_ints(list(chunk.tokens)),
        loss_fn_inputs={name: TensorData(**column) for name, column in row["loss_fn_inputs"].items()},
    )
    columns = {name: column.to_numpy() for name, column in datum.loss_fn_inputs.items()}
    inputs, targets = datum.model_input.to_ints(), columns["target_tokens"].tolist()
    assert inputs[1:] == targets[:-1]
    trained = columns["mask"] == 1
    assert not columns["advantages"][~trained].any()
    assert not columns["logprobs"][~trained].any()
    (advantage,) = set(columns["advantages"][trained].tolist())
    told.append(
        {
            "tokens": [*inputs[:1], *targets],
            "mask": [0, *columns["mask"].astype(int).tolist()],
            "logprobs": columns["logprobs"][trained].tolist(),
            "reward": advantage,
        }
    )
print(json.dumps(told))
