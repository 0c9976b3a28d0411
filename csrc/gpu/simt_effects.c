/* What a kernel says: prints, failed assertions, and promises to the compiler. */
#include "gpu/simt.h"

/* ---- print ------------------------------------------------------------------------------------------------------------------------ */

static void add_escaped(Text *text, const char *message)
{
    for (; *message; message++)
        tt_text_add(text, *message == '%' ? "%%%%" : "%c", *message);
}

/* The conversion of an element, and the element as an argument of printf. */
static LLVMValueRef printable(Simt *s, const Op *op, int operand, LLVMValueRef value, Text *format)
{
    const Type *type = tt_element(tt_operand(op, operand)->type);
    bool hex = tt_int_attr(op, ATTR_hex, 0) || tt_is_ptr(type);
    if (hex) {
        tt_text_add(format, "0x%%0%dllx", 2 * tt_byte_width(type));
        return LLVMBuildZExt(s->b, simt_to_bits(s, value), s->i64, "");
    }
    if (tt_is_float(type)) {
        tt_text_add(format, "%%f");
        return simt_cast_scalar(s, value, type, tt_scalar_type(s->module, TT_F64));
    }
    bool is_unsigned = tt_int_attr(op, ATTR_unsigned_mask, 0) >> operand & 1 || tt_is_bool(type);
    tt_text_add(format, is_unsigned ? "%%llu" : "%%lld");
    return LLVMBuildIntCast2(s->b, value, s->i64, !is_unsigned, "");
}

/* pid (x, y, z) idx (i, j)message value; an index is as wide as the last one. */
static void print_element(Simt *s, const Op *op, int operand, int reg)
{
    const Value *value = operand < op->operand_count ? tt_operand(op, operand) : NULL;
    LLVMValueRef arguments[3 + TT_MAX_RANK + 1];
    Text format = {.arena = s->arena};
    int count = 0;
    tt_text_add(&format, value ? "pid (%%d, %%d, %%d) idx (" : "pid (%%d, %%d, %%d");
    for (int axis = 0; axis < 3; axis++)
        arguments[count++] = s->ops->program_id(s, axis);
    for (int axis = 0; value && value->layout && axis < value->type->rank; axis++) {
        tt_text_add(&format, "%s%%%dd", axis ? ", " : "", tt_decimal_digits(value->type->shape[axis] - 1));
        arguments[count++] = simt_coordinate(s, value->layout, axis, reg);
    }
    tt_text_add(&format, ")");
    add_escaped(&format, tt_string_attr(op, ATTR_message, ""));
    if (op->operand_count > 1)
        tt_text_add(&format, "(operand %d) ", operand);
    if (value) {
        arguments[count] = printable(s, op, operand, simt_tile(s, value)->at[reg], &format);
        count++;
    }
    tt_text_add(&format, "\n");
    s->ops->print(s, format.data, arguments, count);
}

void simt_print(Simt *s, const Op *op)
{
    for (int i = 0; i < TT_MAX(1, op->operand_count); i++) {
        const Value *value = op->operand_count ? tt_operand(op, i) : NULL;
        const LinearLayout *layout = value ? value->layout : NULL;
        LLVMValueRef first = simt_is_first_copy(s, layout);
        for (int r = 0; r < (value ? simt_registers(value) : 1); r++) {
            if (layout && simt_is_register_copy(layout, r))
                continue;
            LLVMValueRef inside = layout ? simt_in_bounds(s, value->type, layout, r) : NULL;
            LLVMBasicBlockRef after = simt_enter_where(s, simt_and(s, first, inside));
            print_element(s, op, i, r);
            LLVMBuildBr(s->b, after);
            LLVMPositionBuilderAtEnd(s->b, after);
        }
    }
}

/* ---- assert and assume --------------------------------------------------------------------------------------------------------------- */

/* Of the assertion's values those in the first register that fails; zeros if it has none. */
static void failing_values(Simt *s, const Op *op, LLVMValueRef const *fails, int registers,
                           LLVMValueRef values[2])
{
    Value *shown[2];
    values[0] = values[1] = simt_int(s->i64, 0);
    for (int i = tt_assert_values(op, shown) - 1; i >= 0; i--) {
        const Tile *tile = simt_tile(s, shown[i]);
        values[i] = tile->at[registers - 1];
        for (int r = registers - 2; r >= 0; r--)
            values[i] = LLVMBuildSelect(s->b, fails[r], tile->at[r], values[i], "");
    }
}

void simt_assert(Simt *s, const Op *op)
{
    const Value *value = tt_operand(op, 0), *masked = tt_assert_mask(op);
    const Tile *tile = simt_tile(s, value), *mask = masked ? simt_tile(s, masked) : NULL;
    LLVMValueRef any = NULL, *fails = TT_NEW_ARRAY(s->arena, LLVMValueRef, tile->count), values[2];
    for (int r = 0; r < tile->count; r++) {
        fails[r] = LLVMBuildNot(s->b, tile->at[r], "");
        if (mask)
            fails[r] = simt_and(s, fails[r], mask->at[r]);
        if (value->layout)
            fails[r] = simt_and(s, fails[r], simt_in_bounds(s, value->type, value->layout, r));
        any = any ? LLVMBuildOr(s->b, any, fails[r], "") : fails[r];
    }
    Failure failure = tt_assert_failure(op, s->arena);
    LLVMBasicBlockRef after = simt_enter_where(s, any);
    failing_values(s, op, fails, tile->count, values);
    s->ops->fail(s, &failure, values);
    LLVMBuildBr(s->b, after);
    LLVMPositionBuilderAtEnd(s->b, after);
}

void simt_assume(Simt *s, const Op *op)
{
    LLVMValueRef holds = simt_scalar(s, tt_operand(op, 0));
    simt_intrinsic(s, "llvm.assume", NULL, 0, &holds, 1);
}
