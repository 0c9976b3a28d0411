/* Linear layouts as Python sees them: for triton.tools.layout, which draws them, and for the tests.
 * A layout crosses as (out_bits, in_bits, bases), tuples of ints as in layout/layout.h. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "layout/layout.h"

static bool read_ints(PyObject *sequence, int64_t *out, int limit, int *count)
{
    Py_ssize_t size = PySequence_Size(sequence);
    if (size < 0)
        return false;
    if (size > limit) {
        PyErr_Format(PyExc_ValueError, "at most %d numbers are expected, not %zd", limit, size);
        return false;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        out[i] = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return false;
    }
    *count = (int)size;
    return true;
}

static bool read_layout(PyObject *object, LinearLayout *layout)
{
    PyObject *out_bits, *in_bits, *bases;
    int64_t numbers[64];
    int count, total;
    *layout = (LinearLayout){0};
    if (!PyArg_ParseTuple(object, "OOO;a layout is (out_bits, in_bits, bases)", &out_bits, &in_bits, &bases))
        return false;
    if (!read_ints(out_bits, numbers, TT_MAX_RANK, &layout->rank))
        return false;
    for (int i = 0; i < layout->rank; i++)
        layout->out_bits[i] = (int)numbers[i];
    if (!read_ints(in_bits, numbers, LAYOUT_INPUTS, &count))
        return false;
    for (int i = 0; i < count; i++)
        layout->in_bits[i] = (int)numbers[i];
    if (!read_ints(bases, (int64_t *)layout->bases, 64, &total))
        return false;
    if (count != LAYOUT_INPUTS || total != tt_layout_in_total(layout) || tt_layout_out_total(layout) > 40) {
        PyErr_SetString(PyExc_ValueError,
                        "a layout has four input bit counts, as many bases, and at most 2^40 elements");
        return false;
    }
    return true;
}

static PyObject *int_tuple(const int *numbers, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++)
        PyTuple_SetItem(tuple, i, PyLong_FromLong(numbers[i]));
    return tuple;
}

static PyObject *mask_tuple(const uint64_t *masks, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++)
        PyTuple_SetItem(tuple, i, PyLong_FromUnsignedLongLong(masks[i]));
    return tuple;
}

static PyObject *write_layout(const LinearLayout *layout)
{
    return Py_BuildValue("NNN", int_tuple(layout->out_bits, layout->rank),
                         int_tuple(layout->in_bits, LAYOUT_INPUTS),
                         mask_tuple(layout->bases, tt_layout_in_total(layout)));
}

/* A bug in the algebra (TT_ASSERT) becomes an exception. */
#define GUARDED(trap, arena, ...)                                                                            \
    do {                                                                                                     \
        if (tt_try(&(trap), &(arena))) {                                                                     \
            __VA_ARGS__;                                                                                     \
            tt_end_try(&(trap));                                                                             \
        } else {                                                                                             \
            PyErr_SetString(PyExc_ValueError, (trap).diag.message);                                          \
        }                                                                                                    \
        tt_arena_release(&(arena));                                                                          \
        if (PyErr_Occurred())                                                                                \
            return NULL;                                                                                     \
    } while (0)

static PyObject *make(PyObject *module, PyObject *args)
{
    (void)module;
    const char *kind;
    PyObject *parts[5] = {NULL};
    int64_t numbers[5][TT_MAX_RANK];
    int counts[5] = {0}, order[TT_MAX_RANK];
    if (!PyArg_ParseTuple(args, "sO|OOOO", &kind, &parts[0], &parts[1], &parts[2], &parts[3], &parts[4]))
        return NULL;
    for (int i = 0; i < 5 && parts[i]; i++)
        if (!read_ints(parts[i], numbers[i], TT_MAX_RANK, &counts[i]))
            return NULL;
    for (int i = 0; i < counts[4]; i++)
        order[i] = (int)numbers[4][i];
    LinearLayout layout;
    Trap trap;
    Arena arena = {0};
    GUARDED(trap, arena, {
        if (!strcmp(kind, "blocked") && counts[4] == counts[0])
            layout = tt_layout_blocked(numbers[0], counts[0], numbers[1], numbers[2], numbers[3], order);
        else if (!strcmp(kind, "swizzled") && counts[1] == 3)
            layout = tt_layout_swizzled(numbers[0], counts[0], numbers[1][0], numbers[1][1], numbers[1][2]);
        else if (!strcmp(kind, "nvmma") && counts[1] == 2)
            layout = tt_layout_nvmma(numbers[0], counts[0], (int)numbers[1][0], (int)numbers[1][1]);
        else if (!strcmp(kind, "mma") && (counts[0] == 2 || counts[0] == 3) && counts[1] == 2 &&
                 counts[2] == counts[0])
            layout =
                tt_layout_mma(numbers[0], counts[0], (MmaPart)numbers[1][0], (int)numbers[1][1], numbers[2]);
        else
            tt_error(NULL, "no layout '%s' of these arguments", kind);
    });
    return write_layout(&layout);
}

static PyObject *transform(PyObject *module, PyObject *args)
{
    (void)module;
    const char *kind;
    PyObject *object, *part = NULL;
    LinearLayout layout, result;
    int64_t numbers[TT_MAX_RANK] = {0};
    int count = 0, order[TT_MAX_RANK];
    if (!PyArg_ParseTuple(args, "sO|O", &kind, &object, &part) || !read_layout(object, &layout) ||
        (part && !read_ints(part, numbers, TT_MAX_RANK, &count)))
        return NULL;
    for (int i = 0; i < count; i++)
        order[i] = (int)numbers[i];
    bool exists = true;
    Trap trap;
    Arena arena = {0};
    GUARDED(trap, arena, {
        if (!strcmp(kind, "slice"))
            result = tt_layout_slice(&layout, order[0]);
        else if (!strcmp(kind, "expand"))
            result = tt_layout_expand(&layout, order[0]);
        else if (!strcmp(kind, "broadcast"))
            result = tt_layout_broadcast(&layout, numbers);
        else if (!strcmp(kind, "permute"))
            result = tt_layout_permute(&layout, order);
        else if (!strcmp(kind, "reshape"))
            result = tt_layout_reshape(&layout, numbers, count);
        else if (!strcmp(kind, "join"))
            result = tt_layout_join(&layout);
        else if (!strcmp(kind, "split"))
            exists = tt_layout_split(&layout, &result);
        else if (!strcmp(kind, "quotient"))
            exists = tt_layout_quotient(&layout, order[0], &result);
        else if (!strcmp(kind, "without_register_copies"))
            result = tt_layout_without_register_copies(&layout);
        else
            tt_error(NULL, "no transformation '%s'", kind);
    });
    if (!exists)
        Py_RETURN_NONE;
    return write_layout(&result);
}

static PyObject *compose(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *first, *second;
    LinearLayout outer, inner, result;
    if (!PyArg_ParseTuple(args, "OO", &first, &second) || !read_layout(first, &outer) ||
        !read_layout(second, &inner))
        return NULL;
    Trap trap;
    Arena arena = {0};
    GUARDED(trap, arena, result = tt_layout_compose(&outer, &inner));
    return write_layout(&result);
}

static PyObject *inspect(PyObject *module, PyObject *object)
{
    (void)module;
    LinearLayout layout;
    if (!read_layout(object, &layout))
        return NULL;
    uint64_t inverse[64];
    bool surjective = tt_layout_is_surjective(&layout);
    Trap trap;
    Arena arena = {0};
    if (surjective)
        GUARDED(trap, arena, tt_layout_right_inverse(&layout, inverse));
    return Py_BuildValue("{s:O,s:O,s:L,s:(III),s:N}", "surjective", surjective ? Py_True : Py_False,
                         "injective", tt_layout_is_injective(&layout) ? Py_True : Py_False, "contiguous",
                         (long long)tt_layout_contiguous(&layout), "replication",
                         tt_layout_replication(&layout, LAYOUT_REGISTER),
                         tt_layout_replication(&layout, LAYOUT_LANE),
                         tt_layout_replication(&layout, LAYOUT_WARP), "right_inverse",
                         mask_tuple(inverse, surjective ? tt_layout_out_total(&layout) : 0));
}

static PyObject *axis_bits(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object;
    int axis;
    LinearLayout layout;
    if (!PyArg_ParseTuple(args, "Oi", &object, &axis) || !read_layout(object, &layout))
        return NULL;
    if (axis < 0 || axis >= layout.rank)
        return PyErr_Format(PyExc_ValueError, "axis %d of a layout of rank %d", axis, layout.rank);
    AxisBits bits = tt_layout_axis_bits(&layout, axis);
    return Py_BuildValue("(IIII)", bits.along[0], bits.along[1], bits.along[2], bits.along[3]);
}

static PyObject *registers_plan(const ConvertPlan *plan, const LinearLayout *to)
{
    return Py_BuildValue("{s:s,s:N}", "kind", plan->kind == CONVERT_NONE ? "none" : "registers",
                         "register_source", mask_tuple(plan->register_source, to->in_bits[LAYOUT_REGISTER]));
}

static PyObject *shuffle_plan(const ShufflePlan *plan)
{
    return Py_BuildValue("{s:s,s:N,s:N,s:N,s:N,s:N}", "kind", "shuffle", "keep_lane",
                         mask_tuple(plan->keep_lane, plan->lane_bits), "source_round",
                         mask_tuple(plan->source_round, plan->rounds_bits), "source_lane",
                         mask_tuple(plan->source_lane, plan->lane_bits), "send_round",
                         mask_tuple(plan->send_round, plan->rounds_bits), "send_lane",
                         mask_tuple(plan->send_lane, plan->lane_bits));
}

/* Wavefronts of one side's access, and the fewest that its width allows. */
static PyObject *access_cost(const LinearLayout *layout, const uint64_t *offsets, int vector_bits,
                             int element_bytes)
{
    int wavefronts, fewest;
    tt_layout_bank_conflicts(offsets + layout->in_bits[LAYOUT_REGISTER], layout->in_bits[LAYOUT_LANE],
                             element_bytes << vector_bits, element_bytes, &wavefronts, &fewest);
    return Py_BuildValue("(ii)", wavefronts, fewest);
}

static PyObject *shared_plan(const SharedPlan *plan, const LinearLayout *from, const LinearLayout *to,
                             int element_bytes)
{
    return Py_BuildValue("{s:s,s:N,s:(ii),s:N,s:N,s:N,s:N}", "kind", "shared", "memory",
                         write_layout(&plan->memory), "vector_bits", plan->store_bits, plan->load_bits,
                         "store_offsets", mask_tuple(plan->store_offsets, tt_layout_in_total(from)),
                         "load_offsets", mask_tuple(plan->load_offsets, tt_layout_in_total(to)), "store_cost",
                         access_cost(from, plan->store_offsets, plan->store_bits, element_bytes), "load_cost",
                         access_cost(to, plan->load_offsets, plan->load_bits, element_bytes));
}

static PyObject *plan_conversion(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *first, *second;
    int element_bytes, stores_matrices = 0;
    LinearLayout from, to;
    if (!PyArg_ParseTuple(args, "OOi|p", &first, &second, &element_bytes, &stores_matrices) ||
        !read_layout(first, &from) || !read_layout(second, &to))
        return NULL;
    ConvertPlan plan;
    Trap trap;
    Arena arena = {0};
    GUARDED(trap, arena, plan = tt_layout_plan_conversion(&from, &to, element_bytes, stores_matrices));
    if (plan.kind == CONVERT_SHUFFLE)
        return shuffle_plan(&plan.shuffle);
    if (plan.kind == CONVERT_SHARED)
        return shared_plan(&plan.shared, &from, &to, element_bytes);
    return registers_plan(&plan, &to);
}

PyMethodDef tt_layout_methods[] = {
    {"_layout", make, METH_VARARGS, "_layout(kind, shape, ...) -> layout"},
    {"_layout_transform", transform, METH_VARARGS,
     "_layout_transform(kind, layout, numbers) -> layout or None"},
    {"_layout_compose", compose, METH_VARARGS, "_layout_compose(outer, inner) -> layout"},
    {"_layout_inspect", inspect, METH_O, "_layout_inspect(layout) -> dict"},
    {"_layout_axis_bits", axis_bits, METH_VARARGS, "_layout_axis_bits(layout, axis) -> masks"},
    {"_layout_plan", plan_conversion, METH_VARARGS,
     "_layout_plan(from, to, element_bytes, stores_matrices=False) -> dict"},
    {NULL, NULL, 0, NULL},
};
