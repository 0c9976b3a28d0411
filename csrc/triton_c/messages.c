/* Places, and the words for types and values in errors. */
#include "triton_c/walker.h"

const char *const tt_c_operator_texts[] = {
    [OPERATOR_ADD] = "+",         [OPERATOR_SUB] = "-",      [OPERATOR_MUL] = "*",
    [OPERATOR_DIV] = "/",         [OPERATOR_FLOORDIV] = "/", [OPERATOR_MOD] = "%",
    [OPERATOR_LSHIFT] = "<<",     [OPERATOR_RSHIFT] = ">>",  [OPERATOR_AND] = "&",
    [OPERATOR_OR] = "|",          [OPERATOR_XOR] = "^",      [OPERATOR_EQ] = "==",
    [OPERATOR_NE] = "!=",         [OPERATOR_LT] = "<",       [OPERATOR_LE] = "<=",
    [OPERATOR_GT] = ">",          [OPERATOR_GE] = ">=",      [OPERATOR_LOGICAL_AND] = "&&",
    [OPERATOR_LOGICAL_OR] = "||", [OPERATOR_NEG] = "-",      [OPERATOR_POS] = "+",
    [OPERATOR_INVERT] = "~",      [OPERATOR_NOT] = "!",
};

const Loc *tt_c_loc(CWalker *w, const Loc *loc)
{
    Loc *here = tt_arena_copy(w->arena, loc, sizeof *loc);
    here->function = w->frame ? w->frame->function->name : NULL;
    here->caller = w->frame ? w->frame->call_site : NULL;
    return here;
}

void tt_c_at(CWalker *w, const Node *node)
{
    const Loc *now = w->builder.loc;
    bool same = now && now->line == node->loc.line && now->column == node->loc.column &&
                now->end_column == node->loc.end_column && now->end_line == node->loc.end_line && w->frame &&
                now->caller == w->frame->call_site && now->function == w->frame->function->name;
    if (!same)
        w->builder.loc = tt_c_loc(w, &node->loc);
}

void tt_c_fail(CWalker *w, const char *remedy, const char *format, ...)
{
    Text text = {.arena = w->arena};
    va_list args;
    va_start(args, format);
    tt_text_add_v(&text, format, args);
    va_end(args);
    tt_error_with_remedy(w->builder.loc, remedy, "%s", text.data);
}

const char *tt_c_dtype_name(CWalker *w, const Dtype *dtype)
{
    static const struct {
        const Dtype *dtype;
        const char *name;
    } names[] = {
        {&tt_int1, "bool"},     {&tt_int32, "int"},       {&tt_fp16, "half"},
        {&tt_bf16, "bfloat16"}, {&tt_fp32, "float"},      {&tt_fp64, "double"},
        {&tt_void, "void"},     {&tt_fp8e4nv, "fp8e4m3"}, {&tt_fp8e5, "fp8e5m2"},
    };
    if (tt_dtype_is_pointer(dtype))
        return tt_arena_format(w->arena, "%s%s*", dtype->is_const ? "const " : "",
                               tt_c_dtype_name(w, dtype->pointee));
    for (size_t i = 0; i < TT_COUNT(names); i++)
        if (names[i].dtype == dtype)
            return names[i].name;
    return dtype->name; /* int8, uint32, ... */
}

const char *tt_c_describe_type(CWalker *w, const Dtype *dtype, const Shape *shape)
{
    const char *name = tt_c_dtype_name(w, dtype);
    return shape->rank ? tt_arena_format(w->arena, "%s%s", name, tt_shape_format(w->arena, shape)) : name;
}

const char *tt_c_describe(CWalker *w, Operand x)
{
    int64_t integer;
    double real;
    if (!x.value)
        return x.dtype == &tt_void ? "nothing (void)" : "a string";
    Shape shape = tt_c_shape(x);
    if (!shape.rank && tt_dtype_is_int(x.dtype) && tt_constant_int(x.value, &integer))
        return tt_dtype_is_bool(x.dtype) ? (integer ? "the constant true" : "the constant false")
                                         : tt_arena_format(w->arena, "the constant %lld", (long long)integer);
    if (!shape.rank && tt_dtype_is_float(x.dtype) && tt_constant_float(x.value, &real))
        return tt_arena_format(w->arena, "the constant %g", real);
    return tt_c_describe_type(w, x.dtype, &shape);
}

/* Letters to insert, leave out or replace. */
static int distance(const char *a, const char *b)
{
    enum { LONGEST = 31 };
    int row[LONGEST + 1], n = (int)strlen(a), m = (int)strlen(b);
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (int j = 0; j <= m; j++)
        row[j] = j;
    for (int i = 1; i <= n; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int above = row[j], changed = corner + (a[i - 1] != b[j - 1]);
            row[j] = TT_MIN(changed, TT_MIN(above, row[j - 1]) + 1);
            corner = above;
        }
    }
    return row[m];
}

const char *tt_c_closest(const char *name, const char *const *names, int count)
{
    int best = (int)strlen(name) / 2 + 1;
    const char *found = NULL;
    for (int i = 0; i < count; i++) {
        int d = names[i] ? distance(name, names[i]) : best;
        if (d < best) {
            best = d;
            found = names[i];
        }
    }
    return found;
}
