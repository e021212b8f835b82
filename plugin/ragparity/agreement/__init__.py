"""How far two or more sets of scores of the same rows agree: pure statistics on NumPy, nothing else.

`pair` joins two sets by row id; `agree` gives every statistic that the two definitions allow. The single
functions take paired columns and give an `Estimate`: a number with a 95 % interval or, instead of NaN, the
reason in words. With `draws=Draws(n, …)` they resample: whole clusters where rows share a question. Formulas
and their sources stand in the functions.

>>> joined = pair({"1": 0.0, "2": 0.5, "3": 1.0}, {"1": 0.0, "2": 0.5, "3": 0.5})
>>> agree(joined, scale="levels")["mean_diff"].value
0.16666666666666666
>>> ccc([1, 1, 1], [0, 0.5, 1]).why
'undefined: constant scores'
"""

from ragparity.agreement.pairs import Pairs, pair
from ragparity.agreement.people import power_tuning, ppi_mean, rogan_gladen
from ragparity.agreement.raters import Retest, attainable, krippendorff_alpha, retest
from ragparity.agreement.resampling import Draws, Estimate, estimate, kernel_of, proportion, wilson
from ragparity.agreement.scores import (
    Limits,
    ccc,
    exact_agreement,
    hodges_lehmann,
    icc,
    kendall,
    limits_of_agreement,
    mean,
    mean_absolute_error,
    mean_difference,
    pearson,
    slope,
    spearman,
    wilcoxon,
)
from ragparity.agreement.summary import Agreement, agree, holm, sample_size_hint
from ragparity.agreement.verdicts import (
    THREE_BINS,
    Confusion,
    McNemar,
    auroc,
    balanced_accuracy,
    confusion,
    confusion_table,
    cuts_between,
    gwet,
    into_levels,
    kappa,
    mcnemar,
    raw_agreement,
)

__all__ = [
    "THREE_BINS",
    "Agreement",
    "Confusion",
    "Draws",
    "Estimate",
    "Limits",
    "McNemar",
    "Pairs",
    "Retest",
    "agree",
    "attainable",
    "auroc",
    "balanced_accuracy",
    "ccc",
    "confusion",
    "confusion_table",
    "cuts_between",
    "estimate",
    "exact_agreement",
    "gwet",
    "hodges_lehmann",
    "holm",
    "icc",
    "into_levels",
    "kappa",
    "kendall",
    "kernel_of",
    "krippendorff_alpha",
    "limits_of_agreement",
    "mcnemar",
    "mean",
    "mean_absolute_error",
    "mean_difference",
    "pair",
    "pearson",
    "power_tuning",
    "ppi_mean",
    "proportion",
    "raw_agreement",
    "retest",
    "rogan_gladen",
    "sample_size_hint",
    "slope",
    "spearman",
    "wilcoxon",
    "wilson",
]
