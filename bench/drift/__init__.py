"""What is left of a rollout's tokens once it is a training sample, by the way in which it was recorded.

The same seeded agents, with the habits that ordinary agents have, talk to the same simulated model through five
recorders; the samples are then held against the model's own log. `python -m bench.drift`.
"""
