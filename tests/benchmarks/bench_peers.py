"""Seven core metrics on 40 rows of four passages, 16 in flight: ragparity, Ragas, and the toolkit's own evaluator.

Run `python -m tests.benchmarks.bench_peers [--rows N] [--rounds N] [--latency S]` in the project folder; the
environments that it needs are set up by `peers.py`. Every side is a whole process, from its start and its imports to
its end, on the same server with the same answers. Sides take turns; times are medians of the rounds.

- `wall` is the time of the process, `scoring` that from the first request at the server to its last answer.
- `in flight` is the most requests that were open at once, embeddings included.
- `prompts` and `answers` are the characters of all messages, `schemas` those of JSON schemas and tools beside them;
  the ratio is that of prompts and schemas together, since a judge is given both.
- A score that is missing is no speed: a side that lost one gets no ratios. `lost` counts what failed or is NaN, and
  with NVIDIA's evaluator the 0.0 that it writes for a failure (every right score here is above 0).
- NVIDIA's evaluator takes no embeddings, so it cannot score AnswerRelevancy: there, six metrics are compared. The
  toolkit bounds the calls of each evaluator, and 3 for each of six (18 in flight) comes nearest to 16 for all.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks import peers, processes
from tests.benchmarks.seven import METRICS, WITHOUT_EMBEDDINGS, judge, rows
from tests.fakeserver import FakeServer

if TYPE_CHECKING:
    from tests.benchmarks.peers import Environment

PASSAGES, IN_FLIGHT, IN_FLIGHT_EACH = 4, 16, 3
COLUMNS = {
    "wall s": ".2f",
    "scoring s": ".2f",
    "calls": "d",
    "embeddings": "d",
    "in flight": "d",
    "prompts": ",d",
    "schemas": ",d",
    "answers": ",d",
    "CPU s": ".2f",
    "peak MB": ".0f",
    "lost": "d",
}
COMPARED = ("wall s", "scoring s", "calls", "prompts + schemas", "CPU s", "peak MB")
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Side:
    """One way to score the rows: a command, which may need an eval file with evaluators of this type."""

    name: str
    metrics: tuple[str, ...]
    command: list[str]
    type: str = ""
    concurrency: int = IN_FLIGHT

    def prepare(self, folder: Path, base_url: str, n: int) -> None:
        """Write what the command reads."""
        folder.mkdir()
        made = [toolkit_row(one) for one in rows(n, PASSAGES)]
        (folder / "rows.json").write_text(json.dumps(made), encoding="utf-8")
        (folder / "eval.json").write_text(json.dumps(self._eval_file(base_url)), encoding="utf-8")

    def _eval_file(self, base_url: str) -> dict[str, Any]:
        model = {"_type": "openai", "base_url": base_url, "api_key": "x"}
        entries = {name: {"_type": self.type, "metric": name, "llm_name": "judge"} for name in self.metrics}
        if "AnswerRelevancy" in entries:
            entries["AnswerRelevancy"]["embedder_name"] = "emb"
        dataset = {"_type": "json", "file_path": "rows.json"}
        return {
            "llms": {"judge": {**model, "model_name": "m"}},
            "embedders": {"emb": {**model, "model_name": "e"}},
            "eval": {
                "general": {"output_dir": "out", "max_concurrency": self.concurrency, "dataset": dataset},
                "evaluators": entries,
            },
        }

    def scored(self, folder: Path) -> int:
        """How many scores a run left: in the evaluators' files, or counted in the last line that a script printed."""
        if not self.type:
            said: dict[str, int] = json.loads((folder / "said.txt").read_text(encoding="utf-8").splitlines()[-1])
            return said["scored"]
        scores = []
        for name in self.metrics:
            output = folder / f"out/{name}_output.json"
            scores += [one["score"] for one in json.loads(output.read_text(encoding="utf-8"))["eval_output_items"]]
            output.unlink()  # so that the next round cannot be taken for this one
        zero_is_failed = self.type == "ragas"
        return sum(one is not None and not (zero_is_failed and one == 0) for one in scores)


def toolkit_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the toolkit has it: the passages are outputs of a tool in the recorded steps."""
    steps = [
        {
            "parent_id": "root",
            "function_ancestry": {"function_id": "f", "function_name": "agent"},
            "payload": {
                "event_type": "TOOL_END",
                "event_timestamp": float(place),
                "name": "search",
                "UUID": f"{row['id']}-{place}",
                "data": {"input": row["user_input"], "output": passage},
            },
        }
        for place, passage in enumerate(row["retrieved_contexts"])
    ]
    return {
        "id": row["id"],
        "question": row["user_input"],
        "answer": row["reference"],
        "generated_answer": row["response"],
        "intermediate_steps": steps,
    }


def sides(ours: Environment, theirs: Environment, base_url: str, n: int) -> list[list[Side]]:
    """The groups that are compared, ragparity first in each."""
    command = [ours.command("ragparity"), "eval", "eval.json", "--overwrite"]
    toolkit = ["eval", "--config_file", "eval.json", "--skip_workflow"]
    numbers = [base_url, str(n), str(PASSAGES), str(IN_FLIGHT)]
    scripts = processes.ROOT / "tests/benchmarks"
    by_hand = [theirs.python, str(scripts / "ragas_by_hand.py"), *numbers]
    evaluate = [theirs.python, str(scripts / "ragas_seven.py"), *numbers, "0"]
    six = WITHOUT_EMBEDDINGS
    return [
        [
            Side("ragparity eval", METRICS, command, "ragparity"),
            Side("Ragas collections by hand", METRICS, by_hand),
            Side("Ragas evaluate", METRICS, evaluate),
        ],
        [
            Side("ragparity eval", six, command, "ragparity"),
            Side("ragparity in nat eval", six, [ours.command("nat"), *toolkit], "ragparity"),
            Side("nvidia-nat-ragas in nat eval", six, [theirs.command("nat"), *toolkit], "ragas", IN_FLIGHT_EACH),
        ],
    ]


def measured(side: Side, folder: Path, server: FakeServer, n: int) -> Figures:
    """What one run of a side used, asked and lost."""
    server.reset()
    path = {} if side.type else {"PYTHONPATH": str(processes.ROOT)}  # scripts read the rows from this folder
    used = processes.run(side.command, folder, XDG_DATA_HOME=str(folder), **path)
    return {
        "wall s": used.wall,
        "scoring s": server.active_s,
        "calls": server.calls,
        "embeddings": server.embedding_calls,
        "in flight": server.max_in_flight,
        "prompts": server.prompt_characters,
        "schemas": server.schema_characters,
        "answers": server.completion_characters,
        "CPU s": used.cpu,
        "peak MB": used.megabytes,
        "lost": len(side.metrics) * n - side.scored(folder),
    }


def over_rounds(runs: list[Figures]) -> Figures:
    """Medians of times and memory; of counts those of the round with most of them, so that nothing lost is hidden."""
    chosen = {name: max if style.endswith("d") else statistics.median for name, style in COLUMNS.items()}
    found = {name: choose(one[name] for one in runs) for name, choose in chosen.items()}
    return {**found, "prompts + schemas": found["prompts"] + found["schemas"]}


def table(lines: list[list[str]]) -> str:
    """Lines of cells, the first of each to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    )


def show(group: list[Side], found: list[Figures], n: int) -> None:
    """The figures of a group, and below them their ratios to the first side."""
    names = group[0].metrics
    print(f"\n{len(names)} metrics, {n} rows: {len(names) * n} scores wanted")
    if left_out := [name for name in METRICS if name not in names]:
        print(
            f"without {', '.join(left_out)}: nvidia-nat-ragas takes no embeddings; it bounds calls per evaluator, here to "
            f"{IN_FLIGHT_EACH} each"
        )
    figures = [
        [side.name, *(format(one[name], style) for name, style in COLUMNS.items())]
        for side, one in zip(group, found, strict=True)
    ]
    print(table([["", *COLUMNS], *figures]))
    ratios = [["against " + group[0].name, *COMPARED]]
    for side, one in list(zip(group, found, strict=True))[1:]:
        lost = one["lost"] or found[0]["lost"]
        cells = ["-" if lost or not found[0][name] else f"{one[name] / found[0][name]:.2f} x" for name in COMPARED]
        ratios.append([side.name + (" (scores are lost)" if lost else ""), *cells])
    print(table(ratios))


def main() -> None:
    """Print the versions and a table for each group."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.1, help="seconds before each answer of the judge")
    chosen = parser.parse_args()
    environments = peers.both()
    with FakeServer(judge, latency=chosen.latency, record=False) as server, tempfile.TemporaryDirectory() as place:
        groups = sides(*environments, server.base_url, chosen.rows)
        found: dict[tuple[int, int], list[Figures]] = {}
        for turn in range(chosen.rounds):
            for number, group in enumerate(groups):
                for position, side in enumerate(group):
                    folder = Path(place) / f"{number}-{position}"
                    if not turn:
                        side.prepare(folder, server.base_url, chosen.rows)
                    found.setdefault((number, position), []).append(measured(side, folder, server, chosen.rows))
    for number, group in enumerate(groups):
        show(group, [over_rounds(found[number, position]) for position in range(len(group))], chosen.rows)


if __name__ == "__main__":
    main()
