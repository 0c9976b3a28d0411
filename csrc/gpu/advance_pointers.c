/* Pointers that a loop with products computes from its index each time, `p + (start + rows) * stride`, as those of the first
 * iteration and one distance for all, which the loop carries: an addition for each then, and nothing that multiplies while
 * tensor cores wait for what is copied.
 *
 * Exact where no offset wraps around: those that bounds are known of do not in the launches that this code is for
 * (analysis/offsets.h), and 64-bit ones are the same address in whatever order they are added. */
#include "analysis/offsets.h"
#include "gpu/passes.h"
#include "opt/pass.h"

typedef struct Advance {
    Module *module;
    Arena *scratch;
    Offsets *offsets;
    Loop loop;
    Builder before;
    Map first;           /* Value* of the body -> its value in the first iteration, before the loop */
    Map slopes;          /* Value* of the body -> Slope*: values may be shared many times over */
    bool asked, changed; /* asked: steps may have been built that nothing needs */
} Advance;

/* How much a value grows by in each iteration. */
typedef struct Slope {
    bool is_known;
    Value *step; /* i64; NULL: none */
} Slope;

static const Slope unknown = {false, NULL}, none = {true, NULL};

/* A number that the kernel was given or that is written in it, as an i64; else NULL. */
static Value *leaf(Advance *a, Value *value)
{
    while (tt_def(value, OP_splat) || tt_def(value, OP_broadcast) || tt_def(value, OP_expand_dims) ||
           tt_def(value, OP_hint) || tt_def(value, OP_ext_s))
        value = tt_operand(value->op, 0);
    int64_t number;
    const Type *i64 = tt_scalar_type(a->module, TT_I64);
    if (tt_constant_int(value, &number))
        return tt_build_int(&a->before, i64, number);
    bool is_param = !value->op && value->region == a->module->functions->body && tt_is_int(value->type) &&
                    !tt_is_tile(value->type) && tt_bit_width(value->type) >= 32;
    return !is_param ? NULL : value->type == i64 ? value : tt_build_cast(&a->before, OP_ext_s, value, i64);
}

static Slope sum_of(Advance *a, Slope x, Slope y, bool is_difference)
{
    if (!x.is_known || !y.is_known)
        return unknown;
    if (!y.step)
        return x;
    if (!x.step)
        x.step = tt_build_int(&a->before, y.step->type, 0);
    return (Slope){true, tt_build2(&a->before, is_difference ? OP_sub : OP_add, x.step, y.step)};
}

static Slope times(Advance *a, Slope x, Value *factor)
{
    if (!x.is_known || !x.step)
        return x;
    Value *by = leaf(a, factor);
    return by ? (Slope){true, tt_build2(&a->before, OP_mul, x.step, by)} : unknown;
}

static Slope slope_of(Advance *a, Value *value);

static Slope slope_of_argument(Advance *a, const Value *value)
{
    int carried = tt_carried_index(&a->loop, value);
    Value *step = carried < 0 ? tt_operand(a->loop.op, 2) : NULL;
    Op *next = carried < 0 ? NULL : tt_def(tt_next(&a->loop, carried), OP_add);
    for (int i = 0; next && i < 2; i++)
        if (tt_operand(next, i) == value)
            step = tt_operand(next, 1 - i);
    Value *number = step && !tt_is_in_loop(&a->loop, step) ? leaf(a, step) : NULL;
    return number && !tt_is_tile(value->type) && tt_is_int(value->type) ? (Slope){true, number} : unknown;
}

/* Of an offset: that of its elements is what arithmetic without bounds gives. */
static Slope slope_of_offset(Advance *a, Value *value)
{
    Slope slope = slope_of(a, value);
    bool is_exact = tt_bit_width(value->type) == 64 || tt_offset_has_bounds(a->offsets, value);
    return !slope.step || is_exact ? slope : unknown;
}

static Slope slope_of_op(Advance *a, Op *op)
{
    if (op->parent != a->loop.body || op->result_count != 1 || !tt_is_pure(op))
        return unknown;
    Value *x = op->operand_count ? tt_operand(op, 0) : NULL,
          *y = op->operand_count > 1 ? tt_operand(op, 1) : NULL;
    switch (op->opcode) {
    case OP_add:
    case OP_sub:
        return sum_of(a, slope_of(a, x), slope_of(a, y), op->opcode == OP_sub);
    case OP_addptr:
        return sum_of(a, slope_of(a, x), slope_of_offset(a, y), false);
    case OP_mul: {
        Slope left = slope_of(a, x), right = slope_of(a, y);
        if (!left.is_known || !right.is_known || (left.step && right.step))
            return unknown;
        return left.step ? times(a, left, y) : times(a, right, x);
    }
    case OP_ext_s:
        return slope_of_offset(a, x);
    case OP_hint:
    case OP_splat:
    case OP_expand_dims:
    case OP_broadcast:
    case OP_permute:
        return slope_of(a, x);
    default:
        for (int i = 0; i < op->operand_count; i++) {
            Slope slope = slope_of(a, tt_operand(op, i));
            if (!slope.is_known || slope.step)
                return unknown;
        }
        return op->region_count ? unknown : none;
    }
}

static Slope slope_of(Advance *a, Value *value)
{
    if (!tt_is_in_loop(&a->loop, value))
        return none;
    Slope *known = tt_map_find_ptr(&a->slopes, value);
    if (!known) {
        known = TT_NEW(a->scratch, Slope);
        *known = value->op ? slope_of_op(a, value->op) : slope_of_argument(a, value);
        *tt_map_slot_ptr(&a->slopes, value) = known;
    }
    return *known;
}

/* Is a tile multiplied in the loop on the way? */
static bool multiplies(const Advance *a, const Value *value, int depth)
{
    const Op *op = value->op;
    if (!op || op->parent != a->loop.body || depth > 16)
        return false;
    if (op->opcode == OP_mul && tt_is_tile(value->type))
        return true;
    for (int i = 0; i < op->operand_count; i++)
        if (multiplies(a, tt_operand(op, i), depth + 1))
            return true;
    return false;
}

static void advance(Advance *a, Op *load)
{
    Value *pointer = tt_operand(load, 0);
    if (!tt_is_tile(pointer->type) || !multiplies(a, pointer, 0))
        return;
    a->before.loc = load->loc;
    a->asked = true;
    Slope slope = slope_of(a, pointer);
    if (!slope.is_known || !slope.step)
        return;
    const Type *i64 = tt_scalar_type(a->module, TT_I64);
    int carried = tt_add_carried(&a->loop, tt_build_int(&a->before, i64, 0));
    Value *first = tt_in_first_iteration(&a->loop, pointer, &a->before, &a->first, a->scratch);
    Builder here = tt_builder_before(load), end = tt_builder_before(a->loop.yield);
    here.loc = end.loc = load->loc;
    Value *distance = tt_carried(&a->loop, carried);
    tt_set_operand(a->loop.yield, carried, tt_build2(&end, OP_add, distance, slope.step));
    Value *all = tt_build_splat(&here, distance, pointer->type->shape, pointer->type->rank);
    tt_set_operand(load, 0, tt_build_addptr(&here, first, all));
    a->changed = true;
}

static void visit(Op *op, void *context)
{
    Advance *a = context;
    if (op->opcode != OP_for || !tt_has_dot(op->regions[0]))
        return;
    a->loop = tt_loop(op);
    a->before = tt_builder_before(op);
    a->first = a->slopes = (Map){.arena = a->scratch};
    TT_FOR_OPS_SAFE(load, a->loop.body)
    {
        if (load->opcode == OP_load)
            advance(a, load);
    }
}

bool tt_gpu_advance_pointers(Module *module, const GpuOptions *options, Arena *scratch)
{
    (void)options;
    Advance a = {.module = module, .scratch = scratch};
    a.offsets = tt_analyze_offsets(module->functions, scratch);
    tt_walk(module->functions->body, visit, &a);
    if (a.changed) {
        tt_simplify(module);
        tt_opt_run_pass(module, PASS_licm);
    }
    return (a.asked && tt_opt_run_pass(module, PASS_dce)) || a.changed;
}
