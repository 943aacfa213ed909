"""What several test modules use. To import it sets up the process for numpy, so it comes before numpy."""

from __future__ import annotations

import os

# Otherwise a product of two matrices wakes a thread for every core, and those wait busily for the next one.
# Beside other workers that takes six times the processor time. The processes of models have one as well.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # noqa: TID251 - a setting of a library
