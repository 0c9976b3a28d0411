"""Huge LLVM functions in pieces, on LLVM IR text. LLVM's verifier has seen every result."""

import re

import pytest

from triton import _C


def functions(text):
    """{name: instructions} of the functions that a module defines."""
    found = {}
    for name, body in re.findall(r"^define [^@]*@([\w.]+)\(.*?\{\n(.*?)^\}", text, re.M | re.S):
        found[name] = [line.strip() for line in body.splitlines() if line.startswith("  ")]
    return found


def split(text, longest):
    result = functions(_C._split_llvm(text, longest))
    assert all(len(body) <= 1.5 * longest for body in result.values()), {n: len(b) for n, b in result.items()}
    return result


def chain(count, name="a", start="%x"):
    lines = [f"%{name}0 = add i32 {start}, 1"]
    lines += [f"%{name}{i} = mul i32 %{name}{i - 1}, {i + 2}" for i in range(1, count)]
    return "\n  ".join(lines), f"%{name}{count - 1}"


def test_short_functions_stay():
    body, last = chain(30)
    text = f"define i32 @f(i32 %x) {{\n  {body}\n  ret i32 {last}\n}}\n"
    assert list(split(text, 40)) == ["f"]


def test_straight_code():
    body, last = chain(1000)
    text = f"define void @f(ptr %p, i32 %x) {{\n  {body}\n  store i32 {last}, ptr %p\n  ret void\n}}\n"
    result = split(text, 80)
    assert len(result) > 100
    operations = [line.split(" = ")[1].split()[0] for body in result.values() for line in body if " = " in line]
    assert operations.count("mul") == 999  # each once
    assert sum(name.startswith("f.") for name in result) == len(result) - 1


def test_attributes_and_vectors():
    """What the pieces are compiled for stays; what crosses is aligned as its type wants."""
    body = "\n  ".join(f"%v{i} = fadd <16 x float> %v{i - 1}, %v{i // 2}" for i in range(1, 200))
    text = f"""
    define void @f(ptr %p) #0 {{
      %v0 = load <16 x float>, ptr %p, align 64
      {body}
      store <16 x float> %v199, ptr %p, align 64
      ret void
    }}
    attributes #0 = {{ nounwind "target-cpu"="x86-64-v4" "nvvm.reqntid"="128" }}
    """
    result = _C._split_llvm(text, 80)
    pieces = set(re.findall(r"^define internal i1 @f\.\d+\(ptr %0\) #(\d+)", result, re.M))
    [attributes] = (re.search(rf"^attributes #{n} = (.*)", result, re.M)[1] for n in pieces)
    assert "nounwind" in attributes and "noinline" in attributes and "convergent" in attributes
    assert '"target-cpu"="x86-64-v4"' in attributes and "nvvm" not in attributes
    assert re.search(r"%frame = alloca \[\d+ x i8\], align 64", result)
    assert not re.search(r"(load|store) <16 x float>.*align (?!64)", result)


def test_loop_with_a_long_body():
    """The loop's header and end stay; what it carries goes in and out by phis as before."""
    body, last = chain(500, start="%s")
    text = f"""
    define void @f(ptr %p, i32 %n) {{
    entry:
      br label %loop
    loop:
      %i = phi i32 [ 0, %entry ], [ %next, %loop ]
      %s = phi i32 [ 0, %entry ], [ {last}, %loop ]
      {body}
      %next = add i32 %i, 1
      %more = icmp slt i32 %next, %n
      br i1 %more, label %loop, label %done
    done:
      store i32 {last}, ptr %p
      ret void
    }}
    """
    result = split(text, 80)
    assert sum("phi" in line for line in result["f"]) == 2
    assert not any("phi" in line for name, body in result.items() if name != "f" for line in body)


def test_many_loops():
    """Loops that are short themselves go into pieces whole."""
    loops, last = [], "%x"
    for i in range(60):
        before = f"done{i - 1}" if i else "entry"
        loops.append(f"""
        br label %loop{i}
      loop{i}:
        %i{i} = phi i32 [ 0, %{before} ], [ %next{i}, %loop{i} ]
        %s{i} = phi i32 [ {last}, %{before} ], [ %t{i}, %loop{i} ]
        %t{i} = xor i32 %s{i}, %i{i}
        %next{i} = add i32 %i{i}, {i + 1}
        %more{i} = icmp slt i32 %next{i}, %x
        br i1 %more{i}, label %loop{i}, label %done{i}
      done{i}:""")
        last = f"%t{i}"
    text = f"define void @f(ptr %p, i32 %x) {{\nentry:{''.join(loops)}\nstore i32 {last}, ptr %p\nret void\n}}\n"
    result = split(text, 120)
    assert sum("phi" in line for line in result["f"]) < 20
    assert sum("phi" in line for body in result.values() for line in body) == 120


def test_nested_branches():
    """The innermost go first, so that what is around them gets short, however deep."""
    depth = 300
    down = "".join(
        f"test{i}:\n %c{i} = icmp eq i32 %x, {i}\n br i1 %c{i}, label %yes{i}, label %test{i + 1}\n"
        f"yes{i}:\n %y{i} = mul i32 %x, {i + 3}\n br label %end{i}\n"
        for i in range(depth)
    )
    up = "".join(
        f"end{i}:\n %e{i} = phi i32 [ %y{i}, %yes{i} ], [ {f'%e{i + 1}' if i + 1 < depth else '7'}, "
        f"%{f'end{i + 1}' if i + 1 < depth else f'test{depth}'} ]\n"
        + (f" br label %end{i - 1}\n" if i else " store i32 %e0, ptr %p\n ret void\n")
        for i in reversed(range(depth))
    )
    middle = f"test{depth}:\n br label %end{depth - 1}\n"
    text = f"define void @f(ptr %p, i32 %x) {{\nentry:\n br label %test0\n{down}{middle}{up}}}"
    result = split(text, 100)
    assert len(result["f"]) < 100


@pytest.mark.parametrize("returned", ["void", "i1 true"])
def test_returns_inside(returned):
    """A piece says whether the function that it is of returns."""
    checks = "".join(
        f" %c{i} = icmp eq i32 %x, {i}\n br i1 %c{i}, label %stop{i}, label %go{i}\n"
        f"stop{i}:\n ret {returned}\ngo{i}:\n store volatile i32 {i}, ptr %p\n"
        for i in range(200)
    )
    last = returned.replace("true", "false")
    text = f"define {returned.split()[0]} @f(ptr %p, i32 %x) {{\n{checks} ret {last}\n}}\n"
    result = split(text, 200)
    assert len(result) > 20
    returns = [line for name, body in result.items() if name != "f" for line in body if line.startswith("ret ")]
    assert returns.count("ret i1 true") > 150 and returns.count("ret i1 false") == len(result) - 1
