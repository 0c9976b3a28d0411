/* What the tests reach of the compiler's inside: IR text goes in, text comes out. Mistakes in the text are
 * ValueErrors ("line:column: message"), failures of the compiler RuntimeErrors. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ir/algebra.h"
#include "opt/opt.h"

/* A request: the arguments, and the text that the work makes of them (NULL: None). */
typedef struct Job {
    Arena arena;
    const char *text, *name;
    const char *result;
} Job;

static PyObject *set_exception(const Diagnostic *diag)
{
    if (diag->kind == TT_USER_ERROR && diag->loc)
        PyErr_Format(PyExc_ValueError, "%d:%d: %s", diag->loc->line, diag->loc->column, diag->message);
    else if (diag->kind == TT_OUT_OF_MEMORY)
        PyErr_NoMemory();
    else
        PyErr_SetString(diag->kind == TT_USER_ERROR ? PyExc_ValueError : PyExc_RuntimeError, diag->message);
    return NULL;
}

static PyObject *run_job(Job *job, void (*work)(Job *job))
{
    Trap trap;
    PyObject *result;
    if (tt_try(&trap, &job->arena)) {
        work(job);
        tt_end_try(&trap);
        result = job->result ? PyUnicode_FromString(job->result) : Py_NewRef(Py_None);
    } else {
        result = set_exception(&trap.diag);
    }
    tt_arena_release(&job->arena);
    return result;
}

static void parse_print(Job *job)
{
    Module *module = tt_parse_module(&job->arena, job->text, "text");
    job->result = tt_print_module(module, &job->arena, job->name ? TT_PRINT_LOCATIONS : 0);
}

static void verify(Job *job)
{
    job->result = tt_verify(tt_parse_module(&job->arena, job->text, "text"), &job->arena);
}

static PyObject *py_parse_print(PyObject *module, PyObject *args)
{
    (void)module;
    Job job = {0};
    int locations = 0;
    if (!PyArg_ParseTuple(args, "s|p", &job.text, &locations))
        return NULL;
    job.name = locations ? "" : NULL;
    return run_job(&job, parse_print);
}

static PyObject *py_verify(PyObject *module, PyObject *args)
{
    (void)module;
    Job job = {0};
    return PyArg_ParseTuple(args, "s", &job.text) ? run_job(&job, verify) : NULL;
}

static void run_pass(Job *job)
{
    Module *module = tt_parse_module(&job->arena, job->text, "text");
    const char *failures = tt_verify(module, &job->arena);
    if (failures)
        tt_error(NULL, "%s", failures);
    if (!strcmp(job->name, "pipeline"))
        tt_run_pipeline(module, NULL);
    else
        tt_opt_run_pass_named(module, job->name);
    failures = tt_verify(module, &job->arena);
    if (failures)
        tt_bug("%s", failures);
    job->result = tt_print_module(module, &job->arena, 0);
}

static PyObject *py_run_pass(PyObject *module, PyObject *args)
{
    (void)module;
    Job job = {0};
    return PyArg_ParseTuple(args, "ss", &job.text, &job.name) ? run_job(&job, run_pass) : NULL;
}

/* ---- axis analysis ------------------------------------------------------------------------------------- */

static void add_numbers(Text *text, const char *name, const int64_t *numbers, int rank)
{
    tt_text_add(text, "%s [", name);
    for (int i = 0; i < rank; i++)
        tt_text_add(text, "%s%lld", i ? ", " : "", (long long)numbers[i]);
    tt_text_add(text, "]");
}

static void note_axes(const AxisInfos *infos, Map *notes, const void *subject, const char *what,
                      const Value *value)
{
    if (!tt_is_int(value->type) && !tt_is_ptr(value->type))
        return;
    const AxisInfo *info = tt_axis_info(infos, value);
    void **slot = tt_map_slot_ptr(notes, subject);
    Text text = {.arena = notes->arena};
    tt_text_add(&text, "%s%s", *slot ? (const char *)*slot : "", *slot ? "\n" : "");
    tt_text_add(&text, "%s %d: ", what, value->index);
    add_numbers(&text, "contiguity", info->contiguity, info->rank);
    add_numbers(&text, ", divisibility", info->divisibility, info->rank);
    add_numbers(&text, ", constancy", info->constancy, info->rank);
    add_numbers(&text, ", apart", info->apart, info->rank);
    tt_text_add(&text, "%s", tt_is_non_negative(info) ? ", not negative" : "");
    if (info->is_constant)
        tt_text_add(&text, ", constant %lld", (long long)info->constant);
    *slot = text.data;
}

static void note_region(const AxisInfos *infos, Map *notes, const void *subject, const char *what,
                        const Region *region)
{
    for (int i = 0; i < region->arg_count; i++)
        note_axes(infos, notes, subject, what, region->args[i]);
    TT_FOR_OPS(op, region)
    {
        for (int i = 0; i < op->result_count; i++)
            note_axes(infos, notes, op, "result", op->results[i]);
        for (int i = 0; i < op->region_count; i++)
            note_region(infos, notes, op, i ? "argument of region 1," : "argument", op->regions[i]);
    }
}

static void axis_info(Job *job)
{
    Module *module = tt_parse_module(&job->arena, job->text, "text");
    job->result = tt_verify(module, &job->arena);
    if (job->result)
        tt_error(NULL, "%s", job->result);
    Map notes = {.arena = &job->arena};
    TT_FOR_FUNCTIONS(function, module)
    note_region(tt_analyze_axis_info(function, &job->arena), &notes, function, "parameter", function->body);
    job->result = tt_print_annotated(module, &job->arena, 0, &notes);
}

static PyObject *py_axis_info(PyObject *module, PyObject *args)
{
    (void)module;
    Job job = {0};
    return PyArg_ParseTuple(args, "s", &job.text) ? run_job(&job, axis_info) : NULL;
}

/* ---- stored parameters ---- */

/* "01": the second of two parameters of the first function is stored through. */
static void stored_params(Job *job)
{
    Module *module = tt_parse_module(&job->arena, job->text, "text");
    const Function *function = module->functions;
    int count = function->body->arg_count;
    const bool *stored = tt_analyze_param_pointers(function, &job->arena)->stored;
    char *digits = tt_arena_alloc(&job->arena, (size_t)count + 1);
    for (int i = 0; i < count; i++)
        digits[i] = stored[i] ? '1' : '0';
    job->result = digits;
}

static void check_bounds(Job *job)
{
    Module *module = tt_parse_module(&job->arena, job->text, "text");
    tt_check_bounds(module);
    const char *failures = tt_verify(module, &job->arena);
    job->result = failures ? failures : tt_print_module(module, &job->arena, 0);
}

static PyObject *py_check_bounds(PyObject *module, PyObject *args)
{
    (void)module;
    Job job = {0};
    return PyArg_ParseTuple(args, "s", &job.text) ? run_job(&job, check_bounds) : NULL;
}

static PyObject *py_stored_params(PyObject *module, PyObject *args)
{
    (void)module;
    Job job = {0};
    return PyArg_ParseTuple(args, "s", &job.text) ? run_job(&job, stored_params) : NULL;
}

/* ---- scalar semantics ---------------------------------------------------------------------------------- */

static Opcode find_opcode(const char *name)
{
    Opcode opcode = tt_find_opcode(name);
    if (opcode == TT_OPCODES)
        tt_error(NULL, "unknown operation '%s'", name);
    return opcode;
}

static const Type *find_scalar_type(Module *module, const char *name)
{
    for (TypeKind kind = 0; kind < TT_PTR; kind++)
        if (!strcmp(tt_type_name(kind), name))
            return tt_scalar_type(module, kind);
    tt_error(NULL, "unknown scalar type '%s'", name);
}

typedef struct Evaluation {
    const char *op, *from, *to;
    Scalar operands[3], result;
    bool folds, is_float;
    double numbers[3];
    long long integers[3];
} Evaluation;

static void evaluate(Arena *arena, Evaluation *e)
{
    Module *module = tt_new_module(arena);
    Opcode opcode = find_opcode(e->op);
    const Type *from = find_scalar_type(module, e->from), *to = find_scalar_type(module, e->to);
    for (int i = 0; i < 3; i++)
        if (tt_op_infos[opcode].rule == SELECT ? i > 0 && tt_is_float(from) : tt_is_float(from))
            e->operands[i].f = tt_round_to(from, e->numbers[i]);
        else
            e->operands[i].i = e->integers[i];
    e->is_float = tt_is_float(to);
    e->folds = tt_eval_scalar(opcode, from, to, e->operands, &e->result);
}

static bool read_number(PyObject *number, double *real, long long *integer)
{
    *real = PyFloat_AsDouble(number);
    *integer = PyLong_Check(number) ? PyLong_AsLongLong(number) : 0;
    return !PyErr_Occurred();
}

static PyObject *py_eval_scalar(PyObject *module, PyObject *args)
{
    (void)module;
    Evaluation e = {0};
    PyObject *values[3] = {NULL};
    if (!PyArg_ParseTuple(args, "sssO|OO", &e.op, &e.from, &e.to, &values[0], &values[1], &values[2]))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (values[i] && !read_number(values[i], &e.numbers[i], &e.integers[i]))
            return NULL;
    Arena arena = {0};
    Trap trap;
    if (tt_try(&trap, &arena)) {
        evaluate(&arena, &e);
        tt_end_try(&trap);
    } else {
        set_exception(&trap.diag);
    }
    tt_arena_release(&arena);
    if (PyErr_Occurred())
        return NULL;
    if (!e.folds)
        return Py_NewRef(Py_None);
    return e.is_float ? PyFloat_FromDouble(e.result.f) : PyLong_FromLongLong(e.result.i);
}

/* ---- the table of operations --------------------------------------------------------------------------- */

static PyObject *trait_names(unsigned traits)
{
    static const struct {
        unsigned trait;
        const char *name;
    } names[] = {{PURE, "pure"},         {ELEMENTWISE, "elementwise"}, {SHAPE, "shape"},
                 {COMMUTES, "commutes"}, {COSTLY, "costly"},           {READS, "reads"},
                 {WRITES, "writes"},     {HAS_EFFECT, "has effect"},   {TERMINATOR, "terminator"},
                 {FUNCTION, "function"}, {ON_INTS, "on ints"},         {ON_FLOATS, "on floats"},
                 {ACCESS, "access"},     {ONE_LAYOUT, "one layout"}};
    PyObject *set = PyFrozenSet_New(NULL);
    for (unsigned i = 0; set && i < TT_COUNT(names); i++)
        if (traits & names[i].trait) {
            PyObject *name = PyUnicode_FromString(names[i].name);
            if (!name || PySet_Add(set, name))
                Py_CLEAR(set);
            Py_XDECREF(name);
        }
    return set;
}

static PyObject *py_operations(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    static const char *const rules[] = {"same", "compare", "select", "cast", "given", "nothing"};
    PyObject *list = PyList_New(0);
    for (int opcode = 0; list && opcode < TT_OPCODES; opcode++) {
        const OpInfo *info = &tt_op_infos[opcode];
        PyObject *row = Py_BuildValue("(siiiisNs)", info->name, info->operands_min, info->operands_max,
                                      info->results, tt_region_count(info->control), rules[info->rule],
                                      trait_names(info->traits), info->meaning);
        if (!row || PyList_Append(list, row))
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* ---- algebra ------------------------------------------------------------------------------------------- */

/* A pattern in the making: its free types and constants come from the test, in the order in which they are
 * met. */
typedef struct Instance {
    Builder builder;
    Function *function;
    Match match;
    const Type *types[4];
    int type_count, types_used;
    Scalar constants[2][2]; /* as integer, as float */
    bool fits;
} Instance;

static const Type *next_type(Instance *instance)
{
    if (instance->types_used == instance->type_count)
        tt_error(NULL, "the pattern has more than %d free types", instance->type_count);
    return instance->types[instance->types_used++];
}

static Value *instantiate(Instance *instance, const Pattern *pattern, const Type *type);

static Value *instantiate_op(Instance *instance, const Pattern *pattern, const Type *type)
{
    Builder *b = &instance->builder;
    TypeRule rule = tt_op_infos[pattern->opcode].rule;
    const Type *bit = tt_scalar_type(b->module, TT_I1);
    const Type *operand_type = rule == COMPARE || rule == CAST ? next_type(instance) : type;
    unsigned traits = tt_op_infos[pattern->opcode].traits;
    instance->fits &= rule != COMPARE || type == bit;
    instance->fits &= !(traits & ON_INTS) || tt_is_int(operand_type);
    instance->fits &= !(traits & ON_FLOATS) || tt_is_float(operand_type);
    Value *operands[3];
    int count = 0;
    for (; count < 3 && pattern->operands[count]; count++)
        operands[count] = instantiate(instance, pattern->operands[count],
                                      rule == SELECT && count == 0 ? bit : operand_type);
    return tt_build(b, pattern->opcode, operands, count, type, NULL);
}

static Value *build_number(Builder *b, const Type *type, const Scalar number[2])
{
    return tt_is_float(type) ? tt_build_float(b, type, number[1].f) : tt_build_int(b, type, number[0].i);
}

static Value *instantiate(Instance *instance, const Pattern *pattern, const Type *type)
{
    Value **letter = NULL;
    switch (pattern->kind) {
    case PATTERN_VALUE:
        letter = &instance->match.values[pattern->index];
        if (!*letter)
            *letter = tt_add_region_arg(instance->function->body, type);
        break;
    case PATTERN_CONSTANT:
        letter = &instance->match.constants[pattern->index];
        if (!*letter)
            *letter = build_number(&instance->builder, type, instance->constants[pattern->index]);
        break;
    case PATTERN_OP:
        return instantiate_op(instance, pattern, type);
    default: {
        Scalar number[2] = {{.i = pattern->integer}, {.f = pattern->real}};
        return build_number(&instance->builder, type, number);
    }
    }
    instance->fits &= (*letter)->type == type;
    return *letter;
}

typedef struct RuleJob {
    Job job;
    int index;
    const char *types[4];
    int type_count;
    Scalar constants[2][2];
} RuleJob;

static void instantiate_rule(Job *job)
{
    RuleJob *request = (RuleJob *)job;
    Module *module = tt_new_module(&job->arena);
    if (request->index < 0 || request->index >= tt_rule_count)
        tt_error(NULL, "there is no rule %d", request->index);
    const Rule *rule = &tt_rules[request->index];
    Instance instance = {.type_count = request->type_count, .fits = true};
    for (int i = 0; i < request->type_count; i++)
        instance.types[i] = find_scalar_type(module, request->types[i]);
    memcpy(instance.constants, request->constants, sizeof instance.constants);
    bool compares = tt_op_infos[rule->pattern->opcode].rule == COMPARE;
    const Type *type = compares ? tt_scalar_type(module, TT_I1) : next_type(&instance);
    instance.function = tt_new_function(module, "rule", NULL, 0, (const Type *[]){type, type}, 2);
    instance.function->param_attrs = TT_NEW_ARRAY(&job->arena, Attr *, TT_PATTERN_LETTERS);
    instance.builder = tt_builder_at_end(instance.function->body);
    instance.builder.raw = true;
    instance.match.type = type;
    Value *results[2] = {instantiate(&instance, rule->pattern, type)};
    if (!instance.fits || (rule->condition && !rule->condition(&instance.match)))
        return;
    results[1] = tt_build_replacement(&instance.builder, rule->replacement, &instance.match);
    tt_build_op(&instance.builder, OP_return, results, 2, NULL, 0, NULL);
    if (!tt_verify(module, &job->arena))
        job->result = tt_print_module(module, &job->arena, 0);
}

static PyObject *py_algebra_rule(PyObject *module, PyObject *args)
{
    (void)module;
    RuleJob request = {0};
    PyObject *types, *numbers;
    if (!PyArg_ParseTuple(args, "iO!O!", &request.index, &PyTuple_Type, &types, &PyTuple_Type, &numbers))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(types) && i < 4; i++, request.type_count++)
        if (!(request.types[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(types, i), NULL)))
            return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(numbers) && i < 2; i++) {
        long long integer;
        if (!read_number(PyTuple_GetItem(numbers, i), &request.constants[i][1].f, &integer))
            return NULL;
        request.constants[i][0].i = integer;
    }
    return run_job(&request.job, instantiate_rule);
}

static PyObject *py_algebra_rules(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < tt_rule_count; i++) {
        const Rule *rule = &tt_rules[i];
        const char *name = tt_op_infos[rule->pattern->opcode].name;
        PyObject *row =
            Py_BuildValue("(sss)", name, rule->exactness == BITS ? "bits" : "values", rule->reason);
        if (!row || PyList_Append(list, row))
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyMethodDef tt_testing_methods[] = {
    {"_check_bounds", py_check_bounds, METH_VARARGS,
     "_check_bounds(text) -> str\n--\n\nThe text with checks of every access."},
    {"_stored_params", py_stored_params, METH_VARARGS,
     "_stored_params(text) -> str\n--\n\nFor each parameter 1 if it may be stored through, else 0."},
    {"_parse_print", py_parse_print, METH_VARARGS,
     "_parse_print(text, locations=False) -> str\n--\n\nThe text as it is printed once parsed."},
    {"_verify", py_verify, METH_VARARGS,
     "_verify(text) -> str | None\n--\n\nThe IR with its failures marked, or None."},
    {"_run_pass", py_run_pass, METH_VARARGS,
     "_run_pass(text, name) -> str\n--\n\nThe IR after a pass, or after the whole 'pipeline'."},
    {"_axis_info", py_axis_info, METH_VARARGS,
     "_axis_info(text) -> str\n--\n\nThe IR with what the axis analysis knows under each line."},
    {"_eval_scalar", py_eval_scalar, METH_VARARGS,
     "_eval_scalar(op, operand_type, result_type, *operands) -> int | float | None\n--\n\n"
     "One elementwise operation on scalars, or None where it is not folded."},
    {"_operations", py_operations, METH_NOARGS,
     "_operations() -> list\n--\n\n"
     "(name, least operands, most, results, regions, type rule, traits, meaning) of each row of ops.def."},
    {"_algebra_rules", py_algebra_rules, METH_NOARGS,
     "_algebra_rules() -> list\n--\n\n(operation, exactness, reason) of each row of algebra.def."},
    {"_algebra_rule", py_algebra_rule, METH_VARARGS,
     "_algebra_rule(index, types, constants) -> str | None\n--\n\n"
     "A function that returns both sides of a rule, its free types and constants given in the order in which "
     "they\n"
     "are met; None where they do not fit."},
    {NULL, NULL, 0, NULL},
};
