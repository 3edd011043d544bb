"""SciPy's and scikit-learn's array API modes, where they are installed: results of NumPy's arrays."""

import json

import numpy as np
import pytest
from processes import outcome

pytestmark = pytest.mark.features

FUNCTIONS = """
import json
import numpy as np
import vkops
from scipy import special, stats

x = np.linspace(0.1, 3.7, 12).reshape(3, 4)
y = x[::-1] ** 2 + 0.5
EXAMPLES = {
    "erf": lambda a, b: special.erf(a),
    "expit": lambda a, b: special.expit(a),
    "logit": lambda a, b: special.logit(a / 4),
    "gammaln": lambda a, b: special.gammaln(a),
    "i0": lambda a, b: special.i0(a),
    "ndtr": lambda a, b: special.ndtr(a),
    "xlogy": lambda a, b: special.xlogy(a, b),
    "betaln": lambda a, b: special.betaln(a, b),
    "rel_entr": lambda a, b: special.rel_entr(a, b),
    "logsumexp": lambda a, b: special.logsumexp(a, axis=1),
    "softmax": lambda a, b: special.softmax(a, axis=0),
    "log_softmax": lambda a, b: special.log_softmax(a, axis=0),
    "skew": lambda a, b: stats.skew(a, axis=1),
    "kurtosis": lambda a, b: stats.kurtosis(a, axis=0),
    "gmean": lambda a, b: stats.gmean(a, axis=1),
    "hmean": lambda a, b: stats.hmean(a, axis=0),
    "zscore": lambda a, b: stats.zscore(a, axis=1),
    "entropy": lambda a, b: stats.entropy(a, axis=1),
    "moment": lambda a, b: stats.moment(a, order=3, axis=0),
    "variation": lambda a, b: stats.variation(a, axis=0),
    "sem": lambda a, b: stats.sem(a, axis=0),
    "circmean": lambda a, b: stats.circmean(a, axis=0),
    "describe": lambda a, b: stats.describe(a, axis=0).variance,
    "pearsonr": lambda a, b: stats.pearsonr(a[0], b[0]).statistic,
    "ttest_ind": lambda a, b: stats.ttest_ind(a, b, axis=1).pvalue,
    "bartlett": lambda a, b: stats.bartlett(a[0], b[0]).pvalue,
}
results = {}
for name, function in EXAMPLES.items():
    tensor = function(vkops.asarray(x), vkops.asarray(y))
    array = function(x, y)
    results[name] = [type(tensor).__name__, np.asarray(tensor).tolist(), np.asarray(array).tolist()]
print(json.dumps(results))
"""

METRICS = """
import json
import numpy as np
import vkops
from sklearn import config_context, metrics
from sklearn.preprocessing import StandardScaler

random = np.random.default_rng(0)
x, truth, scores = random.normal(size=(20, 3)), random.integers(0, 2, 20), random.random(20)
other = np.where(scores < 0.3, 1 - truth, truth)
EXAMPLES = {
    "StandardScaler": lambda a: StandardScaler().fit_transform(a(x)),
    "rbf_kernel": lambda a: metrics.pairwise.rbf_kernel(a(x)),
    "matthews_corrcoef": lambda a: metrics.matthews_corrcoef(a(truth), a(other)),
    "roc_auc_score": lambda a: metrics.roc_auc_score(a(truth), a(scores)),
    "f1_score": lambda a: metrics.f1_score(a(truth), a(other)),
}
results = {}
with config_context(array_api_dispatch=True):
    for name, function in EXAMPLES.items():
        ours, theirs = (np.asarray(function(make)) for make in (vkops.asarray, np.asarray))
        results[name] = ["", ours.tolist(), theirs.tolist()]
print(json.dumps(results))
"""


@pytest.mark.parametrize(
    ("package", "program", "kind"), [("scipy", FUNCTIONS, "Tensor"), ("sklearn", METRICS, "")]
)
def test_results_are_those_of_arrays(device, package, program, kind):
    """Each sum rounds otherwise than NumPy's, but all results have 13 digits in common."""
    pytest.importorskip(package)
    if not {"shaderFloat64", "shaderInt64"} <= device.features:
        pytest.skip("the device has no float64 or no int64")
    variables = {"SCIPY_ARRAY_API": "1", "VKOPS_ADAPTER": device.info.name}
    status, printed, errors = outcome("-W", "ignore", "-c", program, **variables)
    assert status == 0, errors
    results = json.loads(printed)
    assert len(results) >= 5
    for name, (made, actual, expected) in results.items():
        assert made == kind, name
        np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-15, err_msg=name)
