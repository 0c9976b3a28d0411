/* Loads of a loop's next iteration, issued while this one is computed: for loops that ask for it (num_stages) and
 * combine elements of different threads, which wait for each other in every iteration, and for memory after that. What
 * is loaded is carried into the next iteration in registers, which costs moves: a loop that is busy computing gains
 * nothing. Nothing is read that the program does not read, but a load may move in front of a store through another
 * pointer parameter. */
#include "gpu/passes.h"
#include "opt/pass.h"

enum { MOST_BYTES = 64 /* of each thread's registers, carried by one loop */ };

typedef struct Prefetch {
    const GpuOptions *options;
    Arena *scratch;
    const ParamPointers *pointers;
    Loop loop;
    Builder before, inside; /* the loop; the load */
    Map first, now,
        next; /* values of an iteration, as they are before the loop, in it, and in the next one */
    int64_t bytes_left;
} Prefetch;

/* ---- which loops and loads ------------------------------------------------------------------------------------------------------- */

static bool combines(const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        bool combining = tt_control(op) == COMBINE;
        for (int i = 0; i < op->region_count && !combining; i++)
            combining = combines(op->regions[i]);
        if (combining)
            return true;
    }
    return false;
}

static bool is_candidate(const Op *op)
{
    return op->opcode == OP_for && tt_int_attr(op, ATTR_num_stages, 1) > 1 && !tt_has_effects(op) &&
           combines(op->regions[0]);
}

/* What is known of values: are they computed from what is known before the iteration begins, before the next one does? Values
 * may be shared many times over. */
typedef struct Found {
    Map now, ahead; /* Value* -> itself where it is, the map where not */
} Found;

static bool is_computable(const Prefetch *p, const Value *value, bool ahead, Found *found)
{
    if (!tt_is_in_loop(&p->loop, value))
        return true;
    Map *known = ahead ? &found->ahead : &found->now;
    const void *before = tt_map_find_ptr(known, value);
    if (before)
        return before == value;
    const Op *op = value->op;
    bool can;
    if (!op) {
        int carried = tt_carried_index(&p->loop, value);
        can = !ahead || carried < 0 || is_computable(p, tt_next(&p->loop, carried), false, found);
    } else {
        can = !op->region_count && tt_is_pure(op) && op->parent == p->loop.body;
        for (int i = 0; can && i < op->operand_count; i++)
            can = is_computable(p, tt_operand(op, i), ahead, found);
    }
    *tt_map_slot_ptr(known, value) = can ? (void *)value : known;
    return can;
}

static int64_t bytes_per_thread(const Prefetch *p, const Type *type)
{
    int64_t threads = (int64_t)TT_LANES * p->options->num_warps;
    return TT_MAX(1, (tt_is_tile(type) ? type->count : 1) / threads) * tt_byte_width(type);
}

static bool can_move(const Prefetch *p, const Op *op)
{
    if (op->opcode != OP_load || !tt_is_plain_load(op) ||
        bytes_per_thread(p, op->results[0]->type) > p->bytes_left)
        return false;
    int param = tt_pointer_param(p->pointers, tt_operand(op, 0));
    if (tt_writes_memory(p->loop.op) && (param < 0 || p->pointers->stored[param]))
        return false;
    Found found = {.now.arena = p->scratch, .ahead.arena = p->scratch};
    for (int i = 0; i < op->operand_count; i++)
        if (!is_computable(p, tt_operand(op, i), true, &found))
            return false;
    return true;
}

/* ---- values of other iterations --------------------------------------------------------------------------------------------------- */

static Value *copied(Builder *b, Map *map, Value *value, Value *(*operand_of)(Prefetch *, Value *),
                     Prefetch *p)
{
    Value *known = tt_map_find_ptr(map, value);
    if (known)
        return known;
    const Op *op = value->op;
    Value **operands = TT_NEW_ARRAY(p->scratch, Value *, op->operand_count);
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = operand_of(p, tt_operand(op, i));
    Value *copy = tt_build(b, op->opcode, operands, op->operand_count, value->type,
                           tt_copy_attrs(b->module, op->attrs));
    return *tt_map_slot_ptr(map, value) = copy;
}

static Value *at_first(Prefetch *p, Value *value)
{
    return tt_in_first_iteration(&p->loop, value, &p->before, &p->first, p->scratch);
}

static Value *at_now(Prefetch *p, Value *value)
{
    return !tt_is_in_loop(&p->loop, value) || !value->op ? value
                                                         : copied(&p->inside, &p->now, value, at_now, p);
}

static Value *at_next(Prefetch *p, Value *value)
{
    if (!tt_is_in_loop(&p->loop, value))
        return value;
    if (value->op)
        return copied(&p->inside, &p->next, value, at_next, p);
    int carried = tt_carried_index(&p->loop, value);
    if (carried >= 0)
        return at_now(p, tt_next(&p->loop, carried));
    return tt_build2(&p->inside, OP_add, value, tt_operand(p->loop.op, 2));
}

/* ---- moving a load ---------------------------------------------------------------------------------------------------------------- */

/* The load with its operands in another iteration, where `runs` holds. */
static Value *load_for(Prefetch *p, Builder *b, const Op *op, Value *(*operand_of)(Prefetch *, Value *),
                       Value *runs)
{
    Value *operands[3];
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = operand_of(p, tt_operand(op, i));
    const Type *type = tt_operand(op, 0)->type;
    Value *mask = tt_is_tile(type) ? tt_build_splat(b, runs, type->shape, type->rank) : runs;
    operands[1] = op->operand_count > 1 ? tt_build2(b, OP_and, operands[1], mask) : mask;
    const Type *results[] = {op->results[0]->type};
    Op *load = tt_build_op(b, OP_load, operands, TT_MAX(2, op->operand_count), results, 1,
                           tt_copy_attrs(b->module, op->attrs));
    load->results[0]->name = op->results[0]->name;
    return load->results[0];
}

static void prefetch(Prefetch *p, Op *op)
{
    Op *loop = p->loop.op;
    p->before = tt_builder_before(loop);
    p->inside = tt_builder_before(op);
    p->before.loc = op->loc;
    Value *lower = tt_operand(loop, 0), *upper = tt_operand(loop, 1), *step = tt_operand(loop, 2);
    Value *begins = tt_build2(&p->before, OP_lt_s, lower, upper);
    Value *first = load_for(p, &p->before, op, at_first, begins);
    /* upper - index is positive: as unsigned it is right even where it does not fit */
    Value *rest = tt_build2(&p->inside, OP_sub, upper, p->loop.body->args[0]);
    Value *goes_on = tt_build2(&p->inside, OP_lt_u, step, rest);
    Value *following = load_for(p, &p->inside, op, at_next, goes_on);
    int carried = tt_add_carried(&p->loop, first);
    tt_set_operand(p->loop.yield, p->loop.yield->operand_count - 1, following);
    tt_replace_all_uses(op->results[0], tt_carried(&p->loop, carried));
    tt_erase_op(op);
}

static bool visit_loop(Op *op, void *context)
{
    Prefetch *p = context;
    bool changed = false;
    if (!is_candidate(op))
        return false;
    p->loop = tt_loop(op);
    p->bytes_left = MOST_BYTES;
    Arena *arena = p->scratch;
    TT_FOR_OPS_SAFE(inner, p->loop.body)
    {
        if (!can_move(p, inner))
            continue;
        p->first = p->now = p->next = (Map){.arena = arena};
        p->bytes_left -= bytes_per_thread(p, inner->results[0]->type);
        prefetch(p, inner);
        changed = true;
    }
    return changed;
}

bool tt_gpu_prefetch(Module *module, const GpuOptions *options, Arena *scratch)
{
    Prefetch prefetch = {.options = options, .scratch = scratch, .before.module = module};
    prefetch.pointers = tt_analyze_param_pointers(module->functions, scratch);
    bool changed = tt_change_loops(module->functions->body, visit_loop, &prefetch);
    if (changed)
        tt_simplify(module);
    return changed;
}
