/* Inline assembly, element by element. */
#include "frontend/builtins.h"

enum { MOST_OPERANDS = 32, MOST_RESULTS = 16 };

typedef struct ResultTypes {
    const Dtype *items[MOST_RESULTS];
    int count;
    bool is_tuple;
} ResultTypes;

static ResultTypes read_dtypes(Walker *w, Term *args, int index)
{
    ResultTypes types;
    const Term *items;
    types.is_tuple = tt_term_items(w, args[index], &items, &types.count);
    if (!types.is_tuple)
        items = &args[index], types.count = 1;
    if (types.count < 1 || types.count > MOST_RESULTS)
        tt_fail(w, "%s has from 1 to %d results, not %d", tt_call_name(w), MOST_RESULTS, types.count);
    for (int i = 0; i < types.count; i++)
        if (!(types.items[i] = tt_term_dtype(w, items[i])) || types.items[i]->kind == TT_VOID)
            tt_arg_error(w, args, index, "an element type, or a tuple of them");
    return types;
}

static int read_operands(Walker *w, Term *args, int index, Term *operands)
{
    const Term *items = &args[index];
    int count = 1;
    if (!tt_is_value(args[index]) && !tt_term_items(w, args[index], &items, &count))
        tt_arg_error(w, args, index, "a list of tiles and scalars");
    if (count > MOST_OPERANDS)
        tt_fail(w, "%s takes up to %d operands, not %d", tt_call_name(w), MOST_OPERANDS, count);
    for (int i = 0; i < count; i++)
        operands[i] = tt_term_value(w, items[i]);
    if (count)
        tt_broadcast_together(w, tt_call_name(w), operands, count);
    return count;
}

/* inline_asm_elementwise(asm, constraints, args, dtype, is_pure, pack) */
Term tt_builtin_inline_asm(Walker *w, Term *args)
{
    Term operands[MOST_OPERANDS], results[MOST_RESULTS];
    Value *values[MOST_OPERANDS];
    const Type *types[MOST_RESULTS];
    const char *text = tt_arg_string(w, args, 0), *constraints = tt_arg_string(w, args, 1);
    if (!text || !constraints)
        tt_arg_error(w, args, text ? 1 : 0, "a string");
    int count = read_operands(w, args, 2, operands);
    ResultTypes dtypes = read_dtypes(w, args, 3);
    bool is_pure = tt_arg_bool(w, args, 4);
    int64_t pack = tt_arg_int(w, args, 5);
    if (!tt_is_pow2(pack) || pack > 64)
        tt_fail(w, "%s: `pack` must be a power of 2 up to 64, not %lld", tt_call_name(w), (long long)pack);
    for (int i = 0; i < count; i++)
        values[i] = operands[i].value;
    for (int i = 0; i < dtypes.count; i++) {
        const Type *element = tt_dtype_ir(w, dtypes.items[i]);
        types[i] = count ? tt_with_element(w->module, values[0]->type, element) : element;
    }
    Attr *attrs = tt_attr_int(w->module, ATTR_pack, pack, NULL);
    attrs = tt_attr_string(w->module, ATTR_constraints, constraints, attrs);
    attrs = tt_attr_string(w->module, ATTR_text, text, attrs);
    Op *op = tt_build_op(&w->builder, is_pure ? OP_inline_asm : OP_inline_asm_effect, values, count, types,
                         dtypes.count, attrs);
    for (int i = 0; i < dtypes.count; i++)
        results[i] = tt_value_term(op->results[i], dtypes.items[i]);
    return dtypes.is_tuple ? tt_tuple_term(w, results, dtypes.count) : results[0];
}
