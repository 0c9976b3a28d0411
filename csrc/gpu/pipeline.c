/* Loops that multiply on tensor cores load ahead: what feeds a product goes from global memory into a buffer of several
 * slots some iterations before it is used, by asynchronous copies, or through registers where these do not fit (elements
 * not wide enough, or that lie along another dimension in the buffer; another value than zero where the mask is false):
 * loaded two iterations before, stored one before. The little that needs no buffer, because it is computed with first,
 * stays in registers from one iteration to the next. Products by multiply-adds of the threads take part if copies feed
 * them: what went through registers would take theirs.
 *
 * With D iterations ahead, iteration i reads slot i mod S and fills slot (i + D) mod S. It begins by waiting for its copies
 * at a barrier, so all threads are done with iteration i - 1, and S = D + 1 suffices; where products of an iteration are
 * still under way at the next one's barrier, those of i - 2 are done, and S = D + 2; or, where that slot more would cost
 * a program on the multiprocessor, the copies come behind a second barrier, at which those of i - 1 are done. Nothing is read that the program does
 * not read, but a load may move in front of a store through another pointer parameter. */
#include "gpu/passes.h"
#include "opt/pass.h"

/* A view of the loop's values some iterations ahead. */
typedef struct Ahead {
    int distance;
    Map inside;  /* Value* -> its value that many iterations on, for use in the loop */
    Map *before; /* for each iteration up to `distance`: Value* -> its value there, before the loop */
    TT_VECTOR(int) carried, copies; /* carried values that are also carried ahead, and as which */
} Ahead;

typedef struct Staged {
    Op *load;
    Ahead *ahead;
    bool is_async, is_kept; /* kept: without a buffer */
    bool is_factor, proxy;  /* factor: of multiply-adds; proxy: wgmma reads the buffer */
    Value *buffer;          /* all slots */
    Value *read;            /* takes the load's place in the loop, or NULL */
    int carried; /* through registers: as which value of the loop goes what the next slot is to hold, or what is kept */
    const LinearLayout *layout;
} Staged;

typedef struct Pipeline {
    Module *module;
    const GpuOptions *options;
    Arena *scratch;
    AxisInfos *axis_infos;
    const ParamPointers *pointers;
    Loop loop;
    Builder before, inside;
    int distance, slots;
    bool is_compact;    /* S = D + 1 although products stay under way */
    int64_t kept_bytes; /* of each thread's registers */
    Ahead far, near, next;
    TT_VECTOR(Staged) loads;
    TT_VECTOR(Op *) deferred; /* waits for products whose sums the next iteration adds to */
} Pipeline;

/* ---- which loads ----------------------------------------------------------------------------------------------------------------- */

static bool is_inside(const Pipeline *p, const Value *value)
{
    return !tt_is_defined_outside(value, p->loop.body);
}

static int carried_index(const Pipeline *p, const Value *value)
{
    return value->region == p->loop.first && value->index >= p->loop.arg ? value->index - p->loop.arg : -1;
}

static bool reads_what_stays(const Pipeline *p, const Op *op)
{
    if (op->opcode != OP_load || !tt_is_plain_load(op))
        return false;
    int param = tt_pointer_param(p->pointers, tt_operand(op, 0));
    return !tt_writes_memory(p->loop.op) || (param >= 0 && !p->pointers->stored[param]);
}

/* Is the value computed from the loop's index and what it carries, without the loop's products? */
static bool is_computable(const Pipeline *p, const Value *value, Map *asked)
{
    if (!is_inside(p, value))
        return true;
    void **slot = tt_map_slot_ptr(asked, value);
    if (*slot)
        return *slot == value;
    *slot = (void *)value;
    bool can = true;
    if (!value->op) {
        int carried = carried_index(p, value);
        can = carried < 0 || is_computable(p, tt_next(&p->loop, carried), asked);
    } else {
        can = !value->op->region_count && value->op->parent == p->loop.body &&
              (tt_is_pure(value->op) || reads_what_stays(p, value->op)) &&
              !(tt_is_costly(value->op) && tt_is_tile(value->type));
        for (int i = 0; can && i < value->op->operand_count; i++)
            can = is_computable(p, tt_operand(value->op, i), asked);
    }
    if (!can)
        *tt_map_slot_ptr(asked, value) = asked;
    return can;
}

static bool can_move(const Pipeline *p, const Op *load)
{
    Map asked = {.arena = p->scratch};
    bool can = reads_what_stays(p, load);
    for (int i = 0; can && i < load->operand_count; i++)
        can = is_computable(p, tt_operand(load, i), &asked);
    return can;
}

/* Bytes that are neighbours in global memory under one mask: 4, 8 or 16 for asynchronous copies. */
static int64_t copied_bytes(const Pipeline *p, const Op *load, int axis)
{
    const AxisInfo *info = tt_axis_info(p->axis_infos, tt_operand(load, 0));
    int bytes = tt_byte_width(load->results[0]->type);
    int64_t elements = TT_MIN(info->contiguity[axis], info->divisibility[axis] / bytes);
    if (load->operand_count > 1)
        elements = TT_MIN(elements, tt_axis_info(p->axis_infos, tt_operand(load, 1))->constancy[axis]);
    int64_t extent = load->results[0]->type->shape[axis];
    elements = TT_MIN(elements, extent & -extent); /* no copy goes beyond the shape */
    while (elements > 0 && !tt_is_pow2(elements))
        elements &= elements - 1;
    return TT_MIN(elements * bytes, 16);
}

static bool gives_zeros(const Op *load)
{
    double zero;
    int64_t none;
    return load->operand_count < 3 || (tt_constant_float(tt_operand(load, 2), &zero) && zero == 0) ||
           (tt_constant_int(tt_operand(load, 2), &none) && none == 0);
}

/* Do multiply-adds of the threads read the buffer? */
static bool is_factor(const Value *buffer)
{
    TT_FOR_USES(use, buffer)
    {
        const Op *user = use->user;
        if (user->opcode == OP_smem_permute ? is_factor(user->results[0])
                                            : user->opcode == OP_dot && !tt_is_on_tensor_cores(user))
            return true;
    }
    return false;
}

/* Elements that lie along another dimension in the buffer are copied one by one, if at all: of some bytes, for products
 * that need all registers for themselves. */
static bool can_be_async(const Pipeline *p, const Staged *staged)
{
    const Op *load = staged->load;
    int axis = tt_buffer_axis(staged->layout), bytes = tt_byte_width(load->results[0]->type);
    if (p->options->sm < 80 || !gives_zeros(load) || tt_is_bool(load->results[0]->type))
        return false;
    return axis == tt_fastest_axis(p->axis_infos, load) ? copied_bytes(p, load, axis) >= 4
                                                        : staged->is_factor && bytes >= 4;
}

/* The buffer made of just this load, or NULL: then the elements are first computed with. */
static Op *buffer_of(const Op *load)
{
    TT_FOR_USES(use, load->results[0])
    if (use->user->opcode == OP_smem_alloc)
        return use->user;
    return NULL;
}

/* Is it little enough to keep? */
static bool keep(Pipeline *p, const Type *type)
{
    enum { MOST_BYTES = 64 };
    int64_t threads = (int64_t)TT_LANES * p->options->num_warps;
    int64_t bytes = TT_MAX(1, type->count / threads) * tt_byte_width(type);
    if (p->kept_bytes + bytes > MOST_BYTES)
        return false;
    p->kept_bytes += bytes;
    return true;
}

/* What is loaded as a tile: a number is a tile of one element. */
static const Type *tile_of(Module *module, const Op *load)
{
    const Type *type = load->results[0]->type;
    return tt_is_tile(type) ? type : tt_tile_type(module, type, (int64_t[]){1}, 1);
}

/* A number of 4 or 8 bytes is copied like a tile, so that it can be as many iterations ahead; a register that is carried
 * from one iteration to the next is waited for when it is moved. */
static void add_number(Pipeline *p, Staged *staged)
{
    const Type *type = staged->load->results[0]->type;
    staged->layout = tt_buffer_layout(p->module, tile_of(p->module, staged->load), 0);
    staged->is_async = p->options->sm >= 80 && gives_zeros(staged->load) && tt_byte_width(type) >= 4;
    staged->is_kept = !staged->is_async;
    if (staged->is_async || keep(p, type))
        tt_push(p->scratch, p->loads, *staged);
}

static void add_load(Pipeline *p, Op *load)
{
    for (int i = 0; i < p->loads.count; i++)
        if (p->loads.data[i].load == load)
            return;
    if (!can_move(p, load))
        return;
    const Op *alloc = buffer_of(load);
    Staged staged = {.load = load};
    if (!tt_is_tile(load->results[0]->type)) {
        add_number(p, &staged);
        return;
    }
    staged.layout =
        alloc ? alloc->results[0]->layout
              : tt_buffer_layout(p->module, load->results[0]->type, tt_fastest_axis(p->axis_infos, load));
    staged.proxy = alloc && tt_find_attr(alloc, ATTR_proxy);
    staged.is_factor = alloc && is_factor(alloc->results[0]);
    staged.is_async = can_be_async(p, &staged);
    staged.is_kept = !alloc && !staged.is_async;
    bool fits = staged.is_kept ? keep(p, load->results[0]->type) : staged.is_async || !staged.is_factor;
    if (fits)
        tt_push(p->scratch, p->loads, staged);
}

/* The loads of this loop's body that `value` is made of. */
static void find_loads(Pipeline *p, const Value *value, Map *seen)
{
    Op *op = value->op;
    if (!op || op->parent != p->loop.body || tt_map_find_ptr(seen, op))
        return;
    *tt_map_slot_ptr(seen, op) = op;
    if (op->opcode == OP_load)
        add_load(p, op);
    if (op->opcode != OP_smem_alloc && op->opcode != OP_smem_permute &&
        !tt_has(op, ELEMENTWISE | SHAPE | ONE_LAYOUT))
        return;
    if (op->opcode == OP_wgmma_wait)
        return;
    for (int i = 0; i < op->operand_count; i++)
        if (!tt_is_ptr(tt_operand(op, i)->type))
            find_loads(p, tt_operand(op, i), seen);
}

/* ---- values some iterations ahead ------------------------------------------------------------------------------------------------- */

/* i1: is there an iteration `distance` after the one with this index? `rest` is upper - index, which is positive: as
 * unsigned it is right even where it does not fit. */
static Value *goes_on(const Pipeline *p, Builder *b, Value *rest, int distance)
{
    Value *steps = tt_build2(b, OP_mul, tt_operand(p->loop.op, 2), tt_build_int(b, rest->type, distance));
    return tt_build2(b, OP_lt_u, steps, rest);
}

/* i1: does the loop come to this iteration? */
static Value *runs_before(Pipeline *p, int iteration)
{
    Builder *b = &p->before;
    Value *lower = tt_operand(p->loop.op, 0), *upper = tt_operand(p->loop.op, 1);
    Value *begins = tt_build2(b, OP_lt_s, lower, upper);
    if (!iteration)
        return begins;
    return tt_build2(b, OP_and, begins, goes_on(p, b, tt_build2(b, OP_sub, upper, lower), iteration));
}

static Value *runs_ahead(Pipeline *p, int distance)
{
    Builder *b = &p->inside;
    return goes_on(p, b, tt_build2(b, OP_sub, tt_operand(p->loop.op, 1), p->loop.body->args[0]), distance);
}

/* The mask, and `runs` for all elements. */
static Value *masked(Builder *b, const Type *type, Value *mask, Value *runs)
{
    Value *all = tt_is_tile(type) ? tt_build_splat(b, runs, type->shape, type->rank) : runs;
    return mask ? tt_build2(b, OP_and, mask, all) : all;
}

/* The operation on other operands; a load where the iteration `runs`. */
static Value *repeat(Builder *b, const Op *op, Value **operands, Value *runs)
{
    Value *all[3] = {0};
    int count = op->operand_count;
    if (op->opcode == OP_load) {
        memcpy(all, operands, sizeof(Value *) * (size_t)count);
        all[1] = masked(b, all[0]->type, all[1], runs);
        operands = all;
        count = TT_MAX(2, count);
    }
    const Type *type = op->results[0]->type;
    Attr *attrs = tt_copy_attrs(b->module, op->attrs);
    if (op->opcode != OP_load)
        return tt_build(b, op->opcode, operands, count, type, attrs);
    Op *copy = tt_build_op(b, op->opcode, operands, count, &type, 1, attrs);
    copy->results[0]->name = op->results[0]->name;
    return copy->results[0];
}

/* What a slot holds is of this iteration only: for another one the program's load is repeated. */
static Value *as_loaded(const Pipeline *p, Value *value)
{
    for (int i = 0; i < p->loads.count; i++)
        if (p->loads.data[i].read == value)
            return p->loads.data[i].load->results[0];
    return value;
}

static Value *value_before(Pipeline *p, Ahead *a, Value *value, int iteration)
{
    value = as_loaded(p, value);
    if (!is_inside(p, value))
        return value;
    void **slot = tt_map_slot_ptr(&a->before[iteration], value);
    if (*slot)
        return *slot;
    Builder *b = &p->before;
    Value *result;
    int carried = value->op ? -1 : carried_index(p, value);
    if (carried >= 0) {
        result = iteration ? value_before(p, a, tt_next(&p->loop, carried), iteration - 1)
                           : tt_init(&p->loop, carried);
    } else if (!value->op) {
        Value *step = tt_operand(p->loop.op, 2);
        result = tt_operand(p->loop.op, 0);
        for (int i = 0; i < iteration; i++)
            result = tt_build2(b, OP_add, result, step);
    } else {
        Value **operands = TT_NEW_ARRAY(p->scratch, Value *, value->op->operand_count);
        for (int i = 0; i < value->op->operand_count; i++)
            operands[i] = value_before(p, a, tt_operand(value->op, i), iteration);
        bool reads = value->op->opcode == OP_load;
        result = repeat(b, value->op, operands, reads ? runs_before(p, iteration) : NULL);
    }
    return *tt_map_slot_ptr(&a->before[iteration], value) = result;
}

static Value *value_ahead(Pipeline *p, Ahead *a, Value *value)
{
    value = as_loaded(p, value);
    if (!is_inside(p, value))
        return value;
    void **slot = tt_map_slot_ptr(&a->inside, value);
    if (*slot)
        return *slot;
    Builder *b = &p->inside;
    Value *result;
    int carried = value->op ? -1 : carried_index(p, value);
    if (carried >= 0) {
        int copy = tt_add_carried(&p->loop, value_before(p, a, value, a->distance));
        tt_push(p->scratch, a->carried, carried);
        tt_push(p->scratch, a->copies, copy);
        result = tt_carried(&p->loop, copy);
        result->name = value->name;
    } else if (!value->op) {
        Value *steps = tt_build_int(b, value->type, a->distance);
        steps = tt_build2(b, OP_mul, tt_operand(p->loop.op, 2), steps);
        result = tt_build2(b, OP_add, value, steps);
    } else {
        Value **operands = TT_NEW_ARRAY(p->scratch, Value *, value->op->operand_count);
        for (int i = 0; i < value->op->operand_count; i++)
            operands[i] = value_ahead(p, a, tt_operand(value->op, i));
        bool reads = value->op->opcode == OP_load;
        result = repeat(b, value->op, operands, reads ? runs_ahead(p, a->distance) : NULL);
    }
    return *tt_map_slot_ptr(&a->inside, value) = result;
}

/* ---- pointers ------------------------------------------------------------------------------------------------------------------------ */

/* The scalar at the beginning of a tile of pointers, if all that is added to it stays the same in the loop. */
static Value *moving_base(const Pipeline *p, Value *pointer)
{
    while (tt_is_tile(pointer->type)) {
        Op *op = pointer->op;
        if (!op || (op->opcode != OP_addptr && op->opcode != OP_splat && !tt_has(op, SHAPE)) ||
            (op->opcode == OP_addptr && is_inside(p, tt_operand(op, 1))))
            return NULL;
        pointer = tt_operand(op, 0);
    }
    return is_inside(p, pointer) && tt_def(pointer, OP_addptr) && !is_inside(p, tt_operand(pointer->op, 0))
               ? pointer
               : NULL;
}

/* The tile of pointers with another scalar at its beginning, before the loop. */
static Value *based_on(Pipeline *p, const Value *pointer, Value *base)
{
    const Op *op = pointer->op;
    if (!tt_is_tile(pointer->type))
        return base;
    Value *operands[] = {based_on(p, tt_operand(op, 0), base),
                         op->operand_count > 1 ? tt_operand(op, 1) : NULL};
    return tt_build(&p->before, op->opcode, operands, op->operand_count, pointer->type,
                    tt_copy_attrs(p->module, op->attrs));
}

/* What a carried scalar grows by in each iteration, if that stays the same; else NULL. */
static Value *step_of(const Pipeline *p, const Value *distance)
{
    int carried = distance->op ? -1 : carried_index(p, distance);
    Op *next = carried < 0 ? NULL : tt_def(tt_next(&p->loop, carried), OP_add);
    for (int i = 0; next && i < 2; i++)
        if (tt_operand(next, i) == distance && !is_inside(p, tt_operand(next, 1 - i)))
            return tt_operand(next, 1 - i);
    return NULL;
}

static Value *moved(Builder *b, Value *pointer, Value *distance)
{
    distance = tt_build_splat(b, distance, pointer->type->shape, pointer->type->rank);
    return tt_build_addptr(b, pointer, distance);
}

/* Pointers of a copy as a tile that moves on by one step, or else as one that stays where it is and one distance for all:
 * an addition for each, and nothing that multiplies, which would hold up tensor cores at work. */
static void move_as_one(Pipeline *p, Op *copy)
{
    Value *pointer = tt_operand(copy, 0), *base = moving_base(p, pointer);
    if (!base)
        return;
    Value *distance = tt_operand(base->op, 1), *step = step_of(p, distance);
    p->before = tt_builder_before(p->loop.op);
    Value *fixed = based_on(p, pointer, tt_operand(base->op, 0));
    Builder here = tt_builder_before(copy), end = tt_builder_before(p->loop.yield);
    p->before.raw = here.raw = end.raw = true; /* building would move distances back to the scalar */
    if (!step) {
        tt_set_operand(copy, 0, moved(&here, fixed, distance));
        return;
    }
    Value *first = moved(&p->before, fixed, tt_init(&p->loop, carried_index(p, distance)));
    int carried = tt_add_carried(&p->loop, first);
    Value *now = tt_carried(&p->loop, carried);
    tt_set_operand(p->loop.yield, carried, moved(&end, now, step));
    tt_set_operand(copy, 0, now);
}

static void simplify_pointers(Op *op, void *context)
{
    Pipeline *p = context;
    if (op->opcode != OP_async_copy || !op->parent->op || op->parent->op->opcode != OP_for)
        return;
    p->loop = tt_loop(op->parent->op);
    move_as_one(p, op);
}

/* What is carried ahead moves on by an iteration, too. */
static void advance_carried(Pipeline *p, Ahead *a)
{
    for (int i = 0; i < a->carried.count; i++) { /* may find more */
        Value *next = value_ahead(p, a, tt_next(&p->loop, a->carried.data[i]));
        tt_set_operand(p->loop.yield, a->copies.data[i], next);
    }
}

static Ahead new_ahead(Pipeline *p, int distance)
{
    Arena *arena = p->scratch;
    Ahead a = {.distance = distance, .inside = {.arena = arena}};
    a.before = TT_NEW_ARRAY(arena, Map, distance + 1);
    for (int i = 0; i <= distance; i++)
        a.before[i].arena = arena;
    return a;
}

/* ---- copies -------------------------------------------------------------------------------------------------------------------------- */

static Value *slot_of(Builder *b, const Staged *staged, Value *index)
{
    const Type *type = tt_buffer_type(b->module, tile_of(b->module, staged->load), 1);
    Op *view = tt_build_op(b, OP_smem_view, (Value *[]){staged->buffer, index}, 2, &type, 1, NULL);
    view->results[0]->layout = staged->layout;
    return view->results[0];
}

/* Does the tile read elements more than once? */
static bool repeats(const Pipeline *p, const Op *load)
{
    const AxisInfo *info = tt_axis_info(p->axis_infos, tt_operand(load, 0));
    for (int axis = 0; axis < info->rank; axis++)
        if (info->constancy[axis] > 1)
            return true;
    return false;
}

static void copy_async(const Pipeline *p, Builder *b, const Staged *staged, Value *pointer, Value *mask,
                       Value *runs, Value *slot)
{
    const Op *load = staged->load;
    if (!tt_is_tile(pointer->type)) {
        pointer = tt_build_splat(b, pointer, (int64_t[]){1}, 1);
        mask = mask ? tt_build_splat(b, mask, (int64_t[]){1}, 1) : NULL;
    }
    Value *operands[] = {pointer, slot_of(b, staged, slot), masked(b, pointer->type, mask, runs)};
    Attr *attrs = tt_copy_attrs(b->module, load->attrs);
    if (!tt_find_attr(load, ATTR_cache) && repeats(p, load)) /* once from the second cache */
        attrs = tt_attr_string(b->module, ATTR_cache, ".ca", attrs);
    tt_build_op(b, OP_async_copy, operands, 3, NULL, 0, attrs);
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
    tt_build_op(b, OP_smem_store, (Value *[]){tile, slot_of(b, staged, slot)}, 2, NULL, 0, attrs);
}

/* ---- before the loop ------------------------------------------------------------------------------------------------------------------ */

static void allocate(Pipeline *p, Staged *staged)
{
    const Type *type = tt_buffer_type(p->module, tile_of(p->module, staged->load), p->slots);
    Builder b = p->before;
    b.loc = staged->load->loc;
    Op *alloc = tt_build_op(&b, OP_smem_alloc, NULL, 0, &type, 1, NULL);
    staged->buffer = alloc->results[0];
    staged->buffer->layout = staged->layout;
    staged->buffer->name = staged->load->results[0]->name;
}

/* The first `distance` iterations' loads. */
static void load_before(Pipeline *p, Staged *staged, int iteration)
{
    Builder *b = &p->before;
    Value *operands[3] = {0}, *runs = runs_before(p, iteration);
    Value *slot = tt_build_int(b, tt_scalar_type(p->module, TT_I32), iteration);
    b->loc = staged->load->loc;
    for (int j = 0; j < staged->load->operand_count; j++)
        operands[j] = value_before(p, staged->ahead, tt_operand(staged->load, j), iteration);
    if (staged->is_async) {
        copy_async(p, b, staged, operands[0], operands[1], runs, slot);
        return;
    }
    Value *loaded = repeat(b, staged->load, operands, runs);
    if (iteration == staged->ahead->distance - 1)
        staged->carried = tt_add_carried(&p->loop, loaded);
    else
        store_slot(b, staged, loaded, slot);
}

/* Copies for as many iterations as there are slots to fill; loads for the first one's slot, and for the second, which stay
 * in registers. */
static void fill_slots(Pipeline *p)
{
    for (int d = 0; d < p->distance; d++) {
        for (int i = 0; i < p->loads.count; i++)
            if (p->loads.data[i].is_async || d == 0)
                load_before(p, &p->loads.data[i], d);
        build_effect(&p->before, OP_async_commit, NULL);
    }
    for (int i = 0; i < p->loads.count; i++)
        if (p->loads.data[i].ahead == &p->near)
            load_before(p, &p->loads.data[i], 1);
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

/* The first steps of a product of several: returns the operation behind them, which goes on. */
static Op *split_product(Op *product)
{
    enum { FIRST_STEPS = 1, STEP_BYTES = 32 };
    Module *module = product->parent->function->module;
    const Type *type = tt_operand(product, 0)->type;
    int64_t part[] = {0, FIRST_STEPS * STEP_BYTES / tt_byte_width(type)}, rest[] = {part[1], type->shape[1]};
    if (!tt_is_buffer(type) || part[1] >= rest[1] || tt_find_attr(product, ATTR_k))
        return product->next;
    Builder b = tt_builder_before(product);
    Value *operands[] = {tt_operand(product, 0), tt_operand(product, 1), tt_operand(product, 2)};
    Op *first = tt_build_op(&b, OP_wgmma, operands, 3, &product->results[0]->type, 1,
                            tt_copy_attrs(module, product->attrs));
    tt_set_attr(first, tt_attr_ints(module, ATTR_k, part, 2, NULL));
    tt_set_attr(product, tt_attr_ints(module, ATTR_k, rest, 2, NULL));
    tt_set_operand(product, 2, first->results[0]);
    return product;
}

/* The products of the iteration before have ended, in all threads; `product`, this one's first, goes on. */
static void wait_for_earlier(const Pipeline *p, Op *product, Op *rest)
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
    tt_build_op(&b, OP_barrier, NULL, 0, NULL, 0, NULL);
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
        if (tt_operand(p->deferred.data[i], 0)->op == product)
            return true;
    return false;
}

/* The copies for a later iteration stand within the first product of this one: a warpgroup waits to issue the last steps
 * anyway until the tensor core has done the first ones, and then nothing comes between these and the next product. Behind
 * the whole of it, and what is read from buffers meanwhile, if it is waited for in this iteration: the tensor core is not
 * to run dry. */
static Op *place_of_copies(const Pipeline *p)
{
    TT_FOR_OPS(op, p->loop.body)
    {
        if (op->opcode != OP_wgmma)
            continue;
        if (!p->is_compact && !is_deferred(p, op))
            return behind_reads(op->next);
        Op *behind = split_product(op), *rest = behind == op ? op : NULL;
        if (p->is_compact)
            wait_for_earlier(p, rest ? tt_operand(rest, 2)->op : op, rest);
        return rest ? rest : behind;
    }
    return p->inside.before;
}

/* The operation of `region` that `op` is in, or is; NULL: none. */
static Op *part_of(const Region *region, Op *op)
{
    while (op && op->parent != region)
        op = op->parent->op;
    return op;
}

static bool comes_before(const Op *op, const Op *other)
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
        Op *part = part_of(p->loop.body, use->user);
        if (part && comes_before(part, first))
            first = part;
    }
    return first;
}

/* In front of the first user, or of the wait for a product before that: threads read while the tensor core works. */
static Op *place_of_read(const Pipeline *p, const Value *value)
{
    Op *first = first_user(p, value), *wait = NULL;
    for (Op *op = p->loop.body->first; op != first; op = op->next)
        if (op->opcode == OP_wgmma_wait && !tt_int_attr(op, ATTR_left, 0) &&
            tt_def(tt_operand(op, 0), OP_wgmma))
            wait = op;
    return wait ? wait : first;
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
    Builder b = tt_builder_before(place_of_read(p, load->results[0]));
    b.loc = load->loc;
    const Type *type = tile_of(p->module, load);
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

static void load_ahead(Pipeline *p, Staged *staged, Value *slot)
{
    Value *operands[3] = {0};
    Builder *b = &p->inside;
    b->loc = staged->load->loc;
    for (int j = 0; j < staged->load->operand_count; j++)
        operands[j] = value_ahead(p, staged->ahead, tt_operand(staged->load, j));
    Value *runs = runs_ahead(p, staged->ahead->distance);
    if (staged->is_async)
        copy_async(p, b, staged, operands[0], operands[1], runs, slot);
    else
        tt_set_operand(p->loop.yield, staged->carried, repeat(b, staged->load, operands, runs));
}

static void rewrite_body(Pipeline *p)
{
    Value *next_read, *next_write;
    p->inside = tt_builder_before(p->loop.body->first);
    p->inside.loc = p->loop.op->loc;
    Value *read = carry_slot(p, 0, &next_read), *write = carry_slot(p, p->distance, &next_write);
    build_wait(&p->inside, p->distance - 1);
    for (int i = 0; i < p->loads.count; i++)
        use_slot(p, &p->loads.data[i], read);
    p->inside.before = place_of_copies(p);
    for (int i = 0; i < p->loads.count; i++)
        if (p->loads.data[i].ahead == &p->near)
            store_slot(&p->inside, &p->loads.data[i], tt_carried(&p->loop, p->loads.data[i].carried),
                       next_read);
    for (int i = 0; i < p->loads.count; i++)
        load_ahead(p, &p->loads.data[i], write);
    build_effect(&p->inside, OP_async_commit, NULL);
    advance_carried(p, &p->far);
    advance_carried(p, &p->near);
    advance_carried(p, &p->next);
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
    Attr *alone = around ? NULL : tt_attr_int(p->module, ATTR_alone, 1, NULL);
    build_effect(&after, OP_async_wait, tt_attr_int(p->module, ATTR_left, 0, alone));
}

/* ---- products under way ----------------------------------------------------------------------------------------------------------------- */

/* A buffer that this iteration alone fills: pipelined, not another one made of the same load, or filled before the loop. */
static bool outlives_iteration(const Pipeline *p, const Value *buffer)
{
    while (tt_def(buffer, OP_smem_permute))
        buffer = tt_operand(buffer->op, 0);
    if (!tt_is_buffer(buffer->type) || !is_inside(p, buffer))
        return tt_is_buffer(buffer->type);
    const Value *source = buffer->op->operand_count ? tt_operand(buffer->op, 0) : NULL;
    for (int i = 0; source && i < p->loads.count; i++)
        if (p->loads.data[i].load == source->op && p->loads.data[i].layout == buffer->layout)
            return !p->loads.data[i].is_kept;
    return false;
}

/* Sums that only the next iteration's product adds to, of operands that stay where they are until then. */
static bool stays_under_way(const Pipeline *p, const Op *wait)
{
    const Op *product = tt_def(tt_operand(wait, 0), OP_wgmma);
    const Value *sums = wait->results[0];
    if (!product || wait->operand_count != 1 || !tt_has_one_use(sums) || sums->uses->user != p->loop.yield)
        return false;
    const Value *carried = tt_operand(product, 2);
    int index = carried->op ? -1 : carried_index(p, carried);
    return index >= 0 && tt_next(&p->loop, index) == sums && tt_has_one_use(carried) &&
           outlives_iteration(p, tt_operand(product, 0)) && outlives_iteration(p, tt_operand(product, 1));
}

static void find_deferred(Pipeline *p)
{
    TT_FOR_OPS(op, p->loop.body)
    if (op->opcode == OP_wgmma_wait && stays_under_way(p, op))
        tt_push(p->scratch, p->deferred, op);
}

/* The product, or the first part of it. */
static Op *first_part(Op *product)
{
    const Value *sums = tt_operand(product, 2);
    if (tt_def(sums, OP_wgmma_wait))
        sums = tt_operand(sums->op, 0);
    Op *before = tt_def(sums, OP_wgmma);
    return before && before->parent == product->parent ? before : product;
}

/* All of this iteration's products may still run at its end, none of the one before. */
static void defer_waits(Pipeline *p)
{
    int groups = 0;
    for (int i = 0; i < p->deferred.count; i++) {
        Op *product = tt_operand(p->deferred.data[i], 0)->op;
        groups += first_part(product) == product ? 1 : 2;
    }
    for (int i = 0; i < p->deferred.count; i++) {
        Op *wait = p->deferred.data[i];
        int carried = carried_index(p, tt_operand(first_part(tt_operand(wait, 0)->op), 2));
        tt_set_attr(wait, tt_attr_int(p->module, ATTR_left, groups, NULL));
        if (p->is_compact || i + 1 < p->deferred.count) { /* the last one speaks for all */
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

/* ---- one loop ------------------------------------------------------------------------------------------------------------------------------ */

static int64_t slot_bytes(const Staged *staged)
{
    int bytes = tt_byte_width(staged->load->results[0]->type);
    return staged->is_kept ? 0 : (int64_t)bytes << tt_layout_out_total(staged->layout);
}

/* Is what reads a buffer still to come when the loop begins? */
static bool has_uses_from(const Op *loop, const Value *buffer)
{
    TT_FOR_USES(use, buffer)
    {
        Op *user = use->user, *part = part_of(loop->parent, user);
        bool passes = user->opcode == OP_smem_view || user->opcode == OP_smem_permute;
        if (!part || comes_before(loop, part) || (passes && has_uses_from(loop, user->results[0])))
            return true;
    }
    return false;
}

typedef struct Occupied {
    const Op *loop;
    int64_t bytes;
} Occupied;

/* Buffers that live while the loop runs: what lies elsewhere, the allocator puts into the same places. */
static void count_buffer(Op *op, void *context)
{
    Occupied *occupied = context;
    if (op->opcode != OP_smem_alloc)
        return;
    const Op *made = part_of(occupied->loop->parent, op);
    if (!made || made == occupied->loop ||
        (comes_before(made, occupied->loop) && has_uses_from(occupied->loop, op->results[0])))
        occupied->bytes += tt_buffer_bytes(op->results[0]);
}

/* How many programs a multiprocessor of sm_90 holds that need so much shared memory, and registers for their sums. */
static int64_t programs_at_once(const Pipeline *p, int64_t shared_bytes)
{
    enum {
        SHARED = 228 << 10,
        RESERVED = 1 << 10 /* by the system, for each */,
        REGISTERS = 64 << 10,
        OTHERS = 40
    };
    int64_t threads = (int64_t)TT_LANES * p->options->num_warps, sums = 0;
    for (int i = 0; i < p->deferred.count; i++)
        sums += p->deferred.data[i]->results[0]->type->count / threads;
    return TT_MIN(SHARED / (shared_bytes + RESERVED), REGISTERS / (threads * (sums + OTHERS)));
}

/* What the loop says, or the choice "num_stages". */
static int choose_stages(Pipeline *p)
{
    static const int64_t values[] = {1, 2, 3, 4, 5, 6};
    if (tt_find_attr(p->loop.op, ATTR_num_stages))
        return (int)tt_int_attr(p->loop.op, ATTR_num_stages, 1);
    return (int)tt_choose(p->module, "num_stages", values, TT_COUNT(values), p->options->num_stages);
}

/* As many iterations ahead as was asked for and there is memory for. */
static void choose_distance(Pipeline *p)
{
    enum { DEFAULT_STAGES = 3 }; /* of a kernel for which nobody asked for any */
    Occupied others = {.loop = p->loop.op};
    int64_t each = 0, limit = tt_shared_limit(p->options->sm);
    tt_walk(p->module->functions->body, count_buffer, &others);
    for (int i = 0; i < p->loads.count; i++) {
        each += slot_bytes(&p->loads.data[i]);
        if (buffer_of(p->loads.data[i].load))
            others.bytes -= slot_bytes(&p->loads.data[i]);
    }
    bool any_async = false;
    for (int i = 0; i < p->loads.count; i++)
        any_async |= p->loads.data[i].is_async;
    int stages = choose_stages(p);
    int wanted = any_async ? stages - 1 : TT_MIN(stages - 1, 1);
    p->distance = wanted;
    while (p->distance > 0 && each * (p->distance + 1) + others.bytes > limit)
        p->distance--;
    int64_t bytes = each * (p->distance + 1) + others.bytes;
    bool is_tight = bytes + each > limit || programs_at_once(p, bytes + each) < programs_at_once(p, bytes);
    p->is_compact = p->deferred.count && is_tight;
    p->slots = p->distance + (p->deferred.count && !p->is_compact ? 2 : 1);
    bool is_asked = tt_find_attr(p->loop.op, ATTR_num_stages) || stages > DEFAULT_STAGES;
    if (p->distance < wanted && is_asked)
        tt_remark(p->module, p->loop.op->loc,
                  "num_stages=%d is lowered to %d: one more would take %lld bytes of shared memory, and a "
                  "program can have %lld",
                  stages, p->distance + 1, (long long)(bytes + each), (long long)limit);
}

/* Notes the loads of the loop's body that the operands of `op` are computed from. */
static void note_sources(const Pipeline *p, const Op *op, Map *sources)
{
    for (int i = 0; i < op->operand_count; i++) {
        const Value *value = tt_operand(op, i);
        int carried = value->op ? -1 : carried_index(p, value);
        const Op *source = carried < 0 ? value->op : tt_next(&p->loop, carried)->op;
        if (!source || source->parent != p->loop.body || tt_map_find_ptr(sources, source))
            continue;
        *tt_map_slot_ptr(sources, source) = (void *)source;
        note_sources(p, source, sources);
    }
}

/* What is computed with besides: it is little, and waiting for it would hold up the products all the same. Not what leads
 * to other loads, which is loaded ahead with them. */
static void find_other_loads(Pipeline *p)
{
    enum { MOST_BYTES = 2048 };
    Map sources = {.arena = p->scratch};
    TT_FOR_OPS(op, p->loop.body)
    if (op->opcode == OP_load)
        note_sources(p, op, &sources);
    TT_FOR_OPS(op, p->loop.body)
    {
        const Type *type = op->opcode == OP_load ? op->results[0]->type : NULL;
        bool is_little = type && (!tt_is_tile(type) || type->count * tt_byte_width(type) <= MOST_BYTES);
        if (is_little && !tt_map_find_ptr(&sources, op))
            add_load(p, op);
    }
}

static bool pipeline_loop(Pipeline *p, Op *op)
{
    Map seen = {.arena = p->scratch};
    p->loop = tt_loop(op);
    p->loads.count = p->deferred.count = 0;
    p->kept_bytes = 0;
    TT_FOR_OPS(product, p->loop.body)
    for (int i = 0; i < 2 && tt_is_product(product); i++)
        find_loads(p, tt_operand(product, i), &seen);
    bool any = false;
    for (int i = 0; i < p->loads.count; i++)
        any |= !p->loads.data[i].is_kept;
    if (!any)
        return false;
    find_other_loads(p);
    find_deferred(p);
    choose_distance(p);
    if (p->distance < 1)
        return false;
    p->before = tt_builder_before(op);
    p->far = new_ahead(p, p->distance);
    p->near = new_ahead(p, 2);
    p->next = new_ahead(p, 1);
    for (int i = 0; i < p->loads.count; i++) {
        Staged *staged = &p->loads.data[i];
        staged->ahead = staged->is_async ? &p->far : staged->is_kept ? &p->next : &p->near;
        if (!staged->is_kept)
            allocate(p, staged);
    }
    fill_slots(p);
    rewrite_body(p);
    wait_behind(p);
    defer_waits(p);
    return true;
}

static bool visit_region(Pipeline *p, Region *region)
{
    bool changed = false;
    TT_FOR_OPS_SAFE(op, region)
    {
        for (int i = 0; i < op->region_count && tt_is_control(op); i++)
            changed |= visit_region(p, op->regions[i]);
        if (op->opcode == OP_for)
            changed |= pipeline_loop(p, op);
    }
    return changed;
}

bool tt_gpu_pipeline(Module *module, const GpuOptions *options, Arena *scratch)
{
    Pipeline p = {.module = module, .options = options, .scratch = scratch};
    p.axis_infos = tt_analyze_axis_info(module->functions, scratch);
    p.pointers = tt_analyze_param_pointers(module->functions, scratch);
    bool changed = visit_region(&p, module->functions->body);
    if (!changed)
        return false;
    tt_simplify(module);
    tt_walk(module->functions->body, simplify_pointers, &p);
    tt_opt_run_pass(module, PASS_cse);
    tt_opt_run_pass(module, PASS_dce);
    return true;
}
