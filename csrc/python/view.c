/* The compiler's data as Python sees it without compiling anything: tile IR of the frontend as nested tuples, and what
 * a signature has for an argument. */
#include "python/extension.h"

/* Numbers of values, blocks and regions are their addresses: unique, and nothing else is meant by them. */
static PyObject *number_of(const void *thing) { return PyLong_FromVoidPtr((void *)(uintptr_t)thing); }

static PyObject *numbers_of(Value *const *values, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++)
        PyTuple_SetItem(tuple, i, number_of(values[i]));
    return tuple;
}

static PyObject *operand_numbers(const Op *op)
{
    PyObject *tuple = PyTuple_New(op->operand_count);
    for (int i = 0; tuple && i < op->operand_count; i++)
        PyTuple_SetItem(tuple, i, number_of(tt_operand(op, i)));
    return tuple;
}

static PyObject *view_region(const Region *region);

static PyObject *view_regions(const Op *op)
{
    PyObject *tuple = PyTuple_New(op->region_count);
    for (int i = 0; tuple && i < op->region_count; i++)
        PyTuple_SetItem(tuple, i, view_region(op->regions[i]));
    return tuple;
}

/* (name, operands, results, callee or None, regions) */
static PyObject *view_op(const Op *op)
{
    return Py_BuildValue("(sNNzN)", tt_op_infos[op->opcode].name, operand_numbers(op),
                         numbers_of(op->results, op->result_count), tt_string_attr(op, ATTR_callee, NULL),
                         view_regions(op));
}

/* (number, arguments, operations) */
static PyObject *view_region(const Region *region)
{
    PyObject *list = PyList_New(0);
    for (const Op *op = region->first; list && op; op = op->next) {
        PyObject *item = view_op(op);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return Py_BuildValue("(NNN)", number_of(region), numbers_of(region->args, region->arg_count), list);
}

/* ((name, region), ...), the kernel first, and the text. */
static PyObject *view_module(const Module *module, Arena *arena)
{
    PyObject *list = PyList_New(0);
    TT_FOR_FUNCTIONS(function, module)
    {
        PyObject *item = list ? Py_BuildValue("(sN)", function->name, view_region(function->body)) : NULL;
        if (list && (!item || PyList_Append(list, item) < 0))
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return Py_BuildValue("(Ns)", list, tt_print_module(module, arena, 0));
}

static PyObject *view(Arena *arena, FrontendRequest *request)
{
    Trap trap;
    if (!tt_try(&trap, arena)) {
        tt_set_error(&trap.diag, NULL);
        return NULL;
    }
    PyObject *tuple = view_module(tt_build_kernel(arena, request), arena);
    tt_end_try(&trap);
    return tuple;
}

PyObject *tt_view_ir(PyObject *module, PyObject *args)
{
    const State *state = PyModule_GetState(module);
    FrontendRequest request = {0};
    const char *name;
    Target target;
    if (!PyArg_ParseTuple(args, "O!O!O!s", state->kernel_type, &request.function, &PyTuple_Type,
                          &request.signature, &PyDict_Type, &request.options, &name) ||
        !tt_read_target(name, &target))
        return NULL;
    PyObject *info =
        tt_compilation_info((Kernel *)request.function, request.signature, request.options, target, true);
    Arena arena = {0};
    request.options = info;
    PyObject *tuple = info ? view(&arena, &request) : NULL;
    tt_arena_release(&arena);
    Py_XDECREF(info);
    return tuple;
}

PyObject *tt_argument_entry(PyObject *module, PyObject *args)
{
    Param param = {.kind = PARAM_ANY, .scalar = SCALAR_KINDS, .pointee = SCALAR_KINDS};
    int is_const, any_value, any_alignment;
    PyObject *value, *entry = NULL, *name = PyUnicode_FromString("argument");
    if (name && PyArg_ParseTuple(args, "Oppp", &value, &is_const, &any_value, &any_alignment)) {
        Specialization s;
        param.name = name;
        param.is_const = is_const, param.any_value = any_value, param.any_alignment = any_alignment;
        tt_specialization_init(&s, PyModule_GetState(module), name, true);
        if (tt_specialize_argument(&s, &param, value))
            entry = tt_describe_entry(&s.key);
        tt_specialization_release(&s);
    }
    Py_XDECREF(name);
    return entry;
}
