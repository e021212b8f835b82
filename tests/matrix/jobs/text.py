"""The extra `text`: BLEU and chrF of an answer that is its reference are 1, of another one less."""

from tests.matrix.commands import eval_file, evaluated, scores


def main() -> None:
    eval_file({name: {"_type": "ragparity", "metric": name} for name in ("BleuScore", "CHRFScore")})
    for name, records in evaluated().items():
        found = scores(records)
        assert found["right"] == found["also-right"] == 1.0 > found["wrong"], (name, found)


if __name__ == "__main__":
    main()
