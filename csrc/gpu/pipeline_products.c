/* Products that a pipelined loop leaves under way, and the places of waits, copies and reads around them. */
#include "gpu/pipeline.h"

/* ---- products under way ----------------------------------------------------------------------------------------------------------------- */

/* A buffer that this iteration alone fills: pipelined, not another one made of the same load, or filled before the loop. */
static bool outlives_iteration(const Pipeline *p, const Value *buffer)
{
    while (tt_def(buffer, OP_smem_permute))
        buffer = tt_operand(buffer->op, 0);
    if (!tt_is_buffer(buffer->type) || !tt_is_in_loop(&p->loop, buffer))
        return tt_is_buffer(buffer->type);
    const Value *source = buffer->op->operand_count ? tt_operand(buffer->op, 0) : NULL;
    for (int i = 0; source && i < p->loads.count; i++)
        if (p->loads.data[i].load == source->op && p->loads.data[i].layout == buffer->layout)
            return !p->loads.data[i].is_kept;
    return false;
}

/* The branch of the loop's body that the operation is in; NULL: it is in none. */
static Region *branch_of(const Pipeline *p, const Op *op)
{
    for (Region *region = op->parent; region->op; region = region->op->parent)
        if (region->op->parent == p->loop.body)
            return region->op->opcode == OP_if ? region : NULL;
    return NULL;
}

/* Does the use hand the value on to the next iteration as this carried one, at once or as what a branch leaves? */
static bool hands_on(const Pipeline *p, const Use *use, int carried)
{
    const Op *user = use->user, *choice = user->parent->op;
    const Value *next = tt_next(&p->loop, carried);
    return user->opcode == OP_yield &&
           (user == p->loop.yield ? use->value == next
                                  : choice->parent == p->loop.body && next->op == choice &&
                                        tt_operand(user, next->index) == use->value && tt_has_one_use(next));
}

/* The product whose sums this one adds to, and nothing else uses, waited for or not; or NULL. */
static Op *product_before(const Op *product)
{
    const Value *sums = tt_operand(product, 2);
    const Op *wait = tt_def(sums, OP_wgmma_wait);
    if (wait && (wait->operand_count != 1 || !tt_has_one_use(sums)))
        return NULL;
    Op *before = tt_def(wait ? tt_operand(wait, 0) : sums, OP_wgmma);
    bool follows = before && before->parent == product->parent && tt_has_one_use(before->results[0]) &&
                   !memcmp(tt_find_attr(before, ATTR_warps)->ints, tt_find_attr(product, ATTR_warps)->ints,
                           2 * sizeof(int64_t));
    return follows ? before : NULL;
}

/* Of products that add to each other's sums none but the last is waited for. */
static void drop_waits_between(Op *product)
{
    for (Op *before; (before = product_before(product)); product = before) {
        Op *wait = tt_def(tt_operand(product, 2), OP_wgmma_wait);
        tt_set_operand(product, 2, before->results[0]);
        if (wait)
            tt_erase_op(wait);
    }
}

/* The last product whose sums only the next iteration's first adds to, or NULL. What computes with them stands in
 * branches, that of a tile's last step, say. */
static Op *product_adding_up(const Pipeline *p, const Op *wait)
{
    Op *product = tt_def(tt_operand(wait, 0), OP_wgmma);
    if (!product || wait->operand_count != 1)
        return NULL;
    const Op *first = product;
    for (const Op *before; (before = product_before(first));)
        first = before;
    const Value *carried = tt_operand(first, 2);
    int index = tt_carried_index(&p->loop, carried), handed_on = 0;
    if (index < 0 || !tt_has_one_use(carried))
        return NULL;
    TT_FOR_USES(use, wait->results[0])
    {
        bool hands = hands_on(p, use, index);
        if (!hands && (use->user->opcode == OP_yield || !branch_of(p, use->user)))
            return NULL;
        handed_on += hands;
    }
    return handed_on == 1 ? product : NULL;
}

/* Branches that compute with the sums wait for them, each when it begins. */
static void wait_in_branches(Pipeline *p, const Op *wait)
{
    Value *sums = wait->results[0];
    TT_FOR_USES_SAFE(use, sums)
    {
        Op *user = use->user;
        Region *branch = user->opcode == OP_wgmma_wait ? NULL : branch_of(p, user);
        bool only_hands_on = user->opcode == OP_yield && branch && user->parent == branch;
        if (!branch || only_hands_on)
            continue;
        Op *first = branch->first;
        if (first->opcode != OP_wgmma_wait || tt_operand(first, 0) != sums) {
            Builder b = tt_builder_before(first);
            b.loc = user->loc;
            first = tt_build_op(&b, OP_wgmma_wait, &sums, 1, &sums->type, 1,
                                tt_attr_int(p->module, ATTR_left, 0, NULL));
            first->results[0]->name = sums->name;
        }
        for (int i = 0; i < user->operand_count; i++)
            if (tt_operand(user, i) == sums)
                tt_set_operand(user, i, first->results[0]);
    }
}

/* Are the operands what stays where it is until the next iteration, or can be if slots hold what is computed? That is worth it
 * if threads have to meet for the right one anyway. */
static bool can_be_held(Pipeline *p, const Op *product)
{
    return !outlives_iteration(p, tt_operand(product, 1)) && pipeline_note_computed(p, product, 1) &&
           (outlives_iteration(p, tt_operand(product, 0)) || pipeline_can_halve(p, product) ||
            pipeline_note_computed(p, product, 0));
}

static bool all_outlive_iteration(const Pipeline *p, const Op *product)
{
    for (; product; product = product_before(product))
        for (int i = 0; i < 2; i++)
            if (!outlives_iteration(p, tt_operand(product, i)))
                return false;
    return true;
}

static void choose_halves(Pipeline *p)
{
    p->in_halves = p->deferred.count == 1 && pipeline_can_halve(p, tt_operand(p->deferred.data[0], 0)->op);
}

void pipeline_find_deferred(Pipeline *p)
{
    TT_FOR_OPS(op, p->loop.body)
    {
        Op *product = op->opcode == OP_wgmma_wait ? product_adding_up(p, op) : NULL;
        int noted = p->computed.count;
        if (!product)
            continue;
        if (all_outlive_iteration(p, product) ||
            (outlives_iteration(p, tt_operand(product, 1)) && pipeline_can_halve(p, product))) {
            drop_waits_between(product);
            tt_push(p->scratch, p->deferred, op);
        } else if (!product_before(product) && can_be_held(p, product))
            tt_push(p->scratch, p->deferrable, op);
        else
            p->computed.count = noted;
    }
    choose_halves(p);
}

/* In the order of the loop: the last wait speaks for all. */
void pipeline_defer_computed(Pipeline *p)
{
    Map deferred = {.arena = p->scratch};
    for (int i = 0; i < p->deferrable.count; i++)
        tt_push(p->scratch, p->deferred, p->deferrable.data[i]);
    for (int i = 0; i < p->deferred.count; i++)
        *tt_map_slot_ptr(&deferred, p->deferred.data[i]) = p->deferred.data[i];
    p->deferred.count = 0;
    TT_FOR_OPS(op, p->loop.body)
    if (tt_map_find_ptr(&deferred, op))
        tt_push(p->scratch, p->deferred, op);
    choose_halves(p);
}

bool pipeline_holds_slots(const Pipeline *p)
{
    for (int i = 0; i < p->deferred.count; i++)
        for (const Op *product = tt_operand(p->deferred.data[i], 0)->op; product;
             product = product_before(product))
            for (int j = 0; j < 2; j++) {
                const Value *operand = tt_operand(product, j);
                if (tt_is_in_loop(&p->loop, operand) && outlives_iteration(p, operand))
                    return true;
            }
    return false;
}

/* The product, or the first part of it. */
static Op *first_part(Op *product)
{
    const Value *sums = tt_operand(product, 2);
    if (tt_def(sums, OP_wgmma_wait))
        sums = tt_operand(sums->op, 0);
    Op *before = tt_def(sums, OP_wgmma);
    return before && before->parent == product->parent ? first_part(before) : product;
}

/* What is waited for; one that was not cut in parts may have been given a wait for those before it. */
static Op *product_of(const Op *wait)
{
    const Value *sums = tt_operand(wait, 0);
    return tt_def(sums, OP_wgmma_wait) ? tt_operand(sums->op, 0)->op : sums->op;
}

/* All of this iteration's products may still run at its end, none of the one before. */
void pipeline_defer_waits(Pipeline *p)
{
    int groups = 0;
    for (int i = 0; i < p->deferred.count; i++) {
        Op *product = product_of(p->deferred.data[i]);
        groups += first_part(product) == product ? 1 : 2;
    }
    for (int i = 0; i < p->deferred.count; i++) {
        Op *wait = p->deferred.data[i];
        int carried = tt_carried_index(&p->loop, tt_operand(first_part(product_of(wait)), 2));
        tt_set_attr(wait, tt_attr_int(p->module, ATTR_left, p->in_halves ? 1 : groups, NULL));
        wait_in_branches(p, wait);
        if ((p->is_compact && !p->in_halves) || i + 1 < p->deferred.count) { /* the last one speaks for all */
            tt_replace_all_uses(wait->results[0], tt_operand(wait, 0));
            tt_erase_op(wait);
        }
        Builder after = tt_builder_after(p->loop.op);
        Value *result = p->loop.op->results[carried];
        Op *last = tt_build_op(&after, OP_wgmma_wait, &result, 1, &result->type, 1,
                               tt_attr_int(p->module, ATTR_left, 0, NULL));
        last->results[0]->name = result->name;
        tt_replace_all_uses(result, last->results[0]);
        tt_set_operand(last, 0, result);
    }
}

/* ---- places ----------------------------------------------------------------------------------------------------------- */

/* Makes of a product one of what K has before `k`, which it returns, and the rest, which adds to that. */
static Op *split_at(Op *product, int64_t k)
{
    Module *module = product->parent->function->module;
    const Attr *whole = tt_find_attr(product, ATTR_k);
    int64_t part[] = {whole ? whole->ints[0] : 0, k}, rest[] = {k, tt_operand(product, 0)->type->shape[1]};
    Builder b = tt_builder_before(product);
    Value *operands[] = {tt_operand(product, 0), tt_operand(product, 1), tt_operand(product, 2)};
    Op *first = tt_build_op(&b, OP_wgmma, operands, 3, &product->results[0]->type, 1,
                            tt_copy_attrs(module, product->attrs));
    tt_set_attr(first, tt_attr_ints(module, ATTR_k, part, 2, NULL));
    tt_set_attr(product, tt_attr_ints(module, ATTR_k, rest, 2, NULL));
    tt_set_operand(product, 2, first->results[0]);
    return first;
}

static int64_t step_of(const Op *product) { return STEP_BYTES / tt_byte_width(tt_operand(product, 0)->type); }

/* Can the first step go by itself? */
static bool can_split(const Op *product)
{
    const Type *type = tt_operand(product, 0)->type;
    return tt_is_buffer(type) && step_of(product) < type->shape[1] && !tt_find_attr(product, ATTR_k);
}

/* The products of the iteration before have ended, in all threads; `product`, this one's first, goes on. What the rest multiplies
 * has landed, if it has copies of its own. Returns the last operation of the wait. */
static Op *wait_for_earlier(const Pipeline *p, Op *product, Op *rest)
{
    Builder b = tt_builder_after(product);
    b.loc = product->loc;
    Value *sums = product->results[0];
    Op *wait =
        tt_build_op(&b, OP_wgmma_wait, &sums, 1, &sums->type, 1, tt_attr_int(p->module, ATTR_left, 1, NULL));
    if (rest) {
        tt_set_operand(rest, 2, wait->results[0]);
    } else {
        tt_replace_all_uses(sums, wait->results[0]);
        tt_set_operand(wait, 0, sums);
    }
    if (p->groups > 1)
        return tt_build_op(&b, OP_async_wait, NULL, 0, NULL, 0,
                           tt_attr_int(p->module, ATTR_left, pipeline_groups_left(p), NULL));
    return p->is_compact ? tt_build_op(&b, OP_barrier, NULL, 0, NULL, 0, NULL) : wait;
}

/* The first half, with the fragments that were made for it; when what was under way before has ended, whose registers they
 * take, the fragments of the second half are made, while the tensor core is busy. Copies stand behind reads, which would queue
 * behind them: behind those of the second half; or behind those of each half, where it has copies of its own, into the slot
 * whose same half all threads have done with at the barrier before. */
static void halve(Pipeline *p, Op *places[2])
{
    Op *product = tt_operand(p->deferred.data[0], 0)->op;
    Op *first = split_at(product, tt_next_pow2(tt_operand(product, 0)->type->shape[1]) / 2);
    wait_for_earlier(p, first, product);
    pipeline_make_halves(p, first, product);
    places[0] = p->groups > 1 ? first : product;
    places[1] = product;
}

static Op *behind_reads(Op *op)
{
    Op *last = op;
    while (op->opcode == OP_smem_load || op->opcode == OP_smem_view || tt_is_pure(op)) {
        op = op->next;
        last = op->previous->opcode == OP_smem_load ? op : last;
    }
    return last;
}

static bool is_deferred(const Pipeline *p, const Op *product)
{
    for (int i = 0; i < p->deferred.count; i++)
        for (const Op *last = tt_operand(p->deferred.data[i], 0)->op; last; last = product_before(last))
            if (last == product)
                return true;
    return false;
}

/* Takes the rest of a product apart, so that portions of the copies stand between its steps, or behind: in front of these places.
 * Returns how many there are. */
static int spread(Pipeline *p, Op *rest, Op *places[MOST_PORTIONS])
{
    int64_t step = step_of(rest), extent = tt_operand(rest, 0)->type->shape[1];
    int portions = pipeline_count_portions(p, rest, (int)((extent + step - 1) / step));
    places[0] = rest;
    for (int i = 0; i + 1 < portions; i++) {
        bool is_last = (i + 2) * step >= extent;
        if (!is_last) {
            places[i] = split_at(rest, (i + 2) * step);
            tt_set_attr(places[i], tt_attr_int(p->module, ATTR_open, 1, NULL));
        }
        places[i + 1] = is_last ? rest->next : rest;
    }
    return portions;
}

/* The copies for a later iteration stand within the first product of this one: a warpgroup waits to issue the last steps
 * anyway until the tensor core has done the first ones, and then nothing comes between these and the next product; in
 * portions, if they take longer than a step. Behind the whole of it, and what is read from buffers meanwhile, if it is waited for in this iteration: the tensor core is not
 * to run dry. */
static void place_whole(Pipeline *p, Op *places[MOST_PORTIONS])
{
    places[0] = p->inside.before;
    TT_FOR_OPS(op, p->loop.body)
    {
        if (op->opcode != OP_wgmma)
            continue;
        if (!p->is_compact && !is_deferred(p, op)) {
            places[0] = behind_reads(op->next);
            return;
        }
        places[0] = op->next;
        Op *first = can_split(op) ? split_at(op, step_of(op)) : op;
        if (p->is_compact)
            wait_for_earlier(p, first, first == op ? NULL : op);
        if (first != op)
            p->portions = spread(p, op, places);
        return;
    }
}

void pipeline_place_copies(Pipeline *p, Op *places[MOST_PORTIONS])
{
    p->portions = 1;
    if (p->in_halves)
        halve(p, places);
    else
        place_whole(p, places);
}

/* The operation of `region` that `op` is in, or is; NULL: none. */
Op *pipeline_part_of(const Region *region, Op *op)
{
    while (op && op->parent != region)
        op = op->parent->op;
    return op;
}

bool pipeline_comes_before(const Op *op, const Op *other)
{
    while (op && op != other)
        op = op->next;
    return op == other;
}

/* The first operation of the body that something computes with the value in: until then it need not be in registers. */
static Op *first_user(const Pipeline *p, const Value *value)
{
    Op *first = p->loop.yield;
    TT_FOR_USES(use, value)
    {
        Op *part = pipeline_part_of(p->loop.body, use->user);
        if (part && pipeline_comes_before(part, first))
            first = part;
    }
    return first;
}

/* In front of the first user, or of the wait for a product before that: threads read while the tensor core works. */
Op *pipeline_place_of_read(const Pipeline *p, const Value *value)
{
    Op *first = first_user(p, value), *wait = NULL;
    for (Op *op = p->loop.body->first; op != first; op = op->next)
        if (op->opcode == OP_wgmma_wait && !tt_int_attr(op, ATTR_left, 0) &&
            tt_def(tt_operand(op, 0), OP_wgmma))
            wait = op;
    return wait ? wait : first;
}
