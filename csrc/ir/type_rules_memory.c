/* Rules of operations on memory: through pointers, and buffers in shared memory. */
#include "ir/type_rules.h"

/* ---- memory ------------------------------------------------------------------------------------------- */

void tt_rule_addptr(Verifier *v, const Op *op)
{
    if (!tt_is_ptr(type_of(op, 0)) || !tt_is_int(type_of(op, 1)) ||
        !tt_same_shape(type_of(op, 0), type_of(op, 1)))
        tt_verify_fail(v, op, "adds integers to pointers of the same shape, not %s to %s",
                       tt_type_text(v, type_of(op, 1)), tt_type_text(v, type_of(op, 0)));
    tt_expect_result(v, op, 0, type_of(op, 0));
}

static void expect_numbers(Verifier *v, const Op *op, int first, TypeKind kind)
{
    Module *module = op->parent->function->module;
    for (int d = 0; d < result_type(op)->rank; d++)
        tt_expect_operand(v, op, first + d, tt_scalar_type(module, kind));
}

/* A number for each extent and stride, if there are any. */
static void expect_of_extents(Verifier *v, const Op *op, AttrKey key, int count)
{
    const Attr *attr = tt_find_attr(op, key);
    if (attr && attr->count != count)
        tt_verify_fail(v, op, "has %d %s for %d extents and strides", attr->count, tt_attr_names[key], count);
}

void tt_rule_block_pointers(Verifier *v, const Op *op)
{
    const Type *type = result_type(op);
    int rank = rank_of(type);
    if (!rank || op->operand_count != 1 + 3 * rank) {
        tt_verify_fail(v, op, "takes a base, and an extent, a stride and an offset for each of %d dimensions",
                       rank);
        return;
    }
    tt_expect_operand(v, op, 0, type->element);
    expect_numbers(v, op, 1, TT_I64);
    expect_numbers(v, op, 1 + rank, TT_I64);
    expect_numbers(v, op, 1 + 2 * rank, TT_I32);
    tt_expect_result(v, op, 1, with_kind(type, TT_I1, op));
    const Attr *checked = tt_find_attr(op, ATTR_checked);
    for (int i = 0; checked && i < checked->count; i++)
        if (checked->ints[i] < 0 || checked->ints[i] >= rank)
            tt_verify_fail(v, op, "checks dimension %lld of %d", (long long)checked->ints[i], rank);
    expect_of_extents(v, op, ATTR_multiples, 2 * rank);
    expect_of_extents(v, op, ATTR_terms, 2 * rank);
}

/* What the pointers of operand 0 point to, in their shape; NULL (and a failure) when it holds no pointers. */
static const Type *pointee_type(Verifier *v, const Op *op)
{
    const Type *pointer = type_of(op, 0);
    if (!tt_is_ptr(pointer)) {
        tt_verify_fail(v, op, "operand 0 is %s, expected pointers", tt_type_text(v, pointer));
        return NULL;
    }
    return tt_with_element(op->parent->function->module, pointer, tt_element(pointer)->element);
}

void tt_rule_load(Verifier *v, const Op *op)
{
    const Type *type = pointee_type(v, op);
    if (!type)
        return;
    tt_expect_mask(v, op, 1);
    if (op->operand_count > 2)
        tt_expect_operand(v, op, 2, type);
    tt_expect_result(v, op, 0, type);
}

void tt_rule_store(Verifier *v, const Op *op)
{
    const Type *type = pointee_type(v, op);
    if (!type)
        return;
    tt_expect_operand(v, op, 1, type);
    tt_expect_mask(v, op, 2);
}

static void check_order(Verifier *v, const Op *op)
{
    tt_expect_word(v, op, ATTR_sem, (const char *const[]){"relaxed", "acquire", "release", "acq_rel", NULL});
    tt_expect_word(v, op, ATTR_scope, (const char *const[]){"gpu", "cta", "sys", NULL});
}

/* What only reads has nothing to release, and what only writes nothing to acquire. */
static void check_half(Verifier *v, const Op *op)
{
    const char *kind = tt_string_attr(op, ATTR_kind, "");
    bool loads = !strcmp(kind, "load"), stores = !strcmp(kind, "store");
    if (!loads && !stores)
        return;
    if (!tt_find_attr(op, ATTR_sem))
        tt_verify_fail(v, op, "an atomic %s needs its sem", kind);
    tt_expect_word(v, op, ATTR_sem, (const char *const[]){"relaxed", loads ? "acquire" : "release", NULL});
    if (stores && tt_has_uses(op->results[0]))
        tt_verify_fail(v, op, "an atomic store has no result to use");
}

void tt_rule_atomic_rmw(Verifier *v, const Op *op)
{
    static const char *const on_ints[] = {"add", "max", "max_u", "min",  "min_u", "and",
                                          "or",  "xor", "xchg",  "load", "store", NULL};
    static const char *const on_floats[] = {"fadd", "fmax", "fmin", "xchg", NULL};
    const Type *type = pointee_type(v, op);
    if (!type)
        return;
    tt_expect_operand(v, op, 1, type);
    tt_expect_mask(v, op, 2);
    tt_expect_result(v, op, 0, type);
    check_order(v, op);
    if (!tt_is_int(type) && (!tt_is_float(type) || tt_is_fp8(type)))
        tt_verify_fail(v, op, "works on integers and floats of at least 16 bits, not %s",
                       tt_type_text(v, type));
    else if (tt_expect_attr(v, op, ATTR_kind))
        tt_expect_word(v, op, ATTR_kind, tt_is_int(type) ? on_ints : on_floats);
    check_half(v, op);
}

void tt_rule_atomic_cas(Verifier *v, const Op *op)
{
    const Type *type = pointee_type(v, op);
    if (!type)
        return;
    tt_expect_operand(v, op, 1, type);
    tt_expect_operand(v, op, 2, type);
    tt_expect_result(v, op, 0, type);
    check_order(v, op);
}

/* ---- shared memory ------------------------------------------------------------------------------------ */

static bool expect_buffer(Verifier *v, const Op *op, int operand)
{
    const Type *type = type_of(op, operand);
    if (!tt_is_buffer(type))
        tt_verify_fail(v, op, "operand %d is %s, expected a buffer", operand, tt_type_text(v, type));
    return tt_is_buffer(type);
}

/* Buffers keep their layout from the first on. */
static void expect_buffer_result(Verifier *v, const Op *op, const Type *type)
{
    tt_expect_result(v, op, 0, type);
    const Value *result = op->results[0];
    if (!result->layout || !tt_layout_fits(result->layout, result->type))
        tt_verify_fail(v, op, "the buffer has no layout of its shape");
}

static void expect_slot_of(Verifier *v, const Op *op, int operand, const Type *tile)
{
    if (expect_buffer(v, op, operand))
        tt_expect_operand(v, op, operand, tt_buffer_type(op->parent->function->module, tile, 1));
}

void tt_rule_smem_alloc(Verifier *v, const Op *op)
{
    const Type *type = result_type(op);
    if (!tt_is_buffer(type)) {
        tt_verify_fail(v, op, "the result is %s, expected a buffer", tt_type_text(v, type));
        return;
    }
    expect_buffer_result(v, op, type);
    if (op->operand_count && tt_expect_tile(v, op, 0))
        tt_expect_result(v, op, 0, tt_buffer_type(op->parent->function->module, type_of(op, 0), 1));
}

void tt_rule_smem_view(Verifier *v, const Op *op)
{
    Module *module = op->parent->function->module;
    tt_expect_operand(v, op, 1, tt_scalar_type(module, TT_I32));
    if (!expect_buffer(v, op, 0))
        return;
    expect_buffer_result(v, op, tt_buffer_type(module, tt_slot_type(module, type_of(op, 0)), 1));
    if (op->results[0]->layout != tt_operand(op, 0)->layout)
        tt_verify_fail(v, op, "a slot has the layout of the buffer");
}

void tt_rule_smem_permute(Verifier *v, const Op *op)
{
    const Type *from = type_of(op, 0);
    int64_t shape[TT_MAX_RANK];
    if (!expect_buffer(v, op, 0) || !tt_expect_order(v, op, shape))
        return;
    Module *module = op->parent->function->module;
    const Type *tile = tt_tile_type(module, from->element, shape, from->rank);
    expect_buffer_result(v, op, tt_buffer_type(module, tile, from->slots));
}

static void expect_part(Verifier *v, const Op *op, const Type *type)
{
    const Attr *part = tt_find_attr(op, ATTR_part);
    if (part && (part->count != 3 || part->ints[0] < 0 || part->ints[0] >= type->rank))
        tt_verify_fail(v, op, "has a part that is no axis with a first and an end");
}

void tt_rule_smem_load(Verifier *v, const Op *op)
{
    if (!expect_buffer(v, op, 0))
        return;
    tt_expect_result(v, op, 0, tt_slot_type(op->parent->function->module, type_of(op, 0)));
    expect_part(v, op, type_of(op, 0));
}

void tt_rule_smem_store(Verifier *v, const Op *op)
{
    if (tt_expect_tile(v, op, 0))
        expect_slot_of(v, op, 1, type_of(op, 0));
}

void tt_rule_async_copy(Verifier *v, const Op *op)
{
    const Type *type = pointee_type(v, op);
    if (!type || !tt_expect_tile(v, op, 0))
        return;
    tt_expect_mask(v, op, 2);
    expect_slot_of(v, op, 1, type);
    expect_part(v, op, type);
}

void tt_rule_async_commit(Verifier *v, const Op *op) { (void)v, (void)op; }

void tt_rule_async_wait(Verifier *v, const Op *op)
{
    tt_expect_attr(v, op, ATTR_left);
    int64_t half = tt_int_attr(op, ATTR_half, 0);
    if (half != 0 && half != 1)
        tt_verify_fail(v, op, "half is 0 or 1, not %lld", (long long)half);
}

/* Barriers for copies of blocks, a slot each. */
static bool expect_barriers(Verifier *v, const Op *op, int operand)
{
    const Type *type = type_of(op, operand);
    bool fits = tt_is_buffer(type) && type->count == 1 && tt_element(type)->kind == TT_I64;
    if (!fits)
        tt_verify_fail(v, op, "operand %d is %s, expected a buffer of an i64 a slot", operand,
                       tt_type_text(v, type));
    return fits;
}

static void expect_barrier(Verifier *v, const Op *op, int operand)
{
    if (expect_barriers(v, op, operand) && type_of(op, operand)->slots != 1)
        tt_verify_fail(v, op, "operand %d is %s, expected one slot", operand,
                       tt_type_text(v, type_of(op, operand)));
}

static void expect_scalar(Verifier *v, const Op *op, int operand, TypeKind kind)
{
    tt_expect_operand(v, op, operand, tt_scalar_type(op->parent->function->module, kind));
}

void tt_rule_mbarrier_init(Verifier *v, const Op *op) { expect_barriers(v, op, 0); }

void tt_rule_mbarrier_end(Verifier *v, const Op *op) { expect_barriers(v, op, 0); }

void tt_rule_mbarrier_expect(Verifier *v, const Op *op)
{
    expect_barrier(v, op, 0);
    expect_scalar(v, op, 1, TT_I1);
    tt_expect_attr(v, op, ATTR_bytes);
}

void tt_rule_mbarrier_wait(Verifier *v, const Op *op)
{
    expect_barrier(v, op, 0);
    expect_scalar(v, op, 1, TT_I32);
}

void tt_rule_tensor_copy(Verifier *v, const Op *op)
{
    enum { BASE = 3 };
    expect_barrier(v, op, 1);
    expect_scalar(v, op, 2, TT_I1);
    tt_expect_attr(v, op, ATTR_terms);
    if (!expect_buffer(v, op, 0))
        return;
    int rank = type_of(op, 0)->rank;
    if (op->operand_count != BASE + 2 + 3 * rank) {
        tt_verify_fail(v, op, "has %d operands for a block of %d dimensions", op->operand_count, rank);
        return;
    }
    for (int i = 0; i <= 3 * rank; i++)
        expect_scalar(v, op, BASE + 1 + i, i < 2 * rank ? TT_I64 : TT_I32);
}

/* The result is in nobody's registers before it is waited for. */
static bool takes_under_way(const Use *use)
{
    const Op *user = use->user;
    return user->opcode == OP_wgmma_wait || user->opcode == OP_yield ||
           (user->opcode == OP_wgmma && tt_operand(user, 2) == use->value);
}

void tt_rule_wgmma(Verifier *v, const Op *op)
{
    tt_expect_attr(v, op, ATTR_warps);
    bool is_open = tt_find_attr(op, ATTR_open);
    TT_FOR_USES(use, op->results[0])
    if (!takes_under_way(use))
        tt_verify_fail(v, op, "'%s' takes the result before it is waited for",
                       tt_op_infos[use->user->opcode].name);
    else if (is_open && use->user->opcode != OP_wgmma)
        tt_verify_fail(v, op, "is open, and '%s' takes the result", tt_op_infos[use->user->opcode].name);
    if (expect_buffer(v, op, 1))
        tt_rule_dot(v, op);
}

void tt_rule_wgmma_wait(Verifier *v, const Op *op)
{
    tt_expect_attr(v, op, ATTR_left);
    if (tt_expect_tile(v, op, 0))
        tt_expect_result(v, op, 0, type_of(op, 0));
}
