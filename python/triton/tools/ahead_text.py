"""The C text of kernels that were compiled ahead of time: see `triton.tools.ahead`, and `ahead_grid` for
functions of the same parts by other names."""

import json

MARK = "/* triton.tools.link "

GRID = "uint32_t grid_x, uint32_t grid_y, uint32_t grid_z"
# What the text uses itself, and words of C and C++: a parameter of this name gets another one.
_OWN_WORDS = """
    grid_x grid_y grid_z stream first count slots scratch launch site fail context function parameters error image
    all lock load loaded find_driver get_context load_module get_function set_attribute launch_kernel SHARED THREADS
    OPTED_IN MAX_DYNAMIC_SHARED NULL memcpy malloc free aligned_alloc fprintf stderr errno main algo_id algorithms"""
_C_WORDS = """
    alignas alignof and asm auto bool break case catch char class const constexpr continue default delete do double else
    enum export extern false float for friend goto if inline int long namespace new not nullptr operator or private
    protected public register restrict return short signed sizeof static struct switch template this thread_local throw
    true try typedef typeof union unsigned using virtual void volatile while xor"""
TAKEN = frozenset((_OWN_WORDS + _C_WORDS).split())

RESULTS = """/* What is returned: 0; or why nothing was done, TRITON_NO_VARIANT: an argument is not what the kernel was
 * compiled for; TRITON_NO_MEMORY; TRITON_NO_DRIVER; TRITON_FAILED: an assertion, which stderr tells of; or an error of
 * the CUDA driver (a positive number). */
#ifndef TRITON_NO_VARIANT
#define TRITON_NO_VARIANT (-1)
#define TRITON_NO_MEMORY (-2)
#define TRITON_NO_DRIVER (-3)
#define TRITON_FAILED (-4)
#endif
"""


def _guarded(name, body):
    guard = f"TRITON_{name.upper()}_H"
    return f"""{body[0]}
#ifndef {guard}
#define {guard}
#include <stdbool.h>
#include <stdint.h>

{RESULTS}
#ifdef __cplusplus
extern "C" {{
#endif
{body[1]}
#ifdef __cplusplus
}}
#endif
#endif
"""


def declared(parameters):
    """Parameters of a function of C, each behind a comma."""
    return "".join(f", {p.type}{p.name}" if p.type.endswith("*") else f", {p.type} {p.name}" for p in parameters)


def _signature(name, target, parameters):
    first = "" if target == "cpu" else "void *stream, "
    return f"int {name}({first}{GRID}{declared(parameters)})"


def _part_signature(name, parameters):
    return f"int {name}_part(int64_t first, int64_t count, {GRID}{declared(parameters)})"


def mark(facts):
    """The line of a header that `triton.tools.link` reads."""
    return f"{MARK}{json.dumps(facts)} */"


def header(variant):
    target, name = variant.facts()["target"], variant.name
    info = variant.compiled.info
    what = f"{variant.kernel.__name__}({', '.join(map(str, variant.signature))}) for {info['target']}"
    if target == "cpu":
        text = f"""/* Runs the programs of a grid, one after the other. */
{_signature(name, target, variant.arguments)};
/* Some of them, counted from 0 with the first axis the fastest: for threads of your own. */
{_part_signature(name, variant.arguments)};
"""
    else:
        text = f"""/* Enqueues the programs of a grid on a stream (CUstream), in the thread's current context. Pointers
 * are addresses of its device. */
{_signature(name, target, variant.arguments)};
"""
    first = f"/* {what}, compiled ahead of time. */\n{mark(variant.facts())}"
    return _guarded(name, (first, text))


def slots(variant):
    """C that makes the array `slots`: 64 bits an argument."""
    lines = [f"    uint64_t slots[{max(len(variant.arguments), 1)}] = {{0}};"]
    for number, parameter in enumerate(variant.arguments):
        if parameter.kind in ("fp32", "fp64"):
            lines.append(f"    memcpy(&slots[{number}], &{parameter.name}, sizeof {parameter.name});")
        elif parameter.type.endswith("*"):
            lines.append(f"    slots[{number}] = (uint64_t)(uintptr_t){parameter.name};")
        else:
            lines.append(f"    slots[{number}] = (uint64_t){parameter.name};")
    return "\n".join(lines)


def slot_addresses(variant):
    """Of all, behind each other: what a launch takes."""
    return ", ".join(f"&slots[{number}]" for number in range(max(len(variant.arguments), 1)))


def checks(variant, error):
    """C that returns this error where an argument is not as it must be."""
    conditions = [condition for p in variant.arguments if (condition := p.condition())]
    if not conditions:
        return ""
    return f"    if ({' || '.join(conditions)})\n        return {error};\n"


def cpu_source(variant):
    name, parameters = variant.name, variant.arguments
    memory = -(-max(int(variant.compiled.info["shared"]), 64) // 4096) * 4096
    values = "".join(f", {p.name}" for p in parameters)
    return f"""/* See {name}.h. The machine code is in {name}.o, and calls the mathematical library. */
#include "{name}.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the code sees of a launch, and of a place in it that fails. */
struct site {{
    int32_t kind;
    const char *place, *message;
}};
struct launch {{
    const uint64_t *arguments;
    int32_t grid[3], stream, stopped;
    int64_t stored_bytes;
    void (*print)(void);
    void (*fail)(struct launch *, const struct site *, int32_t, int32_t, int32_t, const int64_t *);
}};
extern void {variant.symbol}(struct launch *, void *scratch, int64_t count, int32_t x, int32_t y, int32_t z);

static void fail(struct launch *launch, const struct site *site, int32_t x, int32_t y, int32_t z, const int64_t *values)
{{
    (void)values;
    if (!launch->stopped)
        fprintf(stderr, "%s: %s, in program (%d, %d, %d)\\n", site->place, site->message, x, y, z);
    launch->stopped = 1;
}}

{_part_signature(name, parameters)}
{{
{slots(variant)}
{checks(variant, "TRITON_NO_VARIANT")}    if (count < 1 || !grid_x || !grid_y || !grid_z)
        return 0;
    void *scratch = aligned_alloc(4096, {memory});
    if (!scratch)
        return TRITON_NO_MEMORY;
    struct launch launch = {{slots, {{(int32_t)grid_x, (int32_t)grid_y, (int32_t)grid_z}}, 0, 0, 0, NULL, fail}};
    {variant.symbol}(&launch, scratch, count, (int32_t)(first % grid_x), (int32_t)(first / grid_x % grid_y),
    {" " * len(variant.symbol)} (int32_t)(first / grid_x / grid_y));
    free(scratch);
    return launch.stopped ? TRITON_FAILED : 0;
}}

{_signature(name, "cpu", parameters)}
{{
    return {name}_part(0, (int64_t)grid_x * grid_y * grid_z, grid_x, grid_y, grid_z{values});
}}
"""


def byte_list(data):
    """What initialises an array of C."""
    lines = [", ".join(map(str, data[start : start + 24])) for start in range(0, len(data), 24)]
    return ",\n    ".join(lines)


def cuda_source(variant, code):
    name, info = variant.name, variant.compiled.info
    launch = "cuLaunchCooperativeKernel" if info["launch_cooperative_grid"] else "cuLaunchKernel"
    last = "" if info["launch_cooperative_grid"] else ", NULL"
    last_type = "" if info["launch_cooperative_grid"] else ", void **"
    shared, threads = int(info["shared"]), info["num_warps"] * 32
    entry = variant.kernel.__name__
    return f"""/* See {name}.h. The driver is found at run time; nothing else of CUDA is needed. Link with -ldl and
 * -lpthread where the C library does not have these. */
#include "{name}.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {{ SHARED = {shared}, THREADS = {threads}, OPTED_IN = 48 * 1024, MAX_DYNAMIC_SHARED = 8 }};

static const unsigned char image[] __attribute__((aligned(64))) = {{
    {byte_list(code)}}};

/* Of the driver's API, as its manual has it: errors, contexts, modules and functions are numbers and pointers. */
static int (*get_context)(void **);
static int (*load_module)(void **, const void *);
static int (*get_function)(void **, void *, const char *);
static int (*set_attribute)(void *, int, int);
static int (*launch_kernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                            void **{last_type});

static int find_driver(void)
{{
    const struct {{
        const char *name;
        void **function;
    }} names[] = {{{{"cuCtxGetCurrent", (void **)&get_context}},
                 {{"cuModuleLoadData", (void **)&load_module}},
                 {{"cuModuleGetFunction", (void **)&get_function}},
                 {{"cuFuncSetAttribute", (void **)&set_attribute}},
                 {{"{launch}", (void **)&launch_kernel}}}};
    void *driver = launch_kernel ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
    for (unsigned i = 0; !launch_kernel && i < sizeof names / sizeof *names; i++)
        if (!driver || !(*names[i].function = dlsym(driver, names[i].name)))
            return TRITON_NO_DRIVER;
    return 0;
}}

/* In each context that it was launched in. */
struct loaded {{
    void *context, *function;
    struct loaded *next;
}};
static struct loaded *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int load(void *context, void **function)
{{
    void *module;
    for (const struct loaded *one = all; one; one = one->next)
        if (one->context == context)
            return *function = one->function, 0;
    int error = load_module(&module, image);
    if (!error)
        error = get_function(function, module, "{entry}");
    if (!error && SHARED > OPTED_IN)
        error = set_attribute(*function, MAX_DYNAMIC_SHARED, SHARED);
    struct loaded *one = error ? NULL : malloc(sizeof *one);
    if (!one)
        return error ? error : TRITON_NO_MEMORY;
    *one = (struct loaded){{context, *function, all}};
    all = one;
    return 0;
}}

{_signature(name, "cuda", variant.arguments)}
{{
    void *context, *function;
{slots(variant)}
    void *parameters[] = {{{slot_addresses(variant)}}};
{checks(variant, "TRITON_NO_VARIANT")}    pthread_mutex_lock(&lock);
    int error = find_driver();
    if (!error)
        error = get_context(&context);
    if (!error)
        error = load(context, &function);
    pthread_mutex_unlock(&lock);
    if (error || !grid_x || !grid_y || !grid_z)
        return error;
    return launch_kernel(function, grid_x, grid_y, grid_z, THREADS, 1, 1, SHARED, stream, parameters{last});
}}
"""


# ---- several variants


def dispatcher_header(name, facts, parameters):
    target = facts[0]["target"]
    first = f"/* {facts[0]['kernel']}, in {len(facts)} variants, compiled ahead of time. */"
    text = f"""/* Calls the first of {", ".join(each["name"] for each in facts)} that the arguments fit. */
{_signature(name, target, parameters)};
"""
    return _guarded(name, (first, text))


def first_that_fits(facts, parameters, first, otherwise):
    """C that calls the first of some variants that the arguments fit.

    :param parameters: of the function around it.
    :param first: arguments that all have.
    :param otherwise: what is returned where none fits.
    """
    from .ahead import Parameter

    calls = []
    for each in facts:
        own = [Parameter(**p) for p in each["parameters"]]
        for parameter, common in zip(own, parameters, strict=True):
            parameter.type = common.type
        conditions = " || ".join(condition for p in own if (condition := p.condition()))
        values = ", ".join(first + [p.name for p in own if p.value is None])
        call = f"return {each['name']}({values});"
        calls.append(f"    if (!({conditions}))\n        {call}\n" if conditions else f"    {call}\n")
        if not conditions:
            return "".join(calls)
    return "".join(calls) + f"    return {otherwise};\n"


def dispatcher(name, facts, parameters):
    target = facts[0]["target"]
    first = (["stream"] if target != "cpu" else []) + ["grid_x", "grid_y", "grid_z"]
    includes = "".join(f'#include "{each["name"]}.h"\n' for each in facts)
    return f"""/* See {name}.h. */
#include "{name}.h"

{includes}
{_signature(name, target, parameters)}
{{
{first_that_fits(facts, parameters, first, "TRITON_NO_VARIANT")}}}
"""
