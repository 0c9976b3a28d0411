/* Conversions between the narrow float formats (as bits in integers) and f32: codegen/narrow_floats, but f16 uses the
 * hardware's conversions where there are some; bf16 does not, for those flush denormals. */
#include "codegen/narrow_floats.h"
#include "cpu/emit.h"

static bool uses_hardware(const Emit *e, const FloatFormat *format)
{
    return format == &tt_format_f16 && (e->codegen->host.has_f16c || !e->codegen->host.is_x86);
}

static LLVMValueRef decode(Emit *e, LLVMValueRef value, const FloatFormat *format)
{
    if (!uses_hardware(e, format))
        return tt_decode_float(e->b, value, format);
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef half = LLVMBuildBitCast(e->b, value, with_element(type, e->f16), "");
    return LLVMBuildFPExt(e->b, half, with_element(type, e->f32), "");
}

static LLVMValueRef encode(Emit *e, LLVMValueRef value, const FloatFormat *format, bool toward_zero)
{
    if (!uses_hardware(e, format) || toward_zero)
        return tt_encode_float(e->b, value, format, toward_zero);
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef half = LLVMBuildFPTrunc(e->b, value, with_element(type, e->f16), "");
    return LLVMBuildBitCast(e->b, half, with_element(type, e->i16), "");
}

static bool is_narrow(const Type *type)
{
    const FloatFormat *format = tt_float_format(type);
    return format && format->bits < 32;
}

LLVMValueRef emit_widen(Emit *e, LLVMValueRef value, const Type *type)
{
    return is_narrow(type) ? decode(e, value, tt_float_format(type)) : value;
}

LLVMValueRef emit_narrow(Emit *e, LLVMValueRef value, const Type *type)
{
    return is_narrow(type) ? encode(e, value, tt_float_format(type), false) : value;
}

LLVMValueRef emit_float_cast(Emit *e, LLVMValueRef value, const Type *from, const Type *to, bool toward_zero)
{
    from = tt_element(from), to = tt_element(to);
    if (from == to)
        return value;
    value = emit_widen(e, value, from);
    if (to->kind == TT_F64)
        return from->kind == TT_F64
                   ? value
                   : LLVMBuildFPExt(e->b, value, with_element(LLVMTypeOf(value), e->f64), "");
    if (to->kind == TT_F32) {
        if (from->kind != TT_F64)
            return value;
        if (toward_zero)
            return tt_round_to_odd(e->b, value, false);
        return LLVMBuildFPTrunc(e->b, value, with_element(LLVMTypeOf(value), e->f32), "");
    }
    if (from->kind == TT_F64)
        value = tt_round_to_odd(e->b, value, true);
    return encode(e, value, tt_float_format(to), toward_zero);
}
