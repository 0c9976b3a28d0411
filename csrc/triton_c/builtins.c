/* Builtins of scalars and elements. Those of tiles as wholes are in builtins_tile.c. */
#include "triton_c/walker.h"

static BuiltinFunction float_function, absolute, extremum, fused, divided_up, atomic, print, assertion,
    assumption, hint, barrier;

static const Builtin builtins[] = {
    {"get_global_range", tt_c_builtin_global_range, 1, 1, false},
    {"get_program_id", tt_c_builtin_program_id, 1, 1, true},
    {"program_id", tt_c_builtin_program_id, 1, 1, true},
    {"get_num_programs", tt_c_builtin_program_id, 1, 1, true},
    {"num_programs", tt_c_builtin_program_id, 1, 1, true},
    {"dot", tt_c_builtin_dot, 2, 4, false},
    {"trans", tt_c_builtin_trans, 1, 1 + TT_MAX_RANK, true},
    {"reshape", tt_c_builtin_reshape, 2, 1 + TT_MAX_RANK, true},
    {"sum", tt_c_builtin_reduce, 2, 2, false},
    {"max", extremum, 2, 2, true},
    {"min", extremum, 2, 2, true},
    {"fmax", extremum, 2, 2, true},
    {"fmin", extremum, 2, 2, true},
    {"abs", absolute, 1, 1, true},
    {"fabs", absolute, 1, 1, true},
    {"fma", fused, 3, 3, true},
    {"cdiv", divided_up, 2, 2, true},
    {"atomic_add", atomic, 2, 2, false},
    {"atomic_max", atomic, 2, 2, false},
    {"atomic_min", atomic, 2, 2, false},
    {"atomic_and", atomic, 2, 2, false},
    {"atomic_or", atomic, 2, 2, false},
    {"atomic_xor", atomic, 2, 2, false},
    {"atomic_xchg", atomic, 2, 2, false},
    {"atomic_cas", atomic, 3, 3, false},
    {"print", print, 1, 16, false},
    {"assert", assertion, 1, 2, false},
    {"assume", assumption, 1, 1, false},
    {"multiple_of", hint, 2, 2, true},
    {"barrier", barrier, 0, 0, false},
};

const Builtin *tt_c_builtin(const char *name)
{
    for (size_t i = 0; i < TT_COUNT(builtins); i++)
        if (!strcmp(name, builtins[i].name))
            return &builtins[i];
    static const Builtin of_one_float = {"", float_function, 1, 1, true};
    return tt_find_function_opcode(name) < TT_OPCODES ? &of_one_float : NULL;
}

const char *const *tt_c_builtin_names(CWalker *w, int *count)
{
    const char **names = TT_NEW_ARRAY(w->arena, const char *, TT_COUNT(builtins) + TT_OPCODES);
    *count = 0;
    for (size_t i = 0; i < TT_COUNT(builtins); i++)
        names[(*count)++] = builtins[i].name;
    for (int opcode = 0; opcode < TT_OPCODES; opcode++)
        if (tt_op_infos[opcode].traits & FUNCTION)
            names[(*count)++] = tt_op_infos[opcode].name;
    return names;
}

int64_t tt_c_known_argument(CWalker *w, const Call *call, int index, const char *what)
{
    int64_t known;
    if (!tt_c_known_int(call->arguments[index], &known))
        tt_c_fail(w, NULL, "%s of `%s` must be an integer known at compile time, and is %s", what, call->name,
                  tt_c_describe(w, call->arguments[index]));
    return known;
}

/* ---- functions of elements ----------------------------------------------------------------------------------------------- */

static Operand number_argument(CWalker *w, const Call *call, int index)
{
    Operand x = tt_c_settle(w, call->name, call->arguments[index]);
    if (tt_dtype_is_pointer(x.dtype))
        tt_c_fail(w, "load what it points to with `*`", "`%s` takes numbers, not the pointer %s", call->name,
                  tt_c_describe(w, x));
    return x;
}

/* Integers become float; floats narrower than that are computed in it and rounded once. */
static Operand float_function(CWalker *w, Call *call)
{
    Operand x = number_argument(w, call, 0);
    if (tt_dtype_is_int(x.dtype))
        x = tt_c_cast(w, x, &tt_fp32);
    Typed wide = tt_typed_widen_float(&w->builder, tt_c_typed(x));
    wide.value = tt_build1(&w->builder, tt_find_function_opcode(call->name), wide.value);
    return tt_c_operand(tt_typed_cast(&w->builder, wide, x.dtype, ROUND_NEAREST_EVEN));
}

static Operand absolute(CWalker *w, Call *call)
{
    Operand x = tt_c_promote(w, number_argument(w, call, 0));
    if (tt_dtype_is_int(x.dtype) && x.dtype->is_unsigned)
        return x;
    x.value = tt_build1(&w->builder, tt_dtype_is_float(x.dtype) ? OP_fabs : OP_abs_s, x.value);
    return x;
}

/* Of two scalars, or two tiles, the larger elements; of a tile and a number that is known along that axis. */
static Operand extremum(CWalker *w, Call *call)
{
    Operand pair[] = {number_argument(w, call, 0), number_argument(w, call, 1)};
    bool tiles[] = {tt_is_tile(pair[0].value->type), tt_is_tile(pair[1].value->type)};
    int64_t known;
    if (call->name[0] != 'f' && tiles[0] && !tiles[1]) {
        if (!tt_c_known_int(pair[1], &known))
            tt_c_fail(w, "with a scalar, write fmax(x, y) or `x > y ? x : y`",
                      "`%s` of a tile takes the axis, or another tile, not %s", call->name,
                      tt_c_describe(w, pair[1]));
        return tt_c_builtin_reduce(w, call);
    }
    bool largest = strstr(call->name, "max") != NULL;
    Operand given[] = {call->arguments[0], call->arguments[1]};
    tt_c_unify(w, call->name, &given[0], &given[1]);
    for (int i = 0; i < 2; i++)
        given[i] = tt_c_settle(w, call->name, given[i]);
    tt_c_broadcast_together(w, call->name, given, 2);
    Opcode opcode = tt_extremum_opcode(given[0].dtype, largest, false);
    return (Operand){tt_build2(&w->builder, opcode, given[0].value, given[1].value), given[0].dtype, false};
}

/* fma(x, y, z): of floats, rounded once */
static Operand fused(CWalker *w, Call *call)
{
    Operand x[] = {call->arguments[0], call->arguments[1], call->arguments[2]};
    for (int i = 0; i < 2; i++) /* so that each has met each */
        for (int j = 1; j < 3; j++)
            tt_c_unify(w, call->name, &x[0], &x[j]);
    for (int i = 0; i < 3; i++)
        x[i] = tt_c_settle(w, call->name, x[i]);
    if (!tt_dtype_is_float(x[0].dtype))
        tt_c_fail(w, "write x * y + z", "`fma` takes floats, not %s", tt_c_describe(w, x[0]));
    tt_c_broadcast_together(w, call->name, x, 3);
    return (Operand){tt_build3(&w->builder, OP_fma, x[0].value, x[1].value, x[2].value), x[0].dtype, false};
}

/* cdiv(a, b): the quotient rounded up, of positive integers */
static Operand divided_up(CWalker *w, Call *call)
{
    Operand a = call->arguments[0], b = call->arguments[1];
    for (int i = 0; i < 2; i++)
        if (!call->arguments[i].value || !tt_dtype_is_int(call->arguments[i].dtype))
            tt_c_fail(w, NULL, "`cdiv` takes integers, not %s", tt_c_describe(w, call->arguments[i]));
    Operand sum = tt_c_binary(w, OPERATOR_ADD, a, tt_c_binary(w, OPERATOR_SUB, b, tt_c_int(w, &tt_int32, 1)));
    return tt_c_binary(w, OPERATOR_DIV, sum, b);
}

static Operand atomic(CWalker *w, Call *call) { return tt_c_atomic(w, call->name, call->arguments); }

/* ---- debugging and promises ---------------------------------------------------------------------------------------------- */

static Operand nothing(void) { return (Operand){NULL, &tt_void, false}; }

static const char *text_argument(CWalker *w, const Call *call, int index)
{
    const Node *node = call->node->arguments.data[index];
    if (node->kind != NODE_STRING)
        tt_c_fail(w, NULL, "`%s` takes a string here, not %s", call->name,
                  tt_c_describe(w, call->arguments[index]));
    for (const char *c = node->name; *c; c++)
        if (*c < ' ' || *c > '~')
            tt_c_fail(w, NULL, "`%s` takes printable ASCII characters", call->name);
    return node->name;
}

/* print("text", values...) */
static Operand print(CWalker *w, Call *call)
{
    Value *values[TT_MAX_RANK];
    int64_t is_unsigned = 0;
    const char *text = text_argument(w, call, 0), *end = call->count == 1 ? "" : *text ? ": " : "";
    for (int i = 1; i < call->count; i++) {
        Operand x = tt_c_settle(w, call->name, call->arguments[i]);
        if (tt_dtype_is_pointer(x.dtype))
            x = tt_c_cast(w, x, &tt_uint64);
        is_unsigned |= (int64_t)tt_dtype_is_unsigned(x.dtype) << (i - 1);
        values[i - 1] = tt_dtype_is_fp8(x.dtype) ? tt_c_cast(w, x, &tt_fp32).value : x.value;
    }
    text = tt_arena_format(w->arena, "%s%s%s", *text == ' ' ? "" : " ", text, end);
    Attr *attrs = tt_attr_string(w->module, ATTR_message, text, NULL);
    if (is_unsigned)
        attrs = tt_attr_int(w->module, ATTR_unsigned_mask, is_unsigned, attrs);
    tt_build_op(&w->builder, OP_print, values, call->count - 1, NULL, 0, attrs);
    return nothing();
}

/* assert(condition, "text"): in debug compilations; of all elements that the predicate there is holds for */
static Operand assertion(CWalker *w, Call *call)
{
    const char *text = call->count > 1 ? text_argument(w, call, 1) : "";
    Operand operands[] = {tt_c_truth(w, call->arguments[0]), {w->mask, &tt_int1, false}};
    int count = w->mask ? 2 : 1;
    if (!w->request->debug)
        return nothing();
    tt_c_broadcast_together(w, call->name, operands, count);
    Value *values[] = {operands[0].value, operands[1].value};
    tt_build_op(&w->builder, OP_assert, values, count, NULL, 0,
                tt_attr_string(w->module, ATTR_message, text, NULL));
    return nothing();
}

static Operand assumption(CWalker *w, Call *call)
{
    Value *truth = tt_c_condition(w, call->arguments[0]);
    int64_t known;
    if (tt_constant_int(truth, &known)) {
        if (!known)
            tt_c_fail(w, NULL, "`assume` got a condition that is false");
        return nothing();
    }
    tt_build_op(&w->builder, OP_assume, &truth, 1, NULL, 0, NULL);
    return nothing();
}

/* multiple_of(x, n): the promise that n divides x, of a tile the first of each n elements */
static Operand hint(CWalker *w, Call *call)
{
    Operand x = tt_c_settle(w, call->name, call->arguments[0]);
    int64_t numbers[TT_MAX_RANK], number = tt_c_known_argument(w, call, 1, "the number");
    int rank = TT_MAX(tt_c_shape(x).rank, 1);
    if (tt_dtype_is_float(x.dtype))
        tt_c_fail(w, NULL, "`%s` is about integers and pointers, not %s", call->name, tt_c_describe(w, x));
    if (number < 1)
        tt_c_fail(w, NULL, "`%s` takes a number of at least 1, not %lld", call->name, (long long)number);
    for (int i = 0; i < rank; i++)
        numbers[i] = i + 1 == rank ? number : 1;
    Attr *attr = tt_attr_ints(w->module, ATTR_divisibility, numbers, rank, NULL);
    return (Operand){tt_build(&w->builder, OP_hint, &x.value, 1, x.value->type, attr), x.dtype, false};
}

static Operand barrier(CWalker *w, Call *call)
{
    (void)call;
    tt_build_op(&w->builder, OP_barrier, NULL, 0, NULL, 0, NULL);
    return nothing();
}
