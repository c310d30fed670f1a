# SPDX-License-Identifier: Apache-2.0
"""python3 tests/kernels/units_attack.py FILE: one of tests/attacks, in a guest, upon the units that run there."""
import os
import runpy
import sys

del sys.argv[0]
import harness  # noqa: E402
import running_units  # noqa: E402

harness.Server, harness.Agent = running_units.UnitServer, running_units.UnitAgent
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
