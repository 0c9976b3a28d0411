/* Loops that multiply on tensor cores load ahead: what feeds a product goes from global memory into a buffer of several
 * slots some iterations before it is used, by asynchronous copies, or through registers where these do not fit (elements
 * not wide enough, or that lie along another dimension in the buffer; another value than zero where the mask is false):
 * loaded two iterations before, stored one before; or both one before, beside the products, where sums leave too few
 * registers; or, gathered, stored as long before as there are registers in front of the loop. The little that needs no
 * buffer, because it is computed with first, stays in registers from one iteration to the next. Products by multiply-adds
 * of the threads take part if copies feed them: what went through registers would take theirs.
 *
 * With D iterations ahead, iteration i reads slot i mod S and fills slot (i + D) mod S. It begins by waiting for its copies
 * at a barrier, so all threads are done with iteration i - 1, and S = D + 1 suffices; where products of an iteration are
 * still under way at the next one's barrier, those of i - 2 are done, and S = D + 2; or, where that slot more would cost
 * a program on the multiprocessor, the copies come behind a second barrier, at which those of i - 1 are done. Nothing is
 * read that the program does not read, but a load may move in front of a store through another pointer parameter. */
#include "gpu/pipeline.h"

/* ---- copies -------------------------------------------------------------------------------------------------------------------------- */

static Value *slot_of(Builder *b, const Staged *staged, Value *index)
{
    const Type *type = tt_buffer_type(b->module, pipeline_tile_of(b->module, staged->load), 1);
    Op *view = tt_build_op(b, OP_smem_view, (Value *[]){staged->buffer, index}, 2, &type, 1, NULL);
    view->results[0]->layout = staged->layout;
    return view->results[0];
}

static Value *barrier_of(Builder *b, const Pipeline *p, Value *slot)
{
    const Type *type = tt_buffer_type(b->module, tt_slot_type(b->module, p->barriers->type), 1);
    Op *view = tt_build_op(b, OP_smem_view, (Value *[]){p->barriers, slot}, 2, &type, 1, NULL);
    view->results[0]->layout = p->barriers->layout;
    return view->results[0];
}

/* Chunks from the parameter that the pointer begins at to where it points; *param is that parameter. */
static Value *place_behind(Builder *b, Value *pointer, Value **param)
{
    const Type *i64 = tt_scalar_type(b->module, TT_I64), *i32 = tt_scalar_type(b->module, TT_I32);
    int shift = tt_log2(TT_CHUNK) - tt_log2(tt_byte_width(pointer->type->element));
    Value *elements = NULL;
    for (; tt_def(pointer, OP_addptr); pointer = tt_operand(pointer->op, 0)) {
        Value *offset = tt_operand(pointer->op, 1);
        offset = offset->type == i64 ? offset : tt_build_cast(b, OP_ext_s, offset, i64);
        elements = elements ? tt_build2(b, OP_add, elements, offset) : offset;
    }
    *param = pointer;
    if (!elements)
        return tt_build_int(b, i32, 0);
    return tt_build_cast(b, OP_trunc, tt_build2(b, OP_shr_s, elements, tt_build_int(b, i64, shift)), i32);
}

/* The block behind these pointers, by one instruction. */
static void copy_block(Builder *b, const Pipeline *p, const Staged *staged, const Value *pointers,
                       Value *runs, Value *slot)
{
    const Op *block = pointers->op;
    int count = 4 + block->operand_count;
    Value **operands = TT_NEW_ARRAY(p->scratch, Value *, count);
    operands[0] = slot_of(b, staged, slot);
    operands[1] = barrier_of(b, p, slot);
    operands[2] = runs;
    for (int i = 1; i < block->operand_count; i++)
        operands[3 + i] = tt_operand(block, i);
    operands[count - 1] = place_behind(b, tt_operand(block, 0), &operands[3]);
    const Attr *terms = tt_find_attr(block, ATTR_terms);
    tt_build_op(b, OP_tensor_copy, operands, count, NULL, 0,
                tt_attr_ints(b->module, ATTR_terms, terms->ints, terms->count, NULL));
}

/* One thread says how much is to come for the slot. */
static void expect_blocks(Builder *b, const Pipeline *p, Value *runs, Value *slot)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->loads.count; i++) {
        const Type *type = p->loads.data[i].load->results[0]->type;
        bytes += p->loads.data[i].is_block ? type->count * tt_byte_width(type) : 0;
    }
    tt_build_op(b, OP_mbarrier_expect, (Value *[]){barrier_of(b, p, slot), runs}, 2, NULL, 0,
                tt_attr_int(b->module, ATTR_bytes, bytes, NULL));
}

static void copy_async(Builder *b, const Staged *staged, Value *pointer, Value *mask, Value *runs,
                       Value *slot)
{
    const Op *load = staged->load;
    if (!tt_is_tile(pointer->type)) {
        pointer = tt_build_splat(b, pointer, (int64_t[]){1}, 1);
        mask = mask ? tt_build_splat(b, mask, (int64_t[]){1}, 1) : NULL;
    }
    Value *operands[] = {pointer, slot_of(b, staged, slot), pipeline_masked(b, pointer->type, mask, runs)};
    Attr *attrs = tt_copy_attrs(b->module, load->attrs);
    if (staged->is_cached)
        attrs = tt_attr_string(b->module, ATTR_cache, ".ca", attrs);
    if (staged->is_gathered)
        attrs = tt_attr_int(b->module, ATTR_gathered, 1, attrs);
    if (staged->part[2])
        attrs = tt_attr_ints(b->module, ATTR_part, staged->part, 3, attrs);
    tt_remove_attr(tt_build_op(b, OP_async_copy, operands, 3, NULL, 0, attrs), ATTR_unread);
}

/* What the copies of this group are to copy: a half of K where there are two. */
static void choose_half(Pipeline *p, int group)
{
    for (int i = 0; i < p->loads.count && p->groups > 1; i++) {
        Staged *staged = &p->loads.data[i];
        int64_t extent = staged->load->results[0]->type->shape[staged->depth_axis];
        staged->part[0] = staged->depth_axis;
        staged->part[1] = group ? tt_next_pow2(extent) / 2 : 0;
        staged->part[2] = group ? extent : tt_next_pow2(extent) / 2;
    }
}

/* Elements narrower than a word as words, and back: of narrow ones that come out of a branch ptxas puts two into a register,
 * and waits for them there. */
static const Type *bits_of(Module *module, const Type *type)
{
    return tt_scalar_type(module, tt_byte_width(type) == 1 ? TT_I8 : TT_I16);
}

static Value *in_words(Builder *b, Value *tile)
{
    if (tt_byte_width(tile->type) >= 4)
        return tile;
    tile = tt_build_cast(b, OP_bitcast, tile, bits_of(b->module, tile->type));
    return tt_build_cast(b, OP_ext_u, tile, tt_scalar_type(b->module, TT_I32));
}

static Value *from_words(Builder *b, Value *tile, const Type *type)
{
    if (tile->type == type)
        return tile;
    tile = tt_build_cast(b, OP_trunc, tile, bits_of(b->module, type));
    return tt_build_cast(b, OP_bitcast, tile, tt_element(type));
}

/* Loads or copies from these operands where the iteration `runs`: returns what was loaded, or NULL. */
static Value *fetch(Builder *b, const Pipeline *p, const Staged *staged, Value **operands, Value *runs,
                    Value *slot)
{
    if (!staged->is_async)
        return pipeline_repeat(b, staged->load->results[0], operands, runs);
    if (staged->is_block)
        copy_block(b, p, staged, operands[0], runs, slot);
    else
        copy_async(b, staged, operands[0], operands[1], runs, slot);
    return NULL;
}

/* The same in a branch, so that an iteration that there is not costs nothing, and the masks of the others need not ask. What was
 * loaded comes in words, as `otherwise` does, which nothing reads. */
static Value *fetch_if_runs(Builder *b, const Pipeline *p, const Staged *staged, Value **operands,
                            Value *runs, Value *slot, Value *otherwise)
{
    bool loads = otherwise != NULL;
    Op *choice = tt_build_op(b, OP_if, &runs, 1, loads ? &otherwise->type : NULL, loads, NULL);
    Builder then = tt_builder_at_end(choice->regions[0]), rest = tt_builder_at_end(choice->regions[1]);
    then.loc = rest.loc = b->loc;
    Value *loaded = fetch(&then, p, staged, operands, tt_build_int(&then, runs->type, 1), slot);
    loaded = loads ? in_words(&then, loaded) : NULL;
    tt_build_op(&then, OP_yield, &loaded, loads, NULL, 0, NULL);
    tt_build_op(&rest, OP_yield, &otherwise, loads, NULL, 0, NULL);
    return loads ? choice->results[0] : NULL;
}

static void build_effect(Builder *b, Opcode opcode, Attr *attrs)
{
    tt_build_op(b, opcode, NULL, 0, NULL, 0, attrs);
}

static void build_wait(Builder *b, int left)
{
    build_effect(b, OP_async_wait, tt_attr_int(b->module, ATTR_left, left, NULL));
}

static void store_slot(Builder *b, const Staged *staged, Value *tile, Value *slot)
{
    Attr *attrs = staged->proxy ? tt_attr_int(b->module, ATTR_proxy, 1, NULL) : NULL;
    tile = from_words(b, tile, pipeline_tile_of(b->module, staged->load));
    tt_build_op(b, OP_smem_store, (Value *[]){tile, slot_of(b, staged, slot)}, 2, NULL, 0, attrs);
}

/* What was gathered, in a branch: ptxas waits for what it moves across a barrier, but moves nothing across a branch. */
static void store_if_runs(Builder *b, const Staged *staged, Value *tile, Value *slot, Value *runs)
{
    Op *choice = tt_build_op(b, OP_if, &runs, 1, NULL, 0, NULL);
    Builder then = tt_builder_at_end(choice->regions[0]), rest = tt_builder_at_end(choice->regions[1]);
    then.loc = rest.loc = b->loc;
    store_slot(&then, staged, tile, slot);
    tt_build_op(&then, OP_yield, NULL, 0, NULL, 0, NULL);
    tt_build_op(&rest, OP_yield, NULL, 0, NULL, 0, NULL);
}

/* ---- before the loop ------------------------------------------------------------------------------------------------------------------ */

static void allocate(Pipeline *p, Staged *staged)
{
    const Type *type = tt_buffer_type(p->module, pipeline_tile_of(p->module, staged->load), p->slots);
    Builder b = p->before;
    b.loc = staged->load->loc;
    Op *alloc = tt_build_op(&b, OP_smem_alloc, NULL, 0, &type, 1, NULL);
    staged->buffer = alloc->results[0];
    staged->buffer->layout = staged->layout;
    staged->buffer->name = staged->load->results[0]->name;
}

/* Each time that the loop begins, its barriers do. */
static void make_barriers(Pipeline *p)
{
    bool any = false;
    for (int i = 0; i < p->loads.count; i++)
        any |= p->loads.data[i].is_block;
    p->barriers = NULL;
    if (!any)
        return;
    const Type *tile = tt_tile_type(p->module, tt_scalar_type(p->module, TT_I64), (int64_t[]){1}, 1);
    const Type *type = tt_buffer_type(p->module, tile, p->slots);
    p->before.loc = p->loop.op->loc;
    p->barriers = tt_build_op(&p->before, OP_smem_alloc, NULL, 0, &type, 1, NULL)->results[0];
    p->barriers->layout = tt_buffer_layout(p->module, tile, 0);
    tt_build_op(&p->before, OP_mbarrier_init, &p->barriers, 1, NULL, 0, NULL);
}

/* In words, what stands for an iteration that there is not. */
static Value *no_words(Builder *b, const Type *type)
{
    if (tt_byte_width(type) < 4)
        type = tt_with_element(b->module, type, tt_scalar_type(b->module, TT_I32));
    Value *value = tt_is_float(type) ? tt_build_float(b, type, 0) : tt_build_int(b, type, 0);
    tt_set_attr(value->op, tt_attr_int(b->module, ATTR_unread, 1, NULL));
    return value;
}

/* The load of one of the first `distance` iterations; NULL if it is a copy. */
static Value *load_before(Pipeline *p, Staged *staged, int iteration)
{
    Builder *b = &p->before;
    Value *operands[3] = {0}, *runs = pipeline_runs_before(p, iteration);
    Value *slot = tt_build_int(b, tt_scalar_type(p->module, TT_I32), iteration);
    b->loc = staged->load->loc;
    for (int j = 0; j < staged->load->operand_count; j++)
        operands[j] = pipeline_value_before(p, staged->ahead, tt_operand(staged->load, j), iteration);
    if (!staged->is_gathered)
        return fetch(b, p, staged, operands, runs, slot);
    Value *otherwise = staged->is_async ? NULL : no_words(b, staged->load->results[0]->type);
    return fetch_if_runs(b, p, staged, operands, runs, slot, otherwise);
}

/* May a load come in front of it? */
static bool lets_loads_pass(const Op *op)
{
    return op->opcode == OP_smem_alloc || !(tt_has_effects(op) || tt_writes_memory(op) || op->region_count);
}

/* In front of it loads that stand before the loop may come. */
static Op *where_loads_may_begin(Op *loop)
{
    Op *first = loop;
    while (first->previous && lets_loads_pass(first->previous))
        first = first->previous;
    return first;
}

static bool stands_from(const Value *value, const Op *first)
{
    return value->op && value->op->parent == first->parent && pipeline_comes_before(first, value->op);
}

/* Can the value be made in front of `first`? `known` has what was found: the value itself, or the map where it cannot. */
static bool can_move_up(const Value *value, const Op *first, Map *known)
{
    const Op *op = value->op;
    if (!stands_from(value, first))
        return true;
    void **slot = tt_map_slot_ptr(known, value);
    if (*slot)
        return *slot == value;
    bool can = (tt_is_pure(op) || tt_is_plain_load(op)) && !op->region_count;
    for (int i = 0; can && i < op->operand_count; i++)
        can = can_move_up(tt_operand(op, i), first, known);
    *tt_map_slot_ptr(known, value) = can ? (void *)value : known;
    return can;
}

/* Makes it there; what stands at `first` already stays, and `first` is behind it. */
static void move_up(const Value *value, Op **first)
{
    if (!stands_from(value, *first))
        return;
    for (int i = 0; i < value->op->operand_count; i++)
        move_up(tt_operand(value->op, i), first);
    if (value->op == *first)
        *first = value->op->next;
    else
        tt_move_before(value->op, *first);
}

/* What leads to loads, for all iterations that begin before the loop: so that none waits for it while others could be under
 * way. It is on its way while the program computes what else it does before the loop: rows of an image, by divisions. */
static void look_up_before(Pipeline *p)
{
    Ahead *views[] = {&p->near, &p->far};
    Op *first = where_loads_may_begin(p->loop.op);
    Map known = {.arena = p->scratch};
    for (int i = 0; i < p->leading.count; i++)
        for (int v = 0; v < (int)TT_COUNT(views); v++)
            for (int d = 0; d <= views[v]->distance; d++) {
                const Value *found = pipeline_value_before(p, views[v], p->leading.data[i]->results[0], d);
                if (can_move_up(found, first, &known))
                    move_up(found, &first);
            }
}

static void store_before(Pipeline *p, const Staged *staged, Value *tile, int iteration)
{
    Value *slot = tt_build_int(&p->before, tt_scalar_type(p->module, TT_I32), iteration);
    if (iteration)
        store_if_runs(&p->before, staged, tile, slot, pipeline_runs_before(p, iteration));
    else
        store_slot(&p->before, staged, tile, slot);
}

static void copy_before(Pipeline *p, int iteration)
{
    Value *slot = tt_build_int(&p->before, tt_scalar_type(p->module, TT_I32), iteration);
    for (int group = 0; group < p->groups; group++) {
        choose_half(p, group);
        if (p->barriers)
            expect_blocks(&p->before, p, pipeline_runs_before(p, iteration), slot);
        for (int i = 0; i < p->loads.count; i++)
            if (p->loads.data[i].is_async)
                load_before(p, &p->loads.data[i], iteration);
        build_effect(&p->before, OP_async_commit, NULL);
    }
}

/* Copies for as many iterations as there are slots to fill; loads for those that are stored before the loop, as a rule the
 * first one, and for one more, which stay in registers. All are under way before the first is waited for, iteration by
 * iteration: behind the copies of all of them the first loads waited until these were issued, and the first product for them. */
static void fill_slots(Pipeline *p)
{
    int count = p->loads.count;
    Value **first = TT_NEW_ARRAY(p->scratch, Value *, (p->stored + 1) * count); /* iteration by iteration */
    look_up_before(p);
    for (int d = 0; d < p->distance || d <= p->stored; d++) {
        if (d < p->distance)
            copy_before(p, d);
        for (int i = 0; i < count && d <= p->stored; i++)
            if (p->loads.data[i].ahead == &p->near || (!d && !p->loads.data[i].is_async))
                first[d * count + i] = load_before(p, &p->loads.data[i], d);
    }
    for (int i = 0; i < count; i++) {
        Staged *staged = &p->loads.data[i];
        if (!staged->is_async && !staged->is_direct)
            staged->carried = tt_add_carried(&p->loop, first[(staged->is_kept ? 0 : p->stored * count) + i]);
    }
    for (int d = 0; d < p->stored; d++)
        for (int i = 0; i < count; i++)
            if (p->loads.data[i].ahead == &p->near || (!d && p->loads.data[i].is_direct))
                store_before(p, &p->loads.data[i], first[d * count + i], d);
}

/* ---- in the loop -------------------------------------------------------------------------------------------------------------------------- */

/* A carried number of a slot: the one it begins with, and the next one after it. */
static Value *carry_slot(Pipeline *p, int first, Value **next)
{
    const Type *i32 = tt_scalar_type(p->module, TT_I32);
    int carried = tt_add_carried(&p->loop, tt_build_int(&p->before, i32, first));
    Builder *b = &p->inside;
    Value *slot = tt_carried(&p->loop, carried);
    Value *after = tt_build2(b, OP_add, slot, tt_build_int(b, i32, 1));
    Value *wraps = tt_build2(b, OP_eq, after, tt_build_int(b, i32, p->slots));
    *next = tt_build3(b, OP_select, wraps, tt_build_int(b, i32, 0), after);
    tt_set_operand(p->loop.yield, carried, *next);
    return slot;
}

/* Blocks of this iteration have arrived. A barrier's phase ends with each round of the slots. */
static void wait_for_blocks(Pipeline *p, Value *slot, Value *next_slot)
{
    Builder *b = &p->inside;
    if (!p->barriers)
        return;
    Value *none = tt_build_int(b, slot->type, 0), *one = tt_build_int(b, slot->type, 1);
    int carried = tt_add_carried(&p->loop, tt_build_int(&p->before, slot->type, 0));
    Value *phase = tt_carried(&p->loop, carried), *begins_again = tt_build2(b, OP_eq, next_slot, none);
    Value *other = tt_build2(b, OP_xor, phase, one);
    tt_set_operand(p->loop.yield, carried, tt_build3(b, OP_select, begins_again, other, phase));
    tt_build_op(b, OP_mbarrier_wait, (Value *[]){barrier_of(b, p, slot), phase}, 2, NULL, 0, NULL);
}

static void use_slot(Pipeline *p, Staged *staged, Value *slot)
{
    Op *load = staged->load;
    if (staged->is_kept) {
        staged->read = tt_carried(&p->loop, staged->carried);
        tt_replace_all_uses(load->results[0], staged->read);
        return;
    }
    Value *read_from = slot_of(&p->inside, staged, slot);
    TT_FOR_USES_SAFE(use, load->results[0])
    {
        if (use->user->opcode != OP_smem_alloc || use->user->results[0]->layout != staged->layout)
            continue;
        Op *alloc = use->user;
        tt_replace_all_uses(alloc->results[0], read_from);
        tt_erase_op(alloc);
    }
    if (!tt_has_uses(load->results[0]))
        return;
    Builder b = tt_builder_before(pipeline_place_of_read(p, load->results[0]));
    b.loc = load->loc;
    const Type *type = pipeline_tile_of(p->module, load);
    Op *read = tt_build_op(&b, OP_smem_load, &read_from, 1, &type, 1, NULL);
    if (type != load->results[0]->type) {
        Value *operands[] = {read->results[0], tt_build_int(&b, tt_scalar_type(p->module, TT_I32), 0)};
        Attr *axis = tt_attr_int(p->module, ATTR_axis, 0, NULL);
        read = tt_build_op(&b, OP_extract, operands, 2, &load->results[0]->type, 1, axis);
    }
    staged->read = read->results[0];
    staged->read->name = load->results[0]->name;
    tt_replace_all_uses(load->results[0], staged->read);
}

/* Is it what the load gave in the iteration before (load_windows.c)? */
static bool loaded_before(const Pipeline *p, const Staged *staged, const Value *value)
{
    int carried = tt_carried_index(&p->loop, value);
    const Value *next = carried < 0 ? NULL : tt_next(&p->loop, carried);
    return next && staged->is_kept && (next == staged->load->results[0] || next == staged->read);
}

/* What the load a few iterations on reads, and where; nothing if all iterations are under way before the loop. */
static void prepare(Pipeline *p, Staged *staged)
{
    Builder *b = &p->inside;
    staged->runs = NULL;
    if (staged->ahead->distance >= p->trips)
        return;
    b->loc = staged->load->loc;
    for (int j = 0; j < staged->load->operand_count; j++)
        staged->operands[j] = loaded_before(p, staged, tt_operand(staged->load, j))
                                  ? tt_carried(&p->loop, staged->carried)
                                  : pipeline_value_ahead(p, staged->ahead, tt_operand(staged->load, j));
    staged->runs = pipeline_runs_ahead(p, staged->ahead->distance);
}

/* A value for the load that the program has, `distance` iterations on; carried if the loop changes it. */
static Value *carry_way(Pipeline *p, Value *value)
{
    if (!tt_is_in_loop(&p->loop, value))
        return value;
    Way way = {value, tt_add_carried(&p->loop, pipeline_value_before(p, &p->far, value, p->distance))};
    tt_push(p->scratch, p->ways, way);
    return tt_carried(&p->loop, way.carried);
}

/* Is what the copy needs better computed by the iteration before, while its product is under way? What this one computes in front of
 * its product for copies behind the first step, ptxas puts behind that step, and the rest of the product waits: where no other
 * program's products fill the gap, and it is long, the tensor core runs dry. */
static bool comes_by_way(const Pipeline *p, const Staged *staged)
{
    return staged->is_async && !staged->is_block && p->is_alone && p->distance < p->trips &&
           pipeline_has_long_way(p, staged->load);
}

static void prepare_before(Pipeline *p, Staged *staged)
{
    p->inside.loc = staged->load->loc;
    for (int j = 0; j < staged->load->operand_count; j++)
        staged->operands[j] = carry_way(p, tt_operand(staged->load, j));
    staged->runs = pipeline_runs_ahead(p, p->distance);
}

static void advance_ways(Pipeline *p)
{
    for (int i = 0; i < p->ways.count; i++)
        tt_set_operand(p->loop.yield, p->ways.data[i].carried,
                       pipeline_value_ahead(p, &p->behind_far, p->ways.data[i].value));
}

static void load_ahead(Pipeline *p, Staged *staged, Value *slot)
{
    Builder *b = &p->inside;
    b->loc = staged->load->loc;
    Value *now = staged->is_async ? NULL : tt_carried(&p->loop, staged->carried);
    Value *loaded = !staged->runs ? now
                    : staged->is_gathered
                        ? fetch_if_runs(b, p, staged, staged->operands, staged->runs, slot, now)
                        : fetch(b, p, staged, staged->operands, staged->runs, slot);
    if (!staged->is_async)
        tt_set_operand(p->loop.yield, staged->carried, loaded);
}

static void load_directly(Pipeline *p, Staged *staged, Value *slot)
{
    if (!staged->runs)
        return;
    p->inside.loc = staged->load->loc;
    store_slot(&p->inside, staged, fetch(&p->inside, p, staged, staged->operands, staged->runs, NULL), slot);
}

/* Behind the products' beginning? */
static bool comes_late(const Pipeline *p, int load)
{
    return p->loads.data[load].ahead == &p->near || p->loads.data[load].is_direct;
}

/* In front of what the iteration computes for its products? Behind them it would be waited for as soon as the next iteration
 * computes. */
static bool comes_early(const Pipeline *p, int load)
{
    return p->computed.count && p->loads.data[load].is_kept;
}

/* What leads to loads through registers: in front of copies and products, so that it is there when they begin; the loads
 * themselves leave no registers to carry it from the iteration before. */
static void look_up_near(Pipeline *p)
{
    bool any = false;
    for (int i = 0; i < p->loads.count; i++)
        any |= p->loads.data[i].ahead == &p->near;
    for (int i = 0; i < p->leading.count && any; i++)
        pipeline_value_ahead(p, &p->near, p->leading.data[i]->results[0]);
}

static void store_carried(Pipeline *p, const Staged *staged, Value *slot)
{
    Value *tile = tt_carried(&p->loop, staged->carried);
    if (staged->is_gathered)
        store_if_runs(&p->inside, staged, tile, slot, pipeline_runs_ahead(p, p->stored));
    else
        store_slot(&p->inside, staged, tile, slot);
}

static void rewrite_body(Pipeline *p)
{
    Value *next_read, *next_write;
    Op *places[MOST_PORTIONS];
    p->inside = tt_builder_before(p->loop.body->first);
    p->inside.loc = p->loop.op->loc;
    Value *read = carry_slot(p, 0, &next_read), *write = carry_slot(p, p->distance, &next_write);
    Value *next_stored, *stored = p->stored == 1             ? next_read
                                  : p->stored == p->distance ? write
                                                             : carry_slot(p, p->stored, &next_stored);
    bool is_busy = p->deferred.count; /* with the products of the iteration before */
    for (int i = 0; is_busy && i < p->loads.count; i++)
        if (comes_by_way(p, &p->loads.data[i]))
            prepare_before(p, &p->loads.data[i]);
        else if (!comes_late(p, i)) /* what is in registers is to leave them first */
            prepare(p, &p->loads.data[i]);
    wait_for_blocks(p, read, next_read);
    build_wait(&p->inside, pipeline_groups_left(p));
    for (int i = 0; i < p->loads.count; i++)
        use_slot(p, &p->loads.data[i], read);
    for (int i = 0; i < p->loads.count; i++)
        if (comes_early(p, i))
            load_ahead(p, &p->loads.data[i], NULL);
    pipeline_rewrite_computed(p);
    pipeline_place_copies(p, places);
    p->inside.before = places[0];
    for (int i = 0; !is_busy && i < p->loads.count; i++)
        if (!comes_late(p, i))
            prepare(p, &p->loads.data[i]);
    for (int i = 0; i < p->loads.count; i++)
        if (p->loads.data[i].ahead == &p->near)
            store_carried(p, &p->loads.data[i], stored);
    look_up_near(p);
    for (int group = 0; group < p->groups; group++) {
        choose_half(p, group);
        p->inside.before = places[group];
        if (p->barriers && p->distance < p->trips)
            expect_blocks(&p->inside, p, pipeline_runs_ahead(p, p->distance), write);
        for (int portion = 0; portion < p->portions; portion++) {
            p->inside.before = places[group + portion];
            for (int i = 0; i < p->loads.count; i++)
                if (p->loads.data[i].is_async && pipeline_choose_portion(p, &p->loads.data[i], portion))
                    load_ahead(p, &p->loads.data[i], write);
        }
        build_effect(&p->inside, OP_async_commit, NULL);
    }
    if (p->inside.before->opcode == OP_wgmma) /* loads into registers take longer to issue */
        p->inside.before = p->inside.before->next;
    advance_ways(p);
    for (int i = 0; i < p->loads.count; i++)
        if (comes_late(p, i))
            prepare(p, &p->loads.data[i]);
    for (int i = 0; i < p->loads.count; i++)
        if (p->loads.data[i].is_direct)
            load_directly(p, &p->loads.data[i], next_read);
        else if (!p->loads.data[i].is_async && !comes_early(p, i))
            load_ahead(p, &p->loads.data[i], write);
    pipeline_look_up(p, &p->far);
    pipeline_look_up(p, &p->near);
    pipeline_advance_carried(p, &p->behind_far);
    pipeline_advance_carried(p, &p->behind_near);
    pipeline_advance_carried(p, &p->far);
    pipeline_advance_carried(p, &p->near);
    pipeline_advance_carried(p, &p->next);
    for (int i = 0; i < p->loads.count; i++)
        if (!tt_has_uses(p->loads.data[i].load->results[0]))
            tt_erase_op(p->loads.data[i].load);
}

/* Nothing reads what was copied for iterations that there are not; what reuses its places waits at barriers of its own,
 * if it is not this loop again. */
static void wait_behind(Pipeline *p)
{
    Builder after = tt_builder_after(p->loop.op);
    const Op *around = p->loop.op->parent->op;
    while (around && !tt_is_loop(around))
        around = around->parent->op;
    Attr *alone = around || p->barriers ? NULL : tt_attr_int(p->module, ATTR_alone, 1, NULL);
    build_effect(&after, OP_async_wait, tt_attr_int(p->module, ATTR_left, 0, alone));
    if (p->barriers)
        tt_build_op(&after, OP_mbarrier_end, &p->barriers, 1, NULL, 0, NULL);
}

/* ---- one loop ------------------------------------------------------------------------------------------------------------------------------ */

static bool pipeline_loop(Op *op, void *context)
{
    Pipeline *p = context;
    p->trips = tt_most_trips(op);
    p->deferred.count = p->deferrable.count = p->computed.count = p->leading.count = p->ways.count = 0;
    pipeline_find_loads_of_products(p, op);
    pipeline_find_asked_loads(p);
    bool any = false;
    for (int i = 0; i < p->loads.count; i++)
        any |= !p->loads.data[i].is_kept;
    if (!any)
        return false;
    pipeline_find_other_loads(p);
    pipeline_choose_direct(p);
    pipeline_find_deferred(p);
    pipeline_choose_distance(p);
    if (p->distance < 1)
        return false;
    p->module->ahead = TT_MAX(p->module->ahead, p->distance);
    p->before = tt_builder_before(op);
    p->far = pipeline_new_ahead(p, p->distance);
    p->near = pipeline_new_ahead(p, p->stored + 1);
    p->next = pipeline_new_ahead(p, 1);
    p->behind_far = pipeline_new_ahead(p, p->distance + 1);
    p->behind_near = pipeline_new_ahead(p, p->stored + 2);
    p->far.further = &p->behind_far;
    p->near.further = &p->behind_near;
    for (int i = 0; i < p->loads.count; i++) {
        Staged *staged = &p->loads.data[i];
        staged->ahead = staged->is_async                       ? &p->far
                        : staged->is_kept || staged->is_direct ? &p->next
                                                               : &p->near;
        if (!staged->is_kept)
            allocate(p, staged);
    }
    make_barriers(p);
    fill_slots(p);
    rewrite_body(p);
    wait_behind(p);
    pipeline_defer_waits(p);
    return true;
}

static void analyze(Pipeline *p)
{
    p->axis_infos = tt_analyze_axis_info(p->module->functions, p->scratch);
    p->pointers = tt_analyze_param_pointers(p->module->functions, p->scratch);
}

static void find_work(Op *op, void *found)
{
    *(bool *)found |= tt_is_loop(op) || op->opcode == OP_block_pointers;
}

bool tt_gpu_pipeline(Module *module, const GpuOptions *options, Arena *scratch)
{
    bool any = false;
    tt_walk(module->functions->body, find_work, &any);
    if (!any)
        return false;
    Pipeline p = {.module = module, .options = options, .scratch = scratch, .moved = {.arena = scratch}};
    bool changed = false;
    analyze(&p);
    if (pipeline_give_up_blocks(&p)) {
        changed = tt_opt_run_pass(module, PASS_expand_blocks);
        tt_simplify(module);
        tt_opt_run_pass(module, PASS_licm);
        analyze(&p);
    }
    if (tt_change_loops(module->functions->body, pipeline_leave_branches, &p)) {
        changed = true;
        analyze(&p);
    }
    changed |= tt_change_loops(module->functions->body, pipeline_loop, &p);
    if (tt_settle_blocks(module->functions,
                         0)) /* what there was no memory for; and what is not read any more */
        changed |= tt_opt_run_pass(module, PASS_expand_blocks);
    if (!changed)
        return false;
    tt_simplify(module);
    tt_walk(module->functions->body, pipeline_simplify_pointers, &p);
    tt_opt_run_pass(module, PASS_cse);
    tt_opt_run_pass(module, PASS_dce);
    return true;
}
