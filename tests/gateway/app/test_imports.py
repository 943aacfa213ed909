"""What a gateway does not import before it is configured.

Covers: gateway/app/bootstrap.py, gateway/app/agents.py, pipeline/graph_book.py.
"""

from __future__ import annotations

import subprocess
import sys

from tests.support.gateway_forks import ROOT

_PROGRAM = """
import sys
import gateway.app.bootstrap, gateway.cli.main, gateway.cli.serve
from pipeline.graph_book import installed_graphs

installed_graphs().open("conversation")
installed_graphs().open("examples/graphs/support.json")
print([name for name in sys.modules if name.startswith(("asyncpg", "pipeline.workflows"))])
"""


def test_a_gateway_without_postgres_and_workflows_imports_neither_driver_nor_steps() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout == "[]\n"
