"""README.md claims what the dated results say, and names what there is."""

import json
import math
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
FAST = README.partition("## How fast")[2].partition("\n## ")[0]
CPU = "benchmarks/results/2026-11-20-amd-epyc-zen4-2-cores"
KERNELS = "benchmarks/results/2026-11-23-amd-epyc-zen4-2-cores"
LATEST = "benchmarks/results/2026-11-23-nvidia-h200"
GPU = f"{LATEST}/gpu.json"
ATTENTION = "benchmarks/results/2026-11-24-nvidia-h200/attention.json"
PEERS = {"torch": "torch", "NumPy": "numpy", "Triton 3.6": "peer"}

pytestmark = pytest.mark.host


def rows_of(file):
    return {row["case"]: row for row in json.loads((ROOT / file).read_text())["rows"]}


def tables():
    """(file, heads, cells) of each row of a table of figures; the file is the one linked last before it."""
    file, heads = None, None
    for line in FAST.splitlines():
        if linked := re.findall(r"\]\((benchmarks/[^)]*json)\)", line):
            file = linked[-1]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| | "):
            heads = cells
        elif line.startswith("| ") and not cells[0].startswith("---"):
            yield file, heads, cells


def same(text, value):
    """Whether a figure is that value, rounded to the digits that it has."""
    digits = len(text.partition(".")[2])
    return abs(float(text) - value) <= 0.5000001 * 10**-digits


def test_tables():
    seen = list(tables())
    assert {file for file, _, _ in seen} == {f"{KERNELS}/cpu.json", f"{KERNELS}/cpu-avx2.json", GPU, ATTENTION}
    for file, heads, (case, ours, *peers, ratio) in seen:
        row = rows_of(file)[case]
        assert same(ours, row["ours"]), case
        for head, cell in zip(heads[2:], peers, strict=False):
            value = row["peers"].get(PEERS[head])
            assert cell == "–" if value is None else same(cell, value), (case, head)
        assert same(ratio, row["peers"][PEERS[heads[2]]] / row["ours"]), case


def test_other_figures():
    text = " ".join(FAST.split())
    compiling = re.search(r"(\d+) ms for the addition, (\d+) ms for the softmax, (\d+) ms for the matrix product", text)
    rows = rows_of(f"{CPU}/compile.json")
    for figure, case in zip(compiling.groups(), ("vector_add", "softmax", "matmul"), strict=True):
        assert same(figure, rows[case]["ours"])
    launching = re.search(r"takes ([\d.]+) µs with NumPy arrays and ([\d.]+) µs with .*? takes ([\d.]+) µs", text)
    rows = rows_of(f"{CPU}/launch.json")
    numpy, torch = rows["5 arguments, NumPy arrays"], rows["5 arguments, torch tensors"]
    values = numpy["ours"], torch["ours"], torch["peers"]["torch.add"]
    assert all(same(figure, value) for figure, value in zip(launching.groups(), values, strict=True))


def test_figures_over_many_kernels():
    text, rows = " ".join(FAST.split()), list(rows_of(GPU).values())
    first = next(number for number, row in enumerate(rows) if row["case"].startswith("matmul"))
    without = [row for row in rows[:first] if row["ratio"]]
    count, mean, behind = re.search(
        r"Over the (\d+) kernels .*? takes ([\d.]+) of .*? up to (\d+) % behind", text
    ).groups()
    assert int(count) == len(without)
    assert same(mean, math.exp(sum(math.log(row["ratio"]) for row in without) / len(without)))
    small = [row["ratio"] for row in without if row["ours"] < 15]
    assert 1 - int(behind) / 100 <= min(small)
    ratios = [row["ratio"] for row in rows_of(f"{LATEST}/libraries.json").values()]
    count, mean, last = re.search(
        r"Over the (\d+) of .*? takes ([\d.]+) of .*? and ([\d.]+) for the one", text
    ).groups()
    assert int(count) == len(ratios) and same(last, min(ratios))
    assert same(mean, math.exp(sum(map(math.log, ratios)) / len(ratios)))
    low, high = re.search(r"compile ([\d.]+) \(a matrix product\) to (\d+) times", text).groups()
    rows = rows_of(f"{LATEST}/compile.json").values()
    compiled = [row["ratio"] for row in rows if row["case"].startswith("compile") and "first" not in row["case"]]
    assert same(low, min(compiled)) and same(high, max(compiled))


def test_what_it_names_is_there():
    text = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    for path in re.findall(r"\]\(([^)#]+)\)|`((?:tests|tutorials|benchmarks|scripts)/[\w./-]+?)`", text):
        name = path[0] or path[1]
        assert (ROOT / name).exists(), name
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make (?:\w+= )?(\w[\w-]*)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
