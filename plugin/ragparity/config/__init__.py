"""The eval file: reading, checking, defaults, and the masked copy of it for the manifest.

A package, since the file as text (`yamlfile`), its plain settings (`sections`), its entries (`entries`,
`evaluators`) and the whole (`evalfile`) are rooms of their own. The sections are pydantic models; what they
become, `EvalFile` and its entries, are frozen dataclasses.
"""

from ragparity.config.entries import OFFLINE, EmbedderEntry, LlmEntry, ModelEntry
from ragparity.config.evalfile import DATASET_TYPES, Dataset, DatasetType, EvalFile, General, load_eval_file
from ragparity.config.evaluators import EvaluatorEntry, EvaluatorType, metric_choice, read_evaluator
from ragparity.config.masking import clean, masked
from ragparity.config.names import file_stem, file_stems
from ragparity.config.portability import what_nat_eval_ignores, what_nvidia_ragas_ignores
from ragparity.config.sections import Cache, Filter, Gate, JudgeSettings, Price, RunSettings, Save, Structure

__all__ = [
    "DATASET_TYPES",
    "OFFLINE",
    "Cache",
    "Dataset",
    "DatasetType",
    "EmbedderEntry",
    "EvalFile",
    "EvaluatorEntry",
    "EvaluatorType",
    "Filter",
    "Gate",
    "General",
    "JudgeSettings",
    "LlmEntry",
    "ModelEntry",
    "Price",
    "RunSettings",
    "Save",
    "Structure",
    "clean",
    "file_stem",
    "file_stems",
    "load_eval_file",
    "masked",
    "metric_choice",
    "read_evaluator",
    "what_nat_eval_ignores",
    "what_nvidia_ragas_ignores",
]
