/* SIMT lowering: LLVM types and values of tile IR, and the walk that lowers one operation after the other. */
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

static int bits_of(LLVMTypeRef type)
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

int simt_bytes(LLVMTypeRef type) { return (bits_of(type) + 7) / 8; }

LLVMValueRef simt_to_bits(Simt *s, LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    int bits = bits_of(type);
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

static void lower(Simt *s, const Op *op);

Tile *simt_tile(Simt *s, const Value *value)
{
    if (!value->mark)
        tt_bug("a value of '%s' is used before it is lowered",
               value->op ? tt_op_infos[value->op->opcode].name : "a region's argument");
    if (simt_is_made_again(s, value)) {
        const Op *user = s->op;
        lower(s, value->op);
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

LLVMValueRef simt_intrinsic1(Simt *s, const char *name, LLVMValueRef x)
{
    return simt_intrinsic(s, name, (LLVMTypeRef[]){LLVMTypeOf(x)}, 1, &x, 1);
}

LLVMValueRef simt_intrinsic2(Simt *s, const char *name, LLVMValueRef x, LLVMValueRef y)
{
    return simt_intrinsic(s, name, (LLVMTypeRef[]){LLVMTypeOf(x)}, 1, (LLVMValueRef[]){x, y}, 2);
}

/* ---- operations without operands --------------------------------------------------------------------------------------------- */

static void lower_constant(Simt *s, const Op *op)
{
    const Type *type = op->results[0]->type;
    const Attr *value = tt_find_attr(op, ATTR_value);
    LLVMTypeRef llvm = simt_type(s, type);
    const FloatFormat *format = tt_float_format(type);
    LLVMValueRef constant;
    if (tt_is_fp8(type))
        constant = simt_int(llvm, (int64_t)tt_float_encode(format, value->f, false));
    else if (tt_is_float(type))
        constant = LLVMConstReal(llvm, value->f);
    else
        constant = simt_int(llvm, value->i);
    simt_set_scalar(s, op->results[0], constant);
}

static void lower_range(Simt *s, const Op *op)
{
    const Value *result = op->results[0];
    Tile *tile = simt_new_tile(s, simt_registers(result));
    int64_t start = tt_int_attr(op, ATTR_start, 0);
    for (int i = 0; i < tile->count; i++)
        tile->at[i] = simt_add_constant(s, simt_coordinate(s, result->layout, 0, i), start);
    simt_set(s, result, tile);
}

/* ---- the walk ------------------------------------------------------------------------------------------------------------------ */

static void lower_splat(Simt *s, const Op *op)
{
    simt_set_scalar(s, op->results[0], simt_scalar(s, tt_operand(op, 0)));
}

static void lower_convert_layout(Simt *s, const Op *op)
{
    const Value *from = tt_operand(op, 0), *to = op->results[0];
    simt_set(
        s, to,
        simt_convert(s, simt_tile(s, from), from->type, from->layout, to->layout, tt_scratch_offset(op)));
}

static void lower_op(Simt *s, const Op *op)
{
    if (tt_has(op, ELEMENTWISE)) {
        simt_elementwise(s, op);
        return;
    }
    int axis = (int)tt_int_attr(op, ATTR_axis, 0);
    switch (op->opcode) {
    case OP_constant:
        lower_constant(s, op);
        break;
    case OP_range:
        lower_range(s, op);
        break;
    case OP_program_id:
        simt_set_scalar(s, op->results[0], s->ops->program_id(s, axis));
        break;
    case OP_num_programs:
        simt_set_scalar(s, op->results[0], s->ops->num_programs(s, axis));
        break;
    case OP_hint:
        simt_set(s, op->results[0], simt_tile(s, tt_operand(op, 0)));
        break;
    case OP_splat:
        lower_splat(s, op);
        break;
    case OP_extract:
        simt_extract(s, op);
        break;
    case OP_gather:
        simt_gather(s, op);
        break;
    case OP_histogram:
        simt_histogram(s, op);
        break;
    case OP_convert_layout:
        lower_convert_layout(s, op);
        break;
    case OP_load:
        simt_load(s, op);
        break;
    case OP_store:
        simt_store(s, op);
        break;
    case OP_atomic_rmw:
    case OP_atomic_cas:
        simt_atomic(s, op);
        break;
    case OP_reduce:
        simt_reduce(s, op);
        break;
    case OP_scan:
        simt_scan(s, op);
        break;
    case OP_dot:
        (tt_is_on_tensor_cores(op) ? simt_mma : simt_dot)(s, op);
        break;
    case OP_wgmma:
        simt_wgmma(s, op);
        break;
    case OP_wgmma_wait:
        simt_wgmma_wait(s, op);
        break;
    case OP_smem_alloc:
        simt_smem_alloc(s, op);
        break;
    case OP_smem_view:
        simt_smem_view(s, op);
        break;
    case OP_smem_permute:
        simt_set_scalar(s, op->results[0], simt_scalar(s, tt_operand(op, 0)));
        break;
    case OP_smem_load:
        simt_smem_load(s, op);
        break;
    case OP_smem_store:
        simt_smem_store(s, op);
        break;
    case OP_async_copy:
        simt_async_copy(s, op);
        break;
    case OP_async_commit:
        s->ops->async->commit(s);
        break;
    case OP_async_wait:
        simt_async_wait(s, op);
        break;
    case OP_inline_asm:
    case OP_inline_asm_effect:
        simt_inline_asm(s, op);
        break;
    case OP_barrier:
        simt_sync(s);
        break;
    case OP_print:
        simt_print(s, op);
        break;
    case OP_assert:
        simt_assert(s, op);
        break;
    case OP_assume:
        simt_assume(s, op);
        break;
    case OP_for:
        simt_for(s, op);
        break;
    case OP_while:
        simt_while(s, op);
        break;
    case OP_if:
        simt_if(s, op);
        break;
    default:
        if (!tt_has(op, SHAPE))
            tt_bug("no SIMT lowering of '%s'", tt_op_infos[op->opcode].name);
        simt_shape(s, op);
    }
}

/* Every element that the layout has and the shape has not becomes what a test chose. */
static void fill_padding(Simt *s, const Value *value)
{
    const Tile *tile = simt_tile(s, value);
    Tile *filled = simt_new_tile(s, tile->count);
    for (int r = 0; r < tile->count; r++) {
        LLVMTypeRef type = LLVMTypeOf(tile->at[r]);
        LLVMValueRef inside = simt_in_bounds(s, value->type, value->layout, r);
        LLVMTypeRef bits = simt_int_type(s, type == s->i1 ? 8 : bits_of(type));
        LLVMValueRef word = simt_int(bits, (int64_t)s->options->padding & (type == s->i1 ? 1 : -1));
        filled->at[r] = inside ? LLVMBuildSelect(s->b, inside, tile->at[r], simt_from_bits(s, word, type), "")
                               : tile->at[r];
    }
    simt_set(s, value, filled);
}

static void lower(Simt *s, const Op *op)
{
    bool nested = s->strips && op->region_count && !tt_has(op, PURE) && !simt_meets(s, op);
    if (nested)
        simt_begin_nested(s, op);
    tt_debug_at(s->debug_info, s->b, op->loc);
    s->op = op;
    lower_op(s, op);
    for (int i = 0; s->options->padding && i < op->result_count; i++)
        if (op->results[i]->layout && op->results[i]->mark) /* an atomic's that nobody uses has none */
            fill_padding(s, op->results[i]);
    if (nested)
        simt_end_nested(s);
}

void simt_lower_region(Simt *s, const Region *region)
{
    const Op *outer = s->op;
    TT_FOR_OPS(op, region)
    {
        if (tt_has(op, TERMINATOR))
            break;
        lower(s, op);
    }
    s->op = outer;
    if (outer)
        tt_debug_at(s->debug_info, s->b, outer->loc);
}
