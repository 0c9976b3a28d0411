/* SIMT lowering: the walk that lowers one operation after the other, each by the file of its family. */
#include "gpu/simt.h"
#include "codegen/debug_info.h"

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
    simt_set_scalar(s, op->results[0], tt_find_attr(op, ATTR_unread) ? LLVMGetUndef(llvm) : constant);
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
    const Attr *scratch = tt_find_attr(op, ATTR_scratch);
    simt_set(s, to,
             simt_convert(s, simt_tile(s, from), from->type, from->layout, to->layout, tt_scratch_offset(op),
                          scratch ? scratch->ints[1] : 0));
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
    case OP_clock:
        simt_clock(s, op);
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
    case OP_mbarrier_init:
    case OP_mbarrier_end:
    case OP_mbarrier_expect:
    case OP_mbarrier_wait:
        simt_mbarrier(s, op);
        break;
    case OP_tensor_copy:
        simt_tensor_copy(s, op);
        break;
    case OP_async_commit:
        simt_async_commit(s);
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

/* Sums of a product under way, or what may be: they are the tensor core's until they are waited for. */
static bool may_be_under_way(const Value *value)
{
    const Op *op = value->op;
    if (!op || op->opcode == OP_wgmma)
        return op;
    if (op->opcode == OP_wgmma_wait)
        return tt_int_attr(op, ATTR_left, 0);
    bool hands_on = op->opcode == OP_if || op->opcode == OP_for, any = false;
    for (int i = 0; hands_on && i < op->region_count; i++)
        any |= may_be_under_way(tt_operand(tt_terminator(op->regions[i]), value->index));
    return any;
}

/* Every element that the layout has and the shape has not becomes what a test chose. */
static void fill_padding(Simt *s, const Value *value)
{
    const Tile *tile = simt_tile(s, value);
    Tile *filled = simt_new_tile(s, tile->count);
    for (int r = 0; r < tile->count; r++) {
        LLVMTypeRef type = LLVMTypeOf(tile->at[r]);
        LLVMValueRef inside = simt_in_bounds(s, value->type, value->layout, r);
        LLVMTypeRef bits = simt_int_type(s, type == s->i1 ? 8 : simt_bits(type));
        LLVMValueRef word = simt_int(bits, (int64_t)s->options->padding & (type == s->i1 ? 1 : -1));
        filled->at[r] = inside ? LLVMBuildSelect(s->b, inside, tile->at[r], simt_from_bits(s, word, type), "")
                               : tile->at[r];
    }
    simt_set(s, value, filled);
}

void simt_lower_op(Simt *s, const Op *op)
{
    bool nested = s->strips && op->region_count && !tt_has(op, PURE) && !simt_meets(s, op);
    if (nested)
        simt_begin_nested(s, op);
    tt_debug_at(s->debug_info, s->b, op->loc);
    s->op = op;
    lower_op(s, op);
    for (int i = 0; s->options->padding && i < op->result_count; i++)
        if (op->results[i]->layout && op->results[i]->mark && /* an atomic's that nobody uses has none */
            !may_be_under_way(op->results[i]))
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
        simt_lower_op(s, op);
    }
    s->op = outer;
    if (outer)
        tt_debug_at(s->debug_info, s->b, outer->loc);
}
