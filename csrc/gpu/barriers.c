/* Barriers where one thread's access must wait for others: before an operation whose scratch overlaps what may still be
 * read, and around the atomics by which programs speak to each other. Those on scalars are done by one thread for the
 * whole program: a release comes after what all threads did, and what they do next comes after an acquire. */
#include "gpu/flow.h"

typedef struct Barriers {
    Module *module;
    const GpuOptions *options;
    TT_VECTOR(Op *) scratch;     /* by Op.index */
    int global_access, acquired; /* ids: threads may be at global memory; one thread has acquired */
    bool changed;
} Barriers;

static void number_scratch(Op *op, void *context)
{
    Barriers *b = context;
    op->index = -1;
    if (!tt_find_attr(op, ATTR_scratch))
        return;
    op->index = b->scratch.count;
    tt_push(b->module->arena, b->scratch, op);
}

static bool overlap(const Op *a, const Op *b)
{
    const int64_t *x = tt_find_attr(a, ATTR_scratch)->ints, *y = tt_find_attr(b, ATTR_scratch)->ints;
    return x[0] < y[0] + y[1] && y[0] < x[0] + x[1];
}

static bool is_atomic(const Op *op) { return tt_has(op, HAS_EFFECT) && tt_find_attr(op, ATTR_sem) != NULL; }

static bool has_order(const Op *op, const char *order)
{
    const char *sem = tt_string_attr(op, ATTR_sem, "acq_rel");
    return !strcmp(sem, order) || !strcmp(sem, "acq_rel");
}

static bool is_scalar_atomic(const Op *op) { return is_atomic(op) && !tt_is_tile(tt_operand(op, 0)->type); }

/* Does the operation access memory in threads other than the first? */
static bool accesses_everywhere(const Op *op)
{
    bool scalar = op->operand_count && !tt_is_tile(tt_operand(op, 0)->type);
    return tt_has(op, READS | WRITES) && !(scalar && (tt_has(op, WRITES) || is_atomic(op)));
}

static bool must_wait(const Barriers *b, const Op *op, const uint64_t *pending)
{
    for (int i = 0; op->index >= 0 && i < b->scratch.count; i++)
        if (tt_flow_has(pending, i) && overlap(op, b->scratch.data[i]))
            return true;
    if (is_scalar_atomic(op) && has_order(op, "release") && tt_flow_has(pending, b->global_access))
        return true;
    return accesses_everywhere(op) && tt_flow_has(pending, b->acquired);
}

static void visit(Flow *flow, Op *op, uint64_t *pending)
{
    Barriers *b = flow->context;
    if (must_wait(b, op, pending)) {
        Builder builder = tt_builder_before(op);
        tt_build_op(&builder, OP_barrier, NULL, 0, NULL, 0, NULL)->index = -1;
        memset(pending, 0, sizeof(uint64_t) * (size_t)(flow->ids / 64 + 1));
        b->changed = true;
    }
    if (accesses_everywhere(op))
        tt_flow_add(pending, b->global_access);
    if (is_scalar_atomic(op) && has_order(op, "acquire") && op->index < 0)
        tt_flow_add(pending, b->acquired);
}

bool tt_insert_barriers(Module *module, const GpuOptions *options)
{
    Function *function = module->functions;
    Barriers b = {.module = module, .options = options};
    tt_walk(function->body, number_scratch, &b);
    b.global_access = b.scratch.count;
    b.acquired = b.scratch.count + 1;
    Flow flow = {.arena = module->arena, .context = &b, .ids = b.scratch.count + 2, .visit = visit};
    tt_flow_region(&flow, function->body);
    return b.changed;
}
