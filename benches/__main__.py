"""
The benchmark suite: budgeteer beside others, in every language, with checked outputs.

    python -m benches [--only SECTION] [--rounds N] [--json FILE] [--charts DIR]
                      [--questions FILE]
    python -m benches --smoke

Its sections are in `suite/run.py`, and how it measures is in `timing.py`. It needs the group
``test``, and measures beside the packages of the group ``bench`` that are installed.
"""

import logging
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from suite.run import main

if __name__ == "__main__":
    logging.disable(logging.WARNING)  # of other packages, once for each list
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    main()
