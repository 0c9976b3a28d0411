/* Pointers that follow from what a branch of a loop changes: a loop over the steps of many tiles begins a tile in a branch,
 * which says the rows that are loaded from then on.
 *
 *   for ...:                                  for ...:
 *       if begins:                                if begins:
 *           rows = ...                   =>           rows = ...
 *       x = load(p + rows * stride + inner)           q = p + rows * stride
 *                                                 x = load(q + inner)
 *
 * The loop carries what is computed of them, and the branch computes it: else each iteration multiplies, and those take ports
 * of the register file that tensor cores need for their sums (4096³ in such a loop on an H100: 222 us, and 190). */
#include "gpu/passes.h"
#include "opt/pass.h"

typedef struct Picked {
    Arena *scratch;
    Loop loop;
    Op *branch; /* whose results the value follows from; NULL: not found yet */
    int kept;   /* its region that changes none of them */
    bool changed;
} Picked;

enum { DEEPEST = 12 };

/* Of as many elements as its operands. */
static bool moves(const Op *op)
{
    switch (op->opcode) {
    case OP_expand_dims:
    case OP_hint:
    case OP_ext_s:
    case OP_ext_u:
    case OP_add:
    case OP_sub:
    case OP_mul:
    case OP_addptr:
        return true;
    default:
        return false;
    }
}

/* As which value the loop hands on the result of a branch, one of whose regions leaves what is carried as it was; or -1. */
static int handed_on(const Picked *p, const Value *value, int *kept)
{
    const Op *branch = value->op;
    for (int i = 0; i < p->loop.count; i++)
        for (int region = 0; region < 2 && tt_next(&p->loop, i) == value; region++)
            if (tt_operand(branch->regions[region]->last, value->index) == tt_carried(&p->loop, i)) {
                *kept = region;
                return i;
            }
    return -1;
}

/* Does it follow from tiles of one branch, and from what no iteration changes? What follows from scalars is cheap. */
static bool follows(Picked *p, const Value *value, int depth)
{
    const Op *op = value->op;
    int kept;
    if (!tt_is_in_loop(&p->loop, value))
        return true;
    if (!op || op->parent != p->loop.body || !depth)
        return false;
    if (op->opcode == OP_if) {
        if (!tt_is_tile(value->type) || handed_on(p, value, &kept) < 0 ||
            (p->branch && (p->branch != op || p->kept != kept)))
            return false;
        p->branch = value->op;
        p->kept = kept;
        return true;
    }
    if (op->opcode == OP_constant)
        return true;
    if (!moves(op))
        return false;
    for (int i = 0; i < op->operand_count; i++)
        if (!follows(p, tt_operand(op, i), depth - 1))
            return false;
    return true;
}

/* The value once more, of what the loop begins with, or, in the branch, of what that yields. */
static Value *once_more(const Picked *p, Builder *b, const Region *yields, Value *value)
{
    Map known = {.arena = p->scratch};
    int kept;
    for (int i = 0; i < p->branch->result_count; i++) {
        const Value *result = p->branch->results[i];
        int carried = handed_on(p, result, &kept);
        if (carried >= 0)
            *tt_map_slot_ptr(&known, result) =
                yields ? tt_operand(yields->last, i) : tt_init(&p->loop, carried);
    }
    return tt_in_first_iteration(&p->loop, value, b, &known, p->scratch);
}

static void carry(Picked *p, Value *value)
{
    Region *changing = p->branch->regions[1 - p->kept], *kept = p->branch->regions[p->kept];
    Builder before = tt_builder_before(p->loop.op), inside = tt_builder_before(changing->last);
    before.loc = inside.loc = value->op->loc;
    int carried = tt_add_carried(&p->loop, once_more(p, &before, NULL, value));
    tt_add_operand(changing->last, once_more(p, &inside, changing, value));
    tt_add_operand(kept->last, tt_carried(&p->loop, carried));
    Value *result = tt_add_result(p->branch, value->type);
    tt_set_operand(p->loop.yield, carried, result);
    tt_replace_all_uses(value, result);
    p->changed = true;
}

/* Worth carrying, if nothing that follows from it is: a product, or pointers of a tile. */
static bool is_asked(Picked *p, const Op *op)
{
    if ((op->opcode != OP_mul && op->opcode != OP_addptr) || !tt_is_tile(op->results[0]->type))
        return false;
    p->branch = NULL;
    return follows(p, op->results[0], DEEPEST) && p->branch;
}

static bool change_loop(Op *op, void *context)
{
    Picked *p = context;
    if (!tt_has_dot(op->regions[0]))
        return false;
    p->loop = tt_loop(op);
    for (Op *last = p->loop.body->last, *previous; last;
         last = previous) { /* what follows from others comes first */
        previous = last->previous;
        if (is_asked(p, last) && tt_has_uses(last->results[0]))
            carry(p, last->results[0]);
        if (last->result_count == 1 && moves(last) && !tt_has_uses(last->results[0]))
            tt_erase_op(last);
    }
    return p->changed;
}

bool tt_gpu_branch_pointers(Module *module, const GpuOptions *options, Arena *scratch)
{
    (void)options;
    Picked p = {.scratch = scratch};
    TT_FOR_FUNCTIONS(function, module)
    tt_change_loops(function->body, change_loop, &p);
    if (p.changed)
        tt_simplify(module);
    return p.changed;
}
