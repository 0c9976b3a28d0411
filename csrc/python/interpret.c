/* What the interpreter of kernels (python/triton/interpreter) asks: the tile IR of one operation as nested tuples, and
 * elementwise operations of tile IR on whole arrays, computed by the folds of ops.def. */
#include "opt/opt.h"
#include "python/extension.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>

/* ---- the IR of an operation ------------------------------------------------------------------------------------------ */

/* (name of the element, shape, bytes of an element in memory; of a pointer's, of what it points to) */
static PyObject *view_type(const Type *type)
{
    const Type *element = tt_element(type);
    bool is_pointer = element->kind == TT_PTR;
    PyObject *shape = PyTuple_New(tt_is_tile(type) ? type->rank : 0);
    for (int i = 0; shape && i < PyTuple_Size(shape); i++)
        PyTuple_SetItem(shape, i, PyLong_FromLongLong(type->shape[i]));
    return Py_BuildValue("(sNi)", is_pointer ? "ptr" : tt_type_name(element->kind), shape,
                         tt_byte_width(is_pointer ? element->element : element));
}

static PyObject *view_values(Value *const *values, int count, int *next)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) {
        values[i]->id = (*next)++;
        PyTuple_SetItem(tuple, i, Py_BuildValue("(iN)", values[i]->id, view_type(values[i]->type)));
    }
    return tuple;
}

static PyObject *view_operands(const Op *op)
{
    PyObject *tuple = PyTuple_New(op->operand_count);
    for (int i = 0; tuple && i < op->operand_count; i++) {
        const Value *value = tt_operand(op, i);
        PyTuple_SetItem(tuple, i, Py_BuildValue("(iN)", value->id, view_type(value->type)));
    }
    return tuple;
}

static PyObject *view_attr(const Op *op, const Attr *attr)
{
    PyObject *list;
    switch (tt_attr_kinds[attr->key]) {
    case TT_ATTR_INT:
        return PyLong_FromLongLong(attr->i);
    case TT_ATTR_STRING:
        return PyUnicode_FromString(attr->s);
    case TT_ATTR_SCALAR:
        return tt_is_float(op->results[0]->type) ? PyFloat_FromDouble(attr->f) : PyLong_FromLongLong(attr->i);
    case TT_ATTR_INTS:
        list = PyTuple_New(attr->count);
        for (int i = 0; list && i < attr->count; i++)
            PyTuple_SetItem(list, i, PyLong_FromLongLong(attr->ints[i]));
        return list;
    }
    return NULL;
}

static PyObject *view_attrs(const Op *op)
{
    PyObject *dict = PyDict_New();
    for (const Attr *attr = op->attrs; dict && attr; attr = attr->next) {
        PyObject *value = view_attr(op, attr);
        if (!value || PyDict_SetItemString(dict, tt_attr_names[attr->key], value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *view_region(const Region *region, int *next);

static PyObject *view_regions(const Op *op, int *next)
{
    PyObject *tuple = PyTuple_New(op->region_count);
    for (int i = 0; tuple && i < op->region_count; i++)
        PyTuple_SetItem(tuple, i, view_region(op->regions[i], next));
    return tuple;
}

/* (name, operands, results, attributes, regions); an operand or result is (number, type) */
static PyObject *view_op(const Op *op, int *next)
{
    PyObject *operands = view_operands(op), *regions = view_regions(op, next);
    return Py_BuildValue("(sNNNN)", tt_op_infos[op->opcode].name, operands,
                         view_values(op->results, op->result_count, next), view_attrs(op), regions);
}

/* (arguments, operations) */
static PyObject *view_region(const Region *region, int *next)
{
    PyObject *args = view_values(region->args, region->arg_count, next), *list = PyList_New(0);
    for (const Op *op = region->first; list && op; op = op->next) {
        PyObject *item = view_op(op, next);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return Py_BuildValue("(NN)", args, list);
}

static PyObject *view_functions(const Module *module)
{
    PyObject *dict = PyDict_New();
    int next = 0;
    TT_FOR_FUNCTIONS(function, module)
    {
        PyObject *region = view_region(function->body, &next);
        if (dict && (!region || PyDict_SetItemString(dict, function->name, region) < 0))
            Py_CLEAR(dict);
        Py_XDECREF(region);
    }
    return dict;
}

static PyObject *trace(Arena *arena, TraceRequest *request)
{
    Trap trap;
    PyObject *structure = NULL;
    if (!tt_try(&trap, arena)) {
        tt_set_error(&trap.diag, NULL);
        return NULL;
    }
    Module *module = tt_frontend_trace(arena, request, &structure);
    tt_expand_blocks(module);
    tt_end_try(&trap);
    return Py_BuildValue("(NN)", view_functions(module), structure);
}

PyObject *tt_trace_operation(PyObject *module, PyObject *args)
{
    TraceRequest request = {0};
    Arena arena = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!O!O!O!O!", &request.operation, &PyTuple_Type, &request.args, &PyDict_Type,
                          &request.keywords, &PyTuple_Type, &request.place, &PyDict_Type,
                          &request.run.options, &PyList_Type, &request.run.used_names))
        return NULL;
    PyObject *result = trace(&arena, &request);
    tt_arena_release(&arena);
    return result;
}

/* ---- elementwise operations on arrays -------------------------------------------------------------------------------- */

enum { MOST_OPERANDS = 3 };

/* Elements in a row; `step` 0 where one stands for all. */
typedef struct Elements {
    Py_buffer buffer;
    const Type *type;
    bool is_one;
} Elements;

typedef struct Evaluation {
    const char *op, *symbol, *rounding;
    Elements operands[MOST_OPERANDS], result;
    int operand_count;
    Opcode opcode;
    void (*function)(void); /* of libm */
} Evaluation;

static Scalar read_element(const Elements *elements, Py_ssize_t index)
{
    Scalar scalar = {0};
    uint64_t bits = 0;
    int bytes = tt_byte_width(elements->type);
    if (elements->is_one)
        index = 0;
    memcpy(&bits, (const char *)elements->buffer.buf + index * bytes, (size_t)bytes);
    if (elements->type->kind == TT_F64)
        memcpy(&scalar.f, &bits, sizeof bits);
    else if (tt_is_float(elements->type))
        scalar.f = tt_float_decode(tt_float_format(elements->type), bits);
    else if (elements->type->kind == TT_I1)
        scalar.i = bits != 0;
    else
        scalar.i = (int64_t)(bits << (64 - 8 * bytes)) >> (64 - 8 * bytes);
    return scalar;
}

static void write_element(const Evaluation *e, Py_ssize_t index, Scalar scalar)
{
    const Elements *result = &e->result;
    const FloatFormat *format = tt_float_format(result->type);
    int bytes = tt_byte_width(result->type);
    uint64_t bits = (uint64_t)scalar.i;
    bool toward_zero = e->rounding && !strcmp(e->rounding, "rtz");
    if (result->type->kind == TT_F64)
        memcpy(&bits, &scalar.f, sizeof bits);
    else if (format)
        bits = tt_float_encode(format, scalar.f, toward_zero);
    memcpy((char *)result->buffer.buf + index * bytes, &bits, (size_t)bytes);
}

/* What the scalar rules leave open. f16 and bf16 are rounded once from a double, which holds their products; a cast is
 * rounded where it is written; a float that no integer of the type is gives its low bits, as a conversion to a wider one
 * does, which is what CPUs compute. */
static bool evaluate_special(const Evaluation *e, const Scalar *operands, Scalar *result)
{
    bool is_short = tt_bit_width(e->operands[0].type) < 32;
    double a = operands[0].f;
    switch (e->opcode) {
    case OP_float_cast:
        result->f = a;
        return true;
    case OP_float_to_int_s:
    case OP_float_to_int_u:
        if (a >= -0x1p63 && a < 0x1p63)
            result->i = (int64_t)a;
        else if (a >= 0x1p63 && a < 0x1p64)
            result->i = (int64_t)(uint64_t)a;
        return true;
    case OP_fma:
        if (is_short)
            result->f = fma(a, operands[1].f, operands[2].f);
        return is_short;
    default:
        return false;
    }
}

typedef double OneDouble(double);
typedef double TwoDoubles(double, double);
typedef double IntDouble(int, double);
typedef double DoubleInt(double, int);
typedef float OneFloat(float);
typedef float TwoFloats(float, float);
typedef float IntFloat(int, float);
typedef float FloatInt(float, int);

static double call_double(const Evaluation *e, const Scalar *operands)
{
    double a = operands[0].f, b = operands[1].f;
    if (e->operand_count == 1)
        return ((OneDouble *)e->function)(a);
    if (tt_is_int(e->operands[0].type))
        return ((IntDouble *)e->function)((int)operands[0].i, b);
    if (tt_is_int(e->operands[1].type))
        return ((DoubleInt *)e->function)(a, (int)operands[1].i);
    return ((TwoDoubles *)e->function)(a, b);
}

static double call_float(const Evaluation *e, const Scalar *operands)
{
    float a = (float)operands[0].f, b = (float)operands[1].f;
    if (e->operand_count == 1)
        return ((OneFloat *)e->function)(a);
    if (tt_is_int(e->operands[0].type))
        return ((IntFloat *)e->function)((int)operands[0].i, b);
    if (tt_is_int(e->operands[1].type))
        return ((FloatInt *)e->function)(a, (int)operands[1].i);
    return ((TwoFloats *)e->function)(a, b);
}

static Scalar evaluate_element(const Evaluation *e, const Scalar *operands)
{
    Scalar result = {0}; /* where nothing is specified: a quotient by zero, a float that no integer is */
    const Type *from = e->operands[0].type, *to = e->result.type;
    if (e->opcode == OP_extern_call)
        result.f = to->kind == TT_F64 ? call_double(e, operands) : call_float(e, operands);
    else if (!evaluate_special(e, operands, &result) &&
             !tt_eval_scalar(e->opcode, from, to, operands, &result))
        result = (Scalar){0};
    return result;
}

static void find_function(Evaluation *e)
{
    char name[32];
    snprintf(name, sizeof name, "%s%s", e->symbol, e->result.type->kind == TT_F64 ? "" : "f");
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(&e->function, &found, sizeof found);
    if (!found)
        tt_error(NULL, "the system's library of mathematical functions has no '%s'", name);
}

static Opcode find_opcode(const char *name)
{
    for (int opcode = 0; opcode < TT_OPCODES; opcode++)
        if (!strcmp(tt_op_infos[opcode].name, name))
            return (Opcode)opcode;
    tt_error(NULL, "unknown operation '%s'", name);
}

static void check_size(const Elements *elements, Py_ssize_t count)
{
    if (elements->buffer.len != (elements->is_one ? 1 : count) * tt_byte_width(elements->type))
        tt_error(NULL, "an array of %zd bytes for %zd elements", elements->buffer.len, count);
}

static void evaluate(Evaluation *e)
{
    Py_ssize_t count = e->result.buffer.len / tt_byte_width(e->result.type);
    e->opcode = find_opcode(e->op);
    if (e->opcode == OP_extern_call)
        find_function(e);
    for (int i = 0; i < e->operand_count; i++)
        check_size(&e->operands[i], count);
    check_size(&e->result, count);
    for (Py_ssize_t index = 0; index < count; index++) {
        Scalar operands[MOST_OPERANDS] = {0};
        for (int i = 0; i < e->operand_count; i++)
            operands[i] = read_element(&e->operands[i], index);
        write_element(e, index, evaluate_element(e, operands));
    }
}

static const Type *scalar_named(Module *module, const char *name)
{
    for (TypeKind kind = 0; kind < TT_PTR; kind++)
        if (!strcmp(tt_type_name(kind), name))
            return tt_scalar_type(module, kind);
    tt_error(NULL, "unknown scalar type '%s'", name);
}

/* (name of the element, array) */
static bool read_elements(PyObject *pair, Elements *elements, const char **name, int flags)
{
    PyObject *array;
    return PyArg_ParseTuple(pair, "sO", name, &array) &&
           PyObject_GetBuffer(array, &elements->buffer, PyBUF_C_CONTIGUOUS | flags) == 0;
}

static void evaluate_named(Evaluation *e, const char *const *names, Arena *arena)
{
    Trap trap;
    if (!tt_try(&trap, arena)) {
        tt_set_error(&trap.diag, NULL);
        return;
    }
    Module *module = tt_new_module(arena);
    e->result.type = scalar_named(module, names[MOST_OPERANDS]);
    Py_ssize_t count = e->result.buffer.len / tt_byte_width(e->result.type);
    for (int i = 0; i < e->operand_count; i++) {
        e->operands[i].type = scalar_named(module, names[i]);
        e->operands[i].is_one = count > 1 && e->operands[i].buffer.len == tt_byte_width(e->operands[i].type);
    }
    evaluate(e);
    tt_end_try(&trap);
}

PyObject *tt_evaluate_elements(PyObject *module, PyObject *args)
{
    Evaluation e = {0};
    PyObject *operands, *result;
    const char *names[MOST_OPERANDS + 1] = {NULL};
    (void)module;
    if (!PyArg_ParseTuple(args, "sO!O!zz", &e.op, &PyTuple_Type, &operands, &PyTuple_Type, &result, &e.symbol,
                          &e.rounding))
        return NULL;
    Arena arena = {0};
    Py_ssize_t count = TT_MIN(PyTuple_Size(operands), MOST_OPERANDS);
    bool done = read_elements(result, &e.result, &names[MOST_OPERANDS], PyBUF_WRITABLE);
    for (; done && e.operand_count < count; e.operand_count += done)
        done = read_elements(PyTuple_GetItem(operands, e.operand_count), &e.operands[e.operand_count],
                             &names[e.operand_count], PyBUF_SIMPLE);
    if (done)
        evaluate_named(&e, names, &arena);
    for (int i = 0; i < e.operand_count; i++)
        PyBuffer_Release(&e.operands[i].buffer);
    if (e.result.buffer.obj)
        PyBuffer_Release(&e.result.buffer);
    tt_arena_release(&arena);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}
