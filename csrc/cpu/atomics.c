/* Atomic read-modify-write and compare-and-swap. A tile's atomics run one element after the other; a false mask skips
 * the operation, or turns it to a place of our own. What the hardware has no instruction for is a compare-and-swap loop. */
#include "cpu/lower.h"

static LLVMAtomicOrdering ordering_of(const Op *op)
{
    const char *sem = tt_string_attr(op, ATTR_sem, "acq_rel");
    if (!strcmp(sem, "relaxed"))
        return LLVMAtomicOrderingMonotonic;
    if (!strcmp(sem, "acquire"))
        return LLVMAtomicOrderingAcquire;
    return strcmp(sem, "release") ? LLVMAtomicOrderingAcquireRelease : LLVMAtomicOrderingRelease;
}

static bool is_kind(const Op *op, const char *kind)
{
    return !strcmp(tt_string_attr(op, ATTR_kind, ""), kind);
}

static bool find_instruction(const Op *op, const Type *type, LLVMAtomicRMWBinOp *out)
{
    static const struct {
        const char *kind;
        LLVMAtomicRMWBinOp instruction;
    } table[] = {
        {"add", LLVMAtomicRMWBinOpAdd},    {"and", LLVMAtomicRMWBinOpAnd},
        {"or", LLVMAtomicRMWBinOpOr},      {"xor", LLVMAtomicRMWBinOpXor},
        {"max", LLVMAtomicRMWBinOpMax},    {"min", LLVMAtomicRMWBinOpMin},
        {"max_u", LLVMAtomicRMWBinOpUMax}, {"min_u", LLVMAtomicRMWBinOpUMin},
        {"xchg", LLVMAtomicRMWBinOpXchg},
    };
    if (tt_is_float(type) && !is_kind(op, "xchg"))
        return false;
    for (size_t i = 0; i < TT_COUNT(table); i++)
        if (is_kind(op, table[i].kind)) {
            *out = table[i].instruction;
            return true;
        }
    tt_unsupported(op->loc, "the CPU has no atomic '%s' on %s", tt_string_attr(op, ATTR_kind, ""),
                   tt_type_name(type->kind));
}

/* The new value of a float operation, from the register form of the old one. */
static LLVMValueRef combine_floats(Emit *e, const Op *op, const Type *type, LLVMValueRef old,
                                   LLVMValueRef operand)
{
    LLVMValueRef a = emit_widen(e, old, type), b = emit_widen(e, operand, type);
    if (is_kind(op, "fadd"))
        return emit_narrow(e, LLVMBuildFAdd(e->b, a, b, ""), type);
    bool larger = is_kind(op, "fmax");
    if (!larger && !is_kind(op, "fmin"))
        tt_unsupported(op->loc, "the CPU has no atomic '%s' on floats", tt_string_attr(op, ATTR_kind, ""));
    LLVMValueRef better = LLVMBuildFCmp(e->b, larger ? LLVMRealOGT : LLVMRealOLT, b, a, "");
    LLVMValueRef old_nan = LLVMBuildFCmp(e->b, LLVMRealUNO, a, a, "");
    return emit_select(e, LLVMBuildOr(e->b, better, old_nan, ""), operand, old);
}

static LLVMTypeRef bits_type(Emit *e, const Type *type)
{
    return LLVMIntTypeInContext(e->context, 8 * (unsigned)tt_byte_width(type));
}

static LLVMValueRef as_bits(Emit *e, LLVMValueRef value, const Type *type)
{
    value = to_memory_form(e, value);
    if (tt_is_ptr(type))
        return LLVMBuildPtrToInt(e->b, value, e->i64, "");
    return is_float_type(LLVMTypeOf(value)) ? LLVMBuildBitCast(e->b, value, bits_type(e, type), "") : value;
}

static LLVMValueRef from_bits(Emit *e, LLVMValueRef bits, const Type *type)
{
    if (tt_is_ptr(type))
        return LLVMBuildIntToPtr(e->b, bits, e->ptr, "");
    if (type->kind == TT_F32 || type->kind == TT_F64)
        return LLVMBuildBitCast(e->b, bits, register_type(e, type), "");
    return to_register_form(e, bits, type);
}

static LLVMValueRef compare_and_swap(Emit *e, LLVMValueRef pointer, LLVMValueRef expected,
                                     LLVMValueRef desired, LLVMAtomicOrdering ordering)
{
    LLVMAtomicOrdering failure = ordering == LLVMAtomicOrderingAcquireRelease ? LLVMAtomicOrderingAcquire
                                 : ordering == LLVMAtomicOrderingRelease      ? LLVMAtomicOrderingMonotonic
                                                                              : ordering;
    return LLVMBuildAtomicCmpXchg(e->b, pointer, expected, desired, ordering, failure, false);
}

static LLVMValueRef update_loop(Emit *e, const Op *op, const Type *type, LLVMValueRef pointer,
                                LLVMValueRef operand)
{
    LLVMTypeRef bits = bits_type(e, type);
    LLVMValueRef first = emit_load(e, bits, pointer, tt_byte_width(type));
    LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b), loop = new_block(e, "retry"),
                      done = new_block(e, "updated");
    LLVMBuildBr(e->b, loop);
    LLVMPositionBuilderAtEnd(e->b, loop);
    LLVMValueRef old = LLVMBuildPhi(e->b, bits, "");
    LLVMValueRef updated = combine_floats(e, op, type, from_bits(e, old, type), operand);
    LLVMValueRef pair = compare_and_swap(e, pointer, old, as_bits(e, updated, type), ordering_of(op));
    LLVMValueRef seen = LLVMBuildExtractValue(e->b, pair, 0, "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
    LLVMAddIncoming(old, &first, &before, 1);
    LLVMAddIncoming(old, &seen, &latch, 1);
    LLVMBuildCondBr(e->b, LLVMBuildExtractValue(e->b, pair, 1, ""), done, loop);
    LLVMPositionBuilderAtEnd(e->b, done);
    return from_bits(e, old, type);
}

/* An atomic load or store of integers; a store gives back what nobody uses. */
static LLVMValueRef one_way(Emit *e, const Op *op, const Type *type, LLVMValueRef pointer, LLVMValueRef value)
{
    int bytes = tt_byte_width(type);
    bool loads = is_kind(op, "load");
    LLVMValueRef access = loads ? emit_load(e, bits_type(e, type), pointer, bytes)
                                : emit_store(e, as_bits(e, value, type), pointer, bytes);
    LLVMSetOrdering(access, ordering_of(op));
    return loads ? access : value;
}

static LLVMValueRef emit_atomic(Emit *e, const Op *op, LLVMValueRef pointer, LLVMValueRef a, LLVMValueRef b)
{
    const Type *type = tt_element(tt_operand(op, 1)->type);
    if (op->opcode == OP_atomic_cas) {
        LLVMValueRef pair =
            compare_and_swap(e, pointer, as_bits(e, a, type), as_bits(e, b, type), ordering_of(op));
        return from_bits(e, LLVMBuildExtractValue(e->b, pair, 0, ""), type);
    }
    if (is_kind(op, "load") || is_kind(op, "store"))
        return one_way(e, op, type, pointer, a);
    LLVMAtomicRMWBinOp instruction;
    if (!find_instruction(op, type, &instruction))
        return update_loop(e, op, type, pointer, a);
    LLVMValueRef old =
        LLVMBuildAtomicRMW(e->b, instruction, pointer, as_bits(e, a, type), ordering_of(op), false);
    return from_bits(e, old, type);
}

/* The third operand is the mask of a read-modify-write, but the value of a compare-and-swap. */
static LLVMValueRef atomic_on(Lower *l, const Op *op, LLVMValueRef pointer, LLVMValueRef a,
                              LLVMValueRef third)
{
    bool masked = op->opcode == OP_atomic_rmw && third;
    if (masked)
        pointer = emit_select(l->e, third, pointer, l->scratch);
    begin_access(l->e, op);
    LLVMValueRef old = emit_atomic(l->e, op, pointer, a, third);
    end_access(l->e);
    return old;
}

void lower_scalar_atomic(Lower *l, Op *op)
{
    LLVMValueRef operands[3] = {0};
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = lower_scalar(l, tt_operand(op, i));
    straight(l);
    info_of(op->results[0])->scalar = atomic_on(l, op, operands[0], operands[1], operands[2]);
}

/* Only where the mask is true, since a plain branch is nothing beside an atomic operation; for operations whose results
 * are not used. */
static void run_where(Nest *n, const Op *op, const Vec *operands)
{
    Emit *e = n->e;
    LLVMValueRef mask = op->opcode == OP_atomic_rmw ? operands[2].v : NULL;
    if (!mask) {
        atomic_on(n->l, op, operands[0].v, operands[1].v, operands[2].v);
        return;
    }
    LLVMBasicBlockRef update = new_block(e, "update"), after = new_block(e, "masked");
    LLVMBuildCondBr(e->b, mask, update, after);
    LLVMPositionBuilderAtEnd(e->b, update);
    atomic_on(n->l, op, operands[0].v, operands[1].v, NULL);
    LLVMBuildBr(e->b, after);
    LLVMPositionBuilderAtEnd(e->b, after);
}

void sink_atomic(Nest *n, Op *op)
{
    Vec operands[3] = {0};
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = eval(n, tt_operand(op, i), n->coords);
    at_level(n, n->level);
    if (!tt_has_uses(op->results[0])) {
        run_where(n, op, operands);
        return;
    }
    LLVMValueRef old = atomic_on(n->l, op, operands[0].v, operands[1].v, operands[2].v);
    write_buffer(n, info_of(op->results[0])->buffer, 0, n->coords, (Vec){old, n->level, true});
}
