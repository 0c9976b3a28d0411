"""GPU passes on IR text, as in tests/ir: the header names the last pass to run, and what for: sm_80, 4 warps and 3
stages if it does not say.

    // pass: barriers, sm_90, 8 warps, 2 stages

Of `verify` the IR is given with layouts, and its failures are expected. `pytest --update` writes what comes out.
"""

import re
from pathlib import Path

import pytest

from triton import _C

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.tt"))
EXPECTED = "// expected\n"
HEADER = re.compile(r"// pass: (\w+)(?:, sm_(\d+))?(?:, (\d+) warps?)?(?:, (\d+) stages?)?\n")
BEFORE_LAYOUTS = (
    "inline_calls",
    "unroll_networks",
    "decompose_dot",
    "advance_pointers",
    "branch_pointers",
    "repeated_loads",
    "narrow_loads",
    "load_windows",
    "count_quotients",
    "turn_dot",
    "permute_k",
    "select_dot",
    "pipeline",
    "prefetch",
)


@pytest.mark.parametrize("path", FILES, ids=[f"{f.parent.name}/{f.stem}" for f in FILES])
def test_file(path, request):
    given, _, expected = path.read_text().partition(EXPECTED)
    header, body = re.match(r"((?://[^\n]*\n)*)(.*)", given, re.S).groups()
    name, sm, warps, stages = HEADER.search(header).groups()
    if name == "verify":
        result = _C._verify_layouts(body) or "fine\n"
    else:
        result = _C._run_gpu_passes(body, int(sm or 80), int(warps or 4), last=name, num_stages=int(stages or 3))
        assert _C._parse_print(result) == result
        assert _C._verify(result) is None
        assert name in BEFORE_LAYOUTS or _C._verify_layouts(result) is None
    if request.config.getoption("--update"):
        path.write_text(f"{header}{body}{EXPECTED}{result}")
        return
    assert result == expected, f"before:\n{body}\nafter {name}:\n{result}"
