"""Print a recovered law beside the truth of a rendered film: compare_truth.py result.json truth.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(result_file: str, truth_file: str) -> None:
    result = json.loads(Path(result_file).read_text(encoding="utf-8"))
    truth = json.loads(Path(truth_file).read_text(encoding="utf-8"))
    laws = truth["law"]
    found = (result["selected"] or {"terms": {}})["terms"]
    print(f"\n{'term':<16}{'truth':>10}{'found':>10}{'95 % interval':>26}{'error':>9}")
    for name in dict.fromkeys([*laws, *found]):
        estimate, true = found.get(name), laws.get(name, 0.0)
        if estimate is None:
            print(f"{name:<16}{true:>10.4g}{'missing':>10}")
            continue
        low, high = estimate["low"], estimate["high"]
        interval = f"[{low:.4g}, {high:.4g}]" if low is not None else "none"
        error = f"{100 * (estimate['value'] / true - 1):+.2f} %" if true else "spurious"
        print(f"{name:<16}{true:>10.4g}{estimate['value']:>10.4g}{interval:>26}{error:>9}")
    print(f"\nThe report is {Path(result_file).with_name('report.html')}; open it in a browser.")


if __name__ == "__main__":
    main(*sys.argv[1:])
