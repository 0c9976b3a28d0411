/* Offsets in 64 bits, for launches whose numbers may be too large for 32: the i32 values that addresses depend on and
 * that may wrap around (analysis/offsets.h) are computed once more as i64, and addresses and the comparisons of their
 * masks use these. What else uses the i32 values keeps them: a number that is stored wraps around as it was written. */
#include "analysis/offsets.h"
#include "opt/pass.h"

typedef struct Widening {
    Offsets *offsets;
    Arena *scratch;
    Map wide;              /* Value* -> Value*, the i64 for it */
    TT_VECTOR(Op *) users; /* addresses and comparisons that need i64s */
} Widening;

static Value *wide(Widening *w, Value *value);

static const Type *wide_type(const Value *value)
{
    Function *function = value->op ? value->op->parent->function : value->region->function;
    Module *module = function->module;
    return tt_with_element(module, value->type, tt_scalar_type(module, TT_I64));
}

static Builder after(Value *value)
{
    if (value->op)
        return tt_builder_after(value->op);
    return value->region->first ? tt_builder_before(value->region->first) : tt_builder_at_end(value->region);
}

static Value *extended(Value *value)
{
    Builder b = after(value);
    const Type *type = wide_type(value);
    return value->type == type ? value : tt_build_cast(&b, OP_ext_s, value, tt_element(type));
}

static bool may_wrap(Widening *w, const Value *value) { return tt_offset_may_wrap(w->offsets, value); }

/* ---- loops and branches -------------------------------------------------------------------------------------------------- */

/* The i64 for the i32 that one arm of a branch, or an iteration, ends with. */
static void set_wide_yield(Widening *w, Op *yield, int index, int from)
{
    tt_set_operand(yield, index, wide(w, tt_operand(yield, from)));
}

static void note(Widening *w, const Value *value, Value *as) { *tt_map_slot_ptr(&w->wide, value) = as; }

static Value *wide_result_of_if(Widening *w, const Value *value)
{
    Op *op = value->op;
    Value *result = tt_add_result(op, wide_type(value));
    for (int i = 0; i < 2; i++) {
        Op *yield = tt_terminator(op->regions[i]);
        tt_add_operand(yield, wide(w, tt_operand(yield, value->index)));
    }
    return result;
}

/* The loop carries the i64 as well. All that stands for the carried value, in the regions and behind the loop, is wide
 * before its next value is looked at, which depends on it. */
static void widen_carried(Widening *w, Op *op, int number)
{
    Loop loop = tt_loop(op);
    Value *initial = wide(w, tt_init(&loop, number));
    int added = tt_add_carried(&loop, initial);
    for (int i = 0; i < op->region_count; i++)
        note(w, op->regions[i]->args[loop.arg + number], op->regions[i]->args[loop.arg + added]);
    note(w, op->results[number], op->results[added]);
    set_wide_yield(w, loop.yield, added, number);
}

/* The loop counts in i64, if it did not; its body gets the low half of the index where it used the index. */
static void widen_index(Widening *w, Op *loop)
{
    Value *index = loop->regions[0]->args[0];
    Value *bounds[3];
    for (int i = 0; i < 3; i++)
        bounds[i] = wide(w, tt_operand(loop, i));
    const Type *narrow = index->type;
    Builder b = tt_builder_before(loop->regions[0]->first);
    for (int i = 0; i < 3; i++)
        tt_set_operand(loop, i, bounds[i]);
    note(w, index, index);
    if (narrow == wide_type(index))
        return;
    index->type = wide_type(index);
    Value *low = tt_build_cast(&b, OP_trunc, index, narrow);
    tt_replace_all_uses(index, low);
    tt_set_operand(low->op, 0, index);
    note(w, low, index);
}

/* ---- any value ------------------------------------------------------------------------------------------------------------ */

static Value *wide_argument(Widening *w, Value *value)
{
    Op *loop = value->region->op;
    if (loop->opcode == OP_for && !value->index)
        widen_index(w, loop);
    else
        widen_carried(w, loop, value->index - (loop->opcode == OP_for));
    return tt_map_find_ptr(&w->wide, value);
}

/* The same operation on the i64s of its operands; a condition, and what follows an element's index, stay. */
static Value *wide_operation(Widening *w, Value *value)
{
    Op *op = value->op;
    if (op->opcode == OP_ext_s)
        return wide(w, tt_operand(op, 0));
    Value *operands[3];
    bool moves = tt_has(op, SHAPE) || op->opcode == OP_hint;
    for (int i = 0; i < op->operand_count; i++) {
        Value *operand = tt_operand(op, i);
        bool stays = tt_bit_width(operand->type) == 1 || (moves && i > 0);
        operands[i] = stays ? operand : wide(w, operand);
    }
    Builder b = tt_builder_after(op);
    return tt_build(&b, op->opcode, operands, op->operand_count, wide_type(value),
                    tt_copy_attrs(b.module, op->attrs));
}

static Value *find_wide(Widening *w, Value *value)
{
    if (!may_wrap(w, value))
        return extended(value);
    if (!value->op)
        return wide_argument(w, value);
    if (value->op->opcode == OP_if)
        return wide_result_of_if(w, value);
    if (!tt_is_loop(value->op))
        return wide_operation(w, value);
    widen_carried(w, value->op, value->index);
    return tt_map_find_ptr(&w->wide, value);
}

static Value *wide(Widening *w, Value *value)
{
    Value *known = tt_map_find_ptr(&w->wide, value);
    if (known)
        return known;
    Value *found = find_wide(w, value);
    note(w, value, found);
    return found;
}

/* ---- what uses them --------------------------------------------------------------------------------------------------------- */

static bool is_reached(const Widening *w, const Value *value)
{
    return tt_offset_is_reached(w->offsets, value);
}

/* Both sides of a comparison are reached together. */
static void visit(Op *op, void *context)
{
    Widening *w = context;
    bool is_address = op->opcode == OP_addptr;
    if (!is_address && !tt_is_signed_comparison(op))
        return;
    Value *left = tt_operand(op, 0), *right = tt_operand(op, 1);
    bool needs = is_reached(w, right) && may_wrap(w, right);
    if (!is_address)
        needs = is_reached(w, left) && is_reached(w, right) && (needs || may_wrap(w, left));
    if (needs)
        tt_push(w->scratch, w->users, op);
}

static void widen_operand(Widening *w, Op *op, int i) { tt_set_operand(op, i, wide(w, tt_operand(op, i))); }

bool tt_opt_widen(Function *function, Arena *scratch)
{
    if (!function->is_kernel)
        return false;
    Widening w = {
        .offsets = tt_analyze_offsets(function, scratch), .scratch = scratch, .wide = {.arena = scratch}};
    tt_walk(function->body, visit, &w); /* all are found before anything changes */
    for (int i = 0; i < w.users.count; i++) {
        Op *op = w.users.data[i];
        if (op->opcode != OP_addptr)
            widen_operand(&w, op, 0);
        widen_operand(&w, op, 1);
    }
    return w.users.count > 0;
}
