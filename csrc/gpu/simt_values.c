/* What all of the SIMT lowering speaks in: LLVM types and values of tile IR. */
#include "gpu/simt.h"
#include "codegen/debug_info.h"

/* ---- types -------------------------------------------------------------------------------------------------------------------- */

LLVMTypeRef simt_type(Simt *s, const Type *type)
{
    switch (tt_element(type)->kind) {
    case TT_I1:
        return s->i1;
    case TT_I8:
    case TT_F8E4M3:
    case TT_F8E5M2:
    case TT_F8E4M3B15:
    case TT_F8E4M3B8:
    case TT_F8E5M2B16:
        return s->i8;
    case TT_I16:
        return s->i16;
    case TT_I32:
        return s->i32;
    case TT_I64:
        return s->i64;
    case TT_F16:
        return s->f16;
    case TT_BF16:
        return s->bf16;
    case TT_F32:
        return s->f32;
    case TT_F64:
        return s->f64;
    case TT_PTR:
        return s->global_ptr;
    default:
        tt_bug("no LLVM type for %s", tt_type_name(tt_element(type)->kind));
    }
}

LLVMTypeRef simt_int_type(Simt *s, int bits) { return LLVMIntTypeInContext(s->context, (unsigned)bits); }

int simt_bits(LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        return (int)LLVMGetIntTypeWidth(type);
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
        return 16;
    case LLVMFloatTypeKind:
        return 32;
    case LLVMDoubleTypeKind:
    case LLVMPointerTypeKind:
        return 64;
    default:
        tt_bug("an LLVM type without a width");
    }
}

int simt_bytes(LLVMTypeRef type) { return (simt_bits(type) + 7) / 8; }

LLVMValueRef simt_to_bits(Simt *s, LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    int bits = simt_bits(type);
    if (bits == 1)
        return LLVMBuildZExt(s->b, value, s->i8, "");
    if (LLVMGetTypeKind(type) == LLVMPointerTypeKind)
        return LLVMBuildPtrToInt(s->b, value, s->i64, "");
    return LLVMBuildBitCast(s->b, value, simt_int_type(s, bits), "");
}

LLVMValueRef simt_from_bits(Simt *s, LLVMValueRef bits, LLVMTypeRef type)
{
    if (type == s->i1)
        return LLVMBuildICmp(s->b, LLVMIntNE, bits, LLVMConstNull(LLVMTypeOf(bits)), "");
    if (LLVMGetTypeKind(type) == LLVMPointerTypeKind)
        return LLVMBuildIntToPtr(s->b, bits, type, "");
    return LLVMBuildBitCast(s->b, bits, type, "");
}

/* ---- values ------------------------------------------------------------------------------------------------------------------- */

/* A buffer is the place of its first byte. */
int simt_registers(const Value *value)
{
    return value->layout && tt_is_tile(value->type) ? 1 << value->layout->in_bits[LAYOUT_REGISTER] : 1;
}

Tile *simt_new_tile(Simt *s, int count)
{
    Tile *tile = TT_NEW(s->arena, Tile);
    tile->at = TT_NEW_ARRAY(s->arena, LLVMValueRef, count);
    tile->count = count;
    tile->phase = simt_phase(s);
    return tile;
}

Tile *simt_tile(Simt *s, const Value *value)
{
    if (!value->mark)
        tt_bug("a value of '%s' is used before it is lowered",
               value->op ? tt_op_infos[value->op->opcode].name : "a region's argument");
    if (simt_is_made_again(s, value)) {
        const Op *user = s->op;
        simt_lower_op(s, value->op);
        s->op = user;
        if (user)
            tt_debug_at(s->debug_info, s->b, user->loc);
    }
    return value->mark;
}

LLVMValueRef simt_scalar(Simt *s, const Value *value) { return simt_tile(s, value)->at[0]; }

void simt_set(Simt *s, const Value *value, Tile *tile)
{
    (void)s;
    TT_ASSERT(tile->count == simt_registers(value));
    ((Value *)value)->mark = tile;
}

void simt_set_scalar(Simt *s, const Value *value, LLVMValueRef scalar)
{
    Tile *tile = simt_new_tile(s, simt_registers(value));
    for (int i = 0; i < tile->count; i++)
        tile->at[i] = scalar;
    simt_set(s, value, tile);
}

LLVMBasicBlockRef simt_new_block(Simt *s, const char *name)
{
    return LLVMAppendBasicBlockInContext(s->context, s->function, name);
}

LLVMBasicBlockRef simt_enter_where(Simt *s, LLVMValueRef predicate)
{
    LLVMBasicBlockRef inside = simt_new_block(s, "then"), after = simt_new_block(s, "");
    if (predicate)
        LLVMBuildCondBr(s->b, predicate, inside, after);
    else
        LLVMBuildBr(s->b, inside);
    LLVMPositionBuilderAtEnd(s->b, inside);
    return after;
}

LLVMValueRef simt_and(Simt *s, LLVMValueRef a, LLVMValueRef b)
{
    return !a ? b : !b ? a : LLVMBuildAnd(s->b, a, b, "");
}

LLVMValueRef simt_intrinsic(Simt *s, const char *name, LLVMTypeRef *overloads, int overload_count,
                            LLVMValueRef const *arguments, int count)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    if (!id)
        tt_bug("this LLVM has no intrinsic %s", name);
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(s->llvm, id, overloads, (size_t)overload_count);
    LLVMTypeRef type = LLVMIntrinsicGetType(s->context, id, overloads, (size_t)overload_count);
    return LLVMBuildCall2(s->b, type, function, (LLVMValueRef *)arguments, (unsigned)count, "");
}

LLVMValueRef simt_call(Simt *s, const char *name, LLVMTypeRef result, LLVMValueRef const *arguments,
                       int count)
{
    LLVMTypeRef types[8];
    TT_ASSERT(count <= (int)TT_COUNT(types));
    for (int i = 0; i < count; i++)
        types[i] = LLVMTypeOf(arguments[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, (unsigned)count, 0);
    LLVMValueRef function = LLVMGetNamedFunction(s->llvm, name);
    if (!function)
        function = LLVMAddFunction(s->llvm, name, type);
    return LLVMBuildCall2(s->b, type, function, (LLVMValueRef *)arguments, (unsigned)count, "");
}

LLVMValueRef simt_string(Simt *s, const char *text, unsigned space)
{
    size_t size = strlen(text) + 1;
    void **slot = tt_map_slot(&s->symbols, text, size);
    if (!*slot) {
        LLVMValueRef value = LLVMConstStringInContext2(s->context, text, size, 1);
        LLVMValueRef global = LLVMAddGlobalInAddressSpace(s->llvm, LLVMTypeOf(value), "text", space);
        LLVMSetInitializer(global, value);
        LLVMSetGlobalConstant(global, 1);
        LLVMSetLinkage(global, LLVMPrivateLinkage);
        *slot = global;
    }
    return *slot;
}

void simt_add_attribute(Simt *s, const char *name, const char *value)
{
    LLVMAttributeRef attribute =
        LLVMCreateStringAttribute(s->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(s->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

LLVMValueRef simt_intrinsic1(Simt *s, const char *name, LLVMValueRef x)
{
    return simt_intrinsic(s, name, (LLVMTypeRef[]){LLVMTypeOf(x)}, 1, &x, 1);
}

LLVMValueRef simt_intrinsic2(Simt *s, const char *name, LLVMValueRef x, LLVMValueRef y)
{
    return simt_intrinsic(s, name, (LLVMTypeRef[]){LLVMTypeOf(x)}, 1, (LLVMValueRef[]){x, y}, 2);
}
