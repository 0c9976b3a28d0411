/* Element types by their names here, in NumPy and in torch. */
#include "python/extension.h"

const ScalarInfo tt_scalars[SCALAR_KINDS] = {
    [SCALAR_I1] = {"i1", "bool", "int1", 1, UNSIGNED_INT},
    [SCALAR_I8] = {"i8", "int8", "int8", 1, SIGNED_INT},
    [SCALAR_I16] = {"i16", "int16", "int16", 2, SIGNED_INT},
    [SCALAR_I32] = {"i32", "int32", "int32", 4, SIGNED_INT},
    [SCALAR_I64] = {"i64", "int64", "int64", 8, SIGNED_INT},
    [SCALAR_U8] = {"u8", "uint8", "uint8", 1, UNSIGNED_INT},
    [SCALAR_U16] = {"u16", "uint16", "uint16", 2, UNSIGNED_INT},
    [SCALAR_U32] = {"u32", "uint32", "uint32", 4, UNSIGNED_INT},
    [SCALAR_U64] = {"u64", "uint64", "uint64", 8, UNSIGNED_INT},
    [SCALAR_FP16] = {"fp16", "float16", "fp16", 2, FLOATING},
    [SCALAR_BF16] = {"bf16", "bfloat16", "bf16", 2, FLOATING},
    [SCALAR_FP32] = {"fp32", "float32", "fp32", 4, FLOATING},
    [SCALAR_FP64] = {"fp64", "float64", "fp64", 8, FLOATING},
    [SCALAR_FP8E4NV] = {"fp8e4nv", "float8_e4m3fn", "fp8e4nv", 1, FLOATING},
    [SCALAR_FP8E5] = {"fp8e5", "float8_e5m2", "fp8e5", 1, FLOATING},
    [SCALAR_FP8E4B15] = {"fp8e4b15", "float8e4b15", "fp8e4b15", 1, FLOATING},
    [SCALAR_FP8E4B8] = {"fp8e4b8", "float8_e4m3fnuz", "fp8e4b8", 1, FLOATING},
    [SCALAR_FP8E5B16] = {"fp8e5b16", "float8_e5m2fnuz", "fp8e5b16", 1, FLOATING},
};

const char tt_supported_dtypes[] =
    "bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, "
    "float8_e4m3fn, float8_e5m2, float8_e4m3fnuz or float8_e5m2fnuz";

ScalarKind tt_scalar_by_name(const char *name)
{
    /* How tl and older code spell what the table calls otherwise; and torch what is bytes in a kernel. */
    static const struct {
        const char *name;
        ScalarKind kind;
    } more[] = {{"u1", SCALAR_I1},
                {"uint1", SCALAR_I1},
                {"float8e4nv", SCALAR_FP8E4NV},
                {"float8e5", SCALAR_FP8E5},
                {"float8e4b8", SCALAR_FP8E4B8},
                {"float8e5b16", SCALAR_FP8E5B16},
                {"float8_e8m0fnu", SCALAR_U8},
                {"float4_e2m1fn_x2", SCALAR_U8},
                {"float8e8m0fnu", SCALAR_U8},
                {"fp8e8m0fnu", SCALAR_U8}};
    const char *dot = strrchr(name, '.');
    name = dot ? dot + 1 : name;
    for (int i = 0; i < SCALAR_KINDS; i++) {
        const ScalarInfo *info = &tt_scalars[i];
        if (!strcmp(name, info->name) || !strcmp(name, info->array_name) || !strcmp(name, info->dtype_name))
            return (ScalarKind)i;
    }
    for (size_t i = 0; i < TT_COUNT(more); i++)
        if (!strcmp(name, more[i].name))
            return more[i].kind;
    return SCALAR_KINDS;
}

static uint64_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

uint64_t tt_scalar_from_double(ScalarKind kind, double value)
{
    static const FloatFormat *const formats[SCALAR_KINDS] = {
        [SCALAR_FP16] = &tt_format_f16,           [SCALAR_BF16] = &tt_format_bf16,
        [SCALAR_FP8E4NV] = &tt_format_f8e4m3,     [SCALAR_FP8E5] = &tt_format_f8e5m2,
        [SCALAR_FP8E4B15] = &tt_format_f8e4m3b15, [SCALAR_FP8E4B8] = &tt_format_f8e4m3b8,
        [SCALAR_FP8E5B16] = &tt_format_f8e5m2b16,
    };
    uint64_t bits;
    if (kind == SCALAR_FP32)
        return float_bits((float)value);
    if (formats[kind])
        return tt_float_encode(formats[kind], value, false);
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
