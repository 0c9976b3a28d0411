/* The languages' element types: the IR's, with the signedness of integers and the const of pointers. */
#include "language/language.h"

const Dtype tt_int1 = {.name = "int1", .kind = TT_I1};
const Dtype tt_int8 = {.name = "int8", .kind = TT_I8};
const Dtype tt_int16 = {.name = "int16", .kind = TT_I16};
const Dtype tt_int32 = {.name = "int32", .kind = TT_I32};
const Dtype tt_int64 = {.name = "int64", .kind = TT_I64};
const Dtype tt_uint8 = {.name = "uint8", .kind = TT_I8, .is_unsigned = true};
const Dtype tt_uint16 = {.name = "uint16", .kind = TT_I16, .is_unsigned = true};
const Dtype tt_uint32 = {.name = "uint32", .kind = TT_I32, .is_unsigned = true};
const Dtype tt_uint64 = {.name = "uint64", .kind = TT_I64, .is_unsigned = true};
const Dtype tt_fp8e4nv = {.name = "fp8e4nv", .kind = TT_F8E4M3};
const Dtype tt_fp8e5 = {.name = "fp8e5", .kind = TT_F8E5M2};
const Dtype tt_fp8e4b15 = {.name = "fp8e4b15", .kind = TT_F8E4M3B15};
const Dtype tt_fp8e4b8 = {.name = "fp8e4b8", .kind = TT_F8E4M3B8};
const Dtype tt_fp8e5b16 = {.name = "fp8e5b16", .kind = TT_F8E5M2B16};
const Dtype tt_fp16 = {.name = "fp16", .kind = TT_F16};
const Dtype tt_bf16 = {.name = "bf16", .kind = TT_BF16};
const Dtype tt_fp32 = {.name = "fp32", .kind = TT_F32};
const Dtype tt_fp64 = {.name = "fp64", .kind = TT_F64};
const Dtype tt_void = {.name = "void", .kind = TT_VOID};

static const Dtype *const dtypes[] = {
    &tt_int1,   &tt_int8,   &tt_int16,   &tt_int32, &tt_int64,    &tt_uint8,   &tt_uint16,
    &tt_uint32, &tt_uint64, &tt_fp8e4nv, &tt_fp8e5, &tt_fp8e4b15, &tt_fp8e4b8, &tt_fp8e5b16,
    &tt_fp16,   &tt_bf16,   &tt_fp32,    &tt_fp64,  &tt_void,
};

const Dtype *tt_dtype_named(const char *name)
{
    for (size_t i = 0; i < TT_COUNT(dtypes); i++)
        if (!strcmp(name, dtypes[i]->name))
            return dtypes[i];
    return strcmp(name, "fp8e8m0fnu") ? NULL : &tt_uint8; /* exponents, which are bytes in a kernel */
}

const Dtype *tt_dtype_signed(const Dtype *dtype)
{
    size_t i = 0;
    while (dtypes[i]->kind != dtype->kind || dtypes[i]->is_unsigned)
        i++;
    return dtypes[i];
}

static const Dtype *scalar_of_signature(const char *text)
{
    static const struct {
        const char *name;
        const Dtype *dtype;
    } names[] = {
        {"i1", &tt_int1},           {"i8", &tt_int8},           {"i16", &tt_int16},
        {"i32", &tt_int32},         {"i64", &tt_int64},         {"u1", &tt_int1},
        {"u8", &tt_uint8},          {"u16", &tt_uint16},        {"u32", &tt_uint32},
        {"u64", &tt_uint64},        {"fp32", &tt_fp32},         {"fp64", &tt_fp64},
        {"fp16", &tt_fp16},         {"bf16", &tt_bf16},         {"fp8e5", &tt_fp8e5},
        {"fp8e4nv", &tt_fp8e4nv},   {"fp8e4b15", &tt_fp8e4b15}, {"fp8e4b8", &tt_fp8e4b8},
        {"fp8e5b16", &tt_fp8e5b16},
    };
    for (size_t i = 0; i < TT_COUNT(names); i++)
        if (!strcmp(text, names[i].name))
            return names[i].dtype;
    return NULL;
}

const Dtype *tt_dtype_of_signature(Map *pointers, const char *text)
{
    if (text[0] != '*')
        return scalar_of_signature(text);
    bool is_const = text[1] == 'k';
    const Dtype *pointee = tt_dtype_of_signature(pointers, text + 1 + is_const);
    return pointee ? tt_dtype_pointer_to(pointers, pointee, 1, is_const) : NULL;
}

const Dtype *tt_dtype_pointer_to(Map *pointers, const Dtype *pointee, int space, bool is_const)
{
    const struct {
        const Dtype *pointee;
        int64_t space, is_const;
    } key = {pointee, space, is_const};
    void **slot = tt_map_slot(pointers, &key, sizeof key);
    if (!*slot) {
        Dtype *dtype = TT_NEW(pointers->arena, Dtype);
        *dtype = (Dtype){.kind = TT_PTR, .is_const = is_const, .space = space, .pointee = pointee};
        dtype->name =
            tt_arena_format(pointers->arena, "pointer<%s%s>", is_const ? "const " : "", pointee->name);
        *slot = dtype;
    }
    return *slot;
}

const Type *tt_dtype_type(Module *module, const Dtype *dtype)
{
    if (dtype->kind == TT_PTR)
        return tt_ptr_type(module, tt_dtype_type(module, dtype->pointee), dtype->space);
    return tt_scalar_type(module, dtype->kind);
}

int tt_dtype_width(const Dtype *dtype)
{
    static const unsigned char widths[TT_TYPE_KINDS] = {
        [TT_I1] = 1,     [TT_I8] = 8,        [TT_I16] = 16,     [TT_I32] = 32,      [TT_I64] = 64,
        [TT_F8E4M3] = 8, [TT_F8E5M2] = 8,    [TT_F16] = 16,     [TT_BF16] = 16,     [TT_F32] = 32,
        [TT_F64] = 64,   [TT_F8E4M3B15] = 8, [TT_F8E4M3B8] = 8, [TT_F8E5M2B16] = 8, [TT_PTR] = 64,
    };
    return widths[dtype->kind];
}
