/* One operation by itself: Python objects that stand for run-time values become parameters of a function, the operation
 * is built in it as the walk of a kernel would, and what it gives goes back as a description. So whoever runs kernels
 * operation by operation asks the compiler what each means, and keeps no rules of its own. */
#include "frontend/walker.h"

typedef struct Trace {
    const TraceRequest *request;
    PyObject **structure;
    TT_VECTOR(const Type *) types; /* of the parameters */
    Value **values;                /* these, once there is a function */
    int next;
} Trace;

/* ---- arguments ------------------------------------------------------------------------------------------------------- */

static int read_ints(Walker *w, PyObject *tuple, int64_t *out)
{
    int count = PyTuple_Check(tuple) ? (int)PyTuple_Size(tuple) : TT_MAX_RANK + 1;
    if (count > TT_MAX_RANK)
        tt_fail(w, "a tile has at most %d dimensions", TT_MAX_RANK);
    for (int i = 0; i < count; i++) {
        out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (PyErr_Occurred())
            tt_python_error(w);
    }
    return count;
}

static Term read_object(Walker *w, Trace *trace, PyObject *object);

/* A number that is known is a constant of the function. */
static Term read_tile(Walker *w, Trace *trace, PyObject *object)
{
    int64_t shape[TT_MAX_RANK];
    const Dtype *dtype = tt_dtype_from_object(w, tt_attribute(w, object, FIELD_dtype));
    int rank = read_ints(w, tt_attribute(w, object, FIELD_shape), shape);
    PyObject *constant = tt_attribute(w, object, FIELD__constant);
    if (!dtype)
        tt_fail(w, "a tile without a dtype");
    if (constant != Py_None)
        return trace->values ? tt_number_value(w, tt_python_term(w, constant), dtype) : tt_none(w);
    if (trace->values)
        return tt_value_term(trace->values[trace->next++], dtype);
    tt_push(w->arena, trace->types, tt_dtype_shaped(w, dtype, shape, rank));
    return tt_none(w);
}

static Term read_tuple(Walker *w, Trace *trace, PyObject *object)
{
    Term tuple = tt_tuple_like(w, object);
    for (int i = 0; i < tuple.count; i++)
        tuple.items[i] = read_object(w, trace, PyTuple_GetItem(object, i));
    return tuple;
}

static Term read_window(Walker *w, Trace *trace, PyObject *object)
{
    int64_t order[TT_MAX_RANK];
    BlockShape *block = TT_NEW(w->arena, BlockShape);
    block->rank = read_ints(w, tt_attribute(w, object, FIELD_block_shape), block->shape);
    read_ints(w, tt_attribute(w, object, FIELD_order), order);
    for (int i = 0; i < block->rank; i++)
        block->order[i] = (int)order[i];
    Term window = read_tuple(w, trace, tt_attribute(w, object, FIELD__items));
    window.kind = TERM_BLOCK_POINTER;
    window.block = block;
    return window;
}

static Term read_slice(Walker *w, Trace *trace, PyObject *object)
{
    Term items[] = {read_object(w, trace, tt_attribute(w, object, FIELD_start)),
                    read_object(w, trace, tt_attribute(w, object, FIELD_stop)),
                    read_object(w, trace, tt_attribute(w, object, FIELD_step))};
    Term slice = tt_tuple_term(w, items, 3);
    slice.kind = TERM_SLICE;
    return slice;
}

static Term read_object(Walker *w, Trace *trace, PyObject *object)
{
    tt_check_depth(w);
    if (PyTuple_Check(object))
        return read_tuple(w, trace, object);
    if (PyList_Check(object))
        return read_tuple(w, trace, tt_keep(w, PyList_AsTuple(object)));
    if (PySlice_Check(object))
        return read_slice(w, trace, object);
    switch (tt_object_kind(w, object)) {
    case OBJECT_TILE:
        return read_tile(w, trace, object);
    case OBJECT_WINDOW:
        return read_window(w, trace, object);
    default:
        return tt_python_term(w, object);
    }
}

static Arguments read_arguments(Walker *w, Trace *trace)
{
    const TraceRequest *request = trace->request;
    int capacity = (int)PyDict_Size(request->keywords);
    Term tuple = read_tuple(w, trace, request->args);
    Arguments args = {.items = tuple.items, .count = tuple.count};
    args.names = TT_NEW_ARRAY(w->arena, PyObject *, capacity);
    args.named = TT_NEW_ARRAY(w->arena, Term, capacity);
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (PyDict_Next(request->keywords, &position, &name, &value)) {
        args.names[args.named_count] = name;
        args.named[args.named_count++] = read_object(w, trace, value);
    }
    return args;
}

/* ---- the operation --------------------------------------------------------------------------------------------------- */

static Operator operator_named(Walker *w, const char *text, int count)
{
    static const Operator unary[] = {OPERATOR_NEG, OPERATOR_POS, OPERATOR_INVERT, OPERATOR_NOT};
    for (size_t i = 0; count == 1 && i < TT_COUNT(unary); i++)
        if (!strcmp(tt_operator_texts[unary[i]], text))
            return unary[i];
    for (Operator op = OPERATOR_ADD; op < OPERATOR_NEG; op++)
        if (!strcmp(tt_operator_texts[op], text))
            return op;
    tt_fail(w, "there is no operator `%s`", text);
}

Term tt_operate(Walker *w, const char *text, const Term *args, int count)
{
    if (!strcmp(text, "[]"))
        return tt_semantic_subscript(w, args[0], args + 1, count - 1);
    if (!strcmp(text, "."))
        return tt_walk_attribute_of(w, args[0], args[1].object);
    if (!strcmp(text, "if"))
        return tt_value_term(tt_condition(w, args[0]), &tt_int1);
    if (!strcmp(text, "="))
        return tt_decay(w, args[0]);
    if (!strcmp(text, "range"))
        return tt_range_bounds(w, args);
    Operator op = operator_named(w, text, count);
    if (count == 1)
        return tt_unary(w, op, args[0]);
    bool is_logical = op == OPERATOR_LOGICAL_AND || op == OPERATOR_LOGICAL_OR;
    return is_logical ? tt_semantic_binary(w, op, args[0], args[1]) : tt_binary(w, op, args[0], args[1]);
}

/* ---- the result ------------------------------------------------------------------------------------------------------ */

static PyObject *describe(Walker *w, Term t);

static PyObject *describe_items(Walker *w, Term t)
{
    PyObject *tuple = tt_keep(w, PyTuple_New(t.count));
    for (int i = 0; i < t.count; i++)
        PyTuple_SetItem(tuple, i, Py_NewRef(describe(w, t.items[i])));
    return tuple;
}

static PyObject *describe_block(Walker *w, const BlockShape *block, bool is_order)
{
    PyObject *tuple = tt_keep(w, PyTuple_New(block->rank));
    for (int i = 0; i < block->rank; i++)
        PyTuple_SetItem(tuple, i, PyLong_FromLongLong(is_order ? block->order[i] : block->shape[i]));
    return tuple;
}

static PyObject *describe_value(Walker *w, Term t)
{
    const int64_t *extents;
    int rank = tt_term_shape(t, &extents);
    PyObject *constant = tt_term_python(w, t), *shape = tt_keep(w, PyTuple_New(rank));
    for (int i = 0; i < rank; i++)
        PyTuple_SetItem(shape, i, PyLong_FromLongLong(extents[i]));
    return Py_BuildValue("(sOOO)", "value", tt_dtype_to_object(w, t.dtype), shape,
                         constant ? constant : Py_None);
}

/* Borrowed. */
static PyObject *describe(Walker *w, Term t)
{
    switch (t.kind) {
    case TERM_VALUE:
        return tt_keep(w, describe_value(w, t));
    case TERM_TUPLE:
    case TERM_SLICE:
        return tt_keep(w,
                       Py_BuildValue("(sOO)", "tuple", t.object ? t.object : Py_None, describe_items(w, t)));
    case TERM_BLOCK_POINTER:
        return tt_keep(w, Py_BuildValue("(sOOO)", "window", describe_block(w, t.block, false),
                                        describe_block(w, t.block, true), describe_items(w, t)));
    case TERM_METHOD:
        return tt_keep(w, Py_BuildValue("(sOO)", "method", t.object, describe(w, t.items[0])));
    default:
        return tt_keep(w, Py_BuildValue("(sO)", "object", t.object));
    }
}

/* ---- the run ------------------------------------------------------------------------------------------------------------ */

Loc *tt_read_place(Walker *w, PyObject *place)
{
    Loc *loc = TT_NEW(w->arena, Loc);
    const char *file, *function;
    if (!PyArg_ParseTuple(place, "ssiiii", &file, &function, &loc->line, &loc->column, &loc->end_line,
                          &loc->end_column))
        tt_python_error(w);
    loc->file = tt_arena_strdup(w->arena, file);
    loc->function = tt_arena_strdup(w->arena, function);
    return loc;
}

static void build(Walker *w, void *context)
{
    Trace *trace = context;
    PyObject *operation = trace->request->operation;
    Frame frame = {0}; /* of the caller */
    FunctionInfo info = {0};
    frame.info = &info;
    w->builder.loc = tt_read_place(w, trace->request->place);
    read_arguments(w, trace);
    Function *function =
        tt_new_function(w->module, "operation", trace->types.data, trace->types.count, NULL, 0);
    function->loc = w->builder.loc;
    trace->values = function->body->args ? function->body->args : (Value *[]){NULL};
    tt_init_scope(w, &frame.scope);
    w->state->frame = &frame;
    const Loc *loc = w->builder.loc;
    w->builder = tt_builder_at_end(function->body);
    w->builder.loc = loc;
    Arguments args = read_arguments(w, trace);
    Term result = PyUnicode_Check(operation) ? tt_operate(w, tt_utf8(w, operation), args.items, args.count)
                                             : tt_call_with(w, tt_python_term(w, operation), &args);
    w->builder.loc = loc;
    *trace->structure = Py_NewRef(describe(w, result));
    tt_build_return(w, function, result);
    w->state->frame = NULL;
}

Module *tt_frontend_trace(Arena *arena, TraceRequest *request, PyObject **structure)
{
    Trace trace = {.request = request, .structure = structure};
    return tt_run_walk(arena, &request->run, build, &trace);
}
