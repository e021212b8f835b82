"""The door for the NeMo Agent Toolkit: `_type: ragparity`, `ragas` and `ragparity_crossvalidate` under `nat eval`.

`register` is what the toolkit loads at its start; it imports next to nothing. `evaluators` is imported when an
evaluator is built, and with it the rest: `entries` (the toolkit's configuration -> ours), `rows` (its items -> rows),
`outputs` (records -> its output).
"""
