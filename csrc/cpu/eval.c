/* The value of a virtual tile at given coordinates: recursively, each computation at the innermost loop level that its
 * coordinates depend on, and only once there. Lanes that are equal are one scalar until they meet others that are not;
 * a run of consecutive addresses, by what axis analysis knows, is its first one. */
#include "cpu/lower.h"

struct Memo {
    Memo *next;
    const void *subject;
    int instance; /* of the loop it was computed in */
    Vec vec;
    int rank;
    Coord coords[];
};

/* ---- coordinates ------------------------------------------------------------------------------------------------------------ */

Coord zero_coord(void) { return (Coord){0}; }
Coord const_coord(int64_t at) { return (Coord){.offset = at}; }

static bool same_coord(const Coord *a, const Coord *b)
{
    return a->base == b->base && a->offset == b->offset && a->stride == b->stride;
}

/* Do all lanes stand in one aligned group of `size` places along a dimension of this extent? */
bool within_group(const Nest *n, const Coord *coord, int64_t size, int64_t extent)
{
    if (size >= extent)
        return true;
    int64_t block = coord->stride ? n->width : 1;
    return coord->stride <= 1 && size % block == 0 && coord->offset % block == 0 &&
           (!coord->base || coord->divisor % block == 0);
}

/* ---- memos -------------------------------------------------------------------------------------------------------------------- */

static unsigned slot_of(const void *subject, const Coord *coords, int rank)
{
    uint64_t hash = (uintptr_t)subject >> 4;
    for (int i = 0; i < rank; i++)
        hash = hash * 0x9e3779b97f4a7c15ull + ((uintptr_t)coords[i].base >> 4) +
               (uint64_t)coords[i].offset * 31 + (uint64_t)coords[i].stride;
    return (unsigned)(hash * 0x9e3779b97f4a7c15ull >> 56) % MEMO_SLOTS;
}

static const Vec *recall(Nest *n, const void *subject, const Coord *coords, int rank)
{
    for (Memo *memo = n->memos[slot_of(subject, coords, rank)]; memo; memo = memo->next) {
        if (memo->subject != subject || memo->rank != rank ||
            memo->instance != n->instance[memo->vec.level] || memo->vec.level > n->level)
            continue;
        bool same = true;
        for (int i = 0; i < rank && same; i++)
            same = same_coord(&memo->coords[i], &coords[i]);
        if (same)
            return &memo->vec;
    }
    return NULL;
}

static Vec remember(Nest *n, const void *subject, const Coord *coords, int rank, Vec vec)
{
    Memo *memo = tt_arena_alloc(n->l->arena, sizeof(Memo) + sizeof(Coord) * (size_t)rank);
    unsigned slot = slot_of(subject, coords, rank);
    memo->next = n->memos[slot];
    memo->subject = subject;
    memo->instance = n->instance[vec.level];
    memo->vec = vec;
    memo->rank = rank;
    for (int i = 0; i < rank; i++)
        memo->coords[i] = coords[i];
    n->memos[slot] = memo;
    return vec;
}

void remember_vec(Nest *n, const Value *value, const Coord *coords, Vec vec)
{
    remember(n, value, coords, value->type->rank, vec);
}

LLVMValueRef splat(Nest *n, Vec vec)
{
    if (!vec.uniform || !n->width)
        return vec.v;
    if (LLVMIsConstant(vec.v))
        return emit_splat(n->e, vec.v, n->width);
    const Vec *known = recall(n, vec.v, NULL, 0);
    if (known)
        return known->v;
    LLVMBuilderRef before = n->e->b;
    at_level(n, vec.level);
    Vec wide = {emit_splat(n->e, vec.v, n->width), vec.level, false};
    n->e->b = before;
    return remember(n, vec.v, NULL, 0, wide).v;
}

/* The coordinates as integers of `type`: the offset goes into the constant lanes, so that copies share the rest. */
static Vec coord_value(Nest *n, Coord coord, LLVMTypeRef type)
{
    Coord key = {.base = coord.base};
    const Vec *known = coord.base ? recall(n, type, &key, 1) : NULL;
    Vec start = {const_int(type, coord.base ? 0 : coord.offset), 0, true};
    if (known) {
        start = *known;
    } else if (coord.base) {
        at_level(n, coord.level);
        start = (Vec){coord.base, coord.level, true};
        if (type != n->e->i64)
            start.v = LLVMBuildTrunc(n->e->b, coord.base, type, "");
        start = remember(n, type, &key, 1, start);
    }
    int64_t offset = coord.base ? coord.offset : 0;
    at_level(n, start.level);
    if (coord.stride) {
        LLVMValueRef lanes = const_lanes(type, n->width, offset, coord.stride), all = splat(n, start);
        at_level(n, start.level);
        return (Vec){LLVMBuildAdd(n->e->b, all, lanes, ""), start.level, false};
    }
    if (offset)
        start.v = LLVMBuildAdd(n->e->b, start.v, const_int(type, offset), "");
    return start;
}

/* ---- runs of addresses ---------------------------------------------------------------------------------------------- */

/* The address `count` elements further on. */
static Vec advance(Nest *n, Vec address, Vec count, const Type *type)
{
    LLVMTypeRef element = memory_type(n->e, tt_element(type)->element);
    int level = TT_MAX(address.level, count.level);
    LLVMValueRef index = address.uniform ? count.v : splat(n, count);
    at_level(n, level);
    return (Vec){emit_index(n->e, element, address.v, index), level, address.uniform && count.uniform};
}

/* Coordinates at which the address is the same but for what `terms` add: along dimensions where it is constant, or
 * counts up, within the group that the lanes stand in. Returns whether anything changed. Only for addresses: what the
 * analysis takes for granted about index arithmetic must not show in values that the program can see. */
static bool simplify(Nest *n, const Value *value, const Coord *coords, Coord *simple, Coord *terms)
{
    const AxisInfo *axes = axis_of(n->l, value);
    bool changed = false;
    for (int i = 0; i < value->type->rank; i++) {
        const Coord *coord = &coords[i];
        int64_t extent = value->type->shape[i];
        simple[i] = *coord;
        terms[i] = (Coord){0};
        if (!coord->base && !coord->stride && !coord->offset)
            continue;
        Coord start = {
            .base = coord->base, .level = coord->level, .divisor = coord->divisor, .offset = coord->offset};
        if (extent == 1 || axes->constancy[i] >= extent) {
            simple[i] = (Coord){0};
        } else if (coord->stride && within_group(n, coord, axes->constancy[i], extent)) {
            simple[i] = start;
        } else if (axes->contiguity[i] >= extent) {
            simple[i] = (Coord){0};
            terms[i] = *coord;
        } else if (coord->stride && within_group(n, coord, axes->contiguity[i], extent)) {
            simple[i] = start;
            terms[i] = (Coord){.stride = coord->stride};
        } else {
            continue;
        }
        changed = true;
    }
    return changed;
}

/* In the order of loop levels, so that partial sums are hoisted; the lanes last. */
static Vec add_terms(Nest *n, Vec sum, const Coord *terms, const Type *type)
{
    LLVMTypeRef count_type = n->e->i64;
    for (int level = 0; level <= n->level; level++)
        for (int i = 0; i < type->rank; i++) {
            Coord start = terms[i];
            start.stride = 0;
            if (start.base ? start.level == level : level == 0 && start.offset)
                sum = advance(n, sum, coord_value(n, start, count_type), type);
        }
    for (int i = 0; i < type->rank; i++)
        if (terms[i].stride)
            sum = advance(n, sum, coord_value(n, (Coord){.stride = terms[i].stride}, count_type), type);
    return sum;
}

/* ---- operations ---------------------------------------------------------------------------------------------------------------- */

static Vec eval_scalar(Nest *n, Value *value)
{
    at_level(n, 0);
    return (Vec){lower_scalar(n->l, value), 0, true};
}

static Vec eval_elementwise(Nest *n, Op *op, const Coord *coords)
{
    Vec operands[8];
    LLVMValueRef values[8];
    TT_ASSERT(op->operand_count <= (int)TT_COUNT(operands));
    Vec result = {NULL, 0, true};
    for (int i = 0; i < op->operand_count; i++) {
        operands[i] = eval(n, tt_operand(op, i), coords);
        result.level = TT_MAX(result.level, operands[i].level);
        result.uniform &= operands[i].uniform;
    }
    for (int i = 0; i < op->operand_count; i++) {
        bool base = op->opcode == OP_addptr && i == 0; /* a vector of offsets from one address */
        values[i] = result.uniform || base ? operands[i].v : splat(n, operands[i]);
    }
    at_level(n, result.level);
    result.v = emit_elementwise(n->e, op, values);
    return result;
}

/* base * factor, once. */
static LLVMValueRef scaled_base(Nest *n, const Coord *coord, int64_t factor)
{
    Coord key = {.offset = factor};
    const Vec *known = recall(n, coord->base, &key, 1);
    if (known)
        return known->v;
    at_level(n, coord->level);
    LLVMValueRef product = LLVMBuildMul(n->e->b, coord->base, const_int(n->e->i64, factor), "");
    return remember(n, coord->base, &key, 1, (Vec){product, coord->level, true}).v;
}

Coord scale_coord(Nest *n, Coord coord, int64_t factor, int64_t offset)
{
    coord.offset = coord.offset * factor + offset;
    coord.stride *= factor;
    if (coord.base && factor != 1) {
        coord.base = scaled_base(n, &coord, factor);
        coord.divisor *= factor < 0 ? -factor : factor;
    }
    return coord;
}

/* A run-time index, brought into the extent: what lies outside must not be touched. */
static Coord index_coord(Nest *n, Value *index, int64_t extent)
{
    const Vec *known = recall(n, index, NULL, 0);
    if (known)
        return (Coord){.base = known->v, .divisor = 1};
    LLVMValueRef at = eval_scalar(n, index).v;
    at_level(n, 0);
    at = LLVMBuildSExt(n->e->b, at, n->e->i64, "");
    at = emit_intrinsic2(n->e, "llvm.umin", at, const_int(n->e->i64, extent - 1));
    return (Coord){.base = remember(n, index, NULL, 0, (Vec){at, 0, true}).v, .divisor = 1};
}

/* Coordinates of the operand for those of a result, where the operation only moves elements. */
void operand_coords(Nest *n, const Op *op, int result, const Coord *coords, Coord *inner)
{
    const Type *from = tt_operand(op, 0)->type, *to = op->results[0]->type;
    int axis = (int)tt_int_attr(op, ATTR_axis, 0), next = 0;
    const Attr *order = tt_find_attr(op, ATTR_order), *offsets = tt_find_attr(op, ATTR_offsets),
               *strides = tt_find_attr(op, ATTR_strides);
    for (int i = 0; i < from->rank; i++) {
        inner[i] = zero_coord();
        switch (op->opcode) {
        case OP_hint:
            inner[i] = coords[i];
            break;
        case OP_expand_dims:
            inner[i] = coords[i < axis ? i : i + 1];
            break;
        case OP_broadcast:
            if (from->shape[i] > 1)
                inner[i] = coords[i];
            break;
        case OP_reshape: /* extents of 1 come and go */
            if (from->shape[i] == 1)
                break;
            while (to->shape[next] == 1)
                next++;
            inner[i] = coords[next++];
            break;
        case OP_permute:
            for (int j = 0; j < to->rank; j++)
                if (order->ints[j] == i)
                    inner[i] = coords[j];
            break;
        case OP_split:
            inner[i] = i < from->rank - 1 ? coords[i] : const_coord(result);
            break;
        case OP_extract:
            inner[i] =
                i == axis ? index_coord(n, tt_operand(op, 1), from->shape[i]) : coords[i < axis ? i : i - 1];
            break;
        case OP_slice:
            inner[i] =
                scale_coord(n, coords[i], strides ? strides->ints[i] : 1, offsets ? offsets->ints[i] : 0);
            break;
        default:
            tt_bug("cpu: no coordinates through %s", tt_op_infos[op->opcode].name);
        }
    }
}

/* Elements of a stored tile at computed indices along one axis. */
static Vec eval_gather(Nest *n, Op *op, const Coord *coords)
{
    Emit *e = n->e;
    Value *source = tt_operand(op, 0);
    const Type *type = source->type;
    int axis = (int)tt_int_attr(op, ATTR_axis, 0);
    Coord others[TT_MAX_RANK];
    int64_t step = 1, stride;
    for (int i = type->rank - 1; i >= 0; i--) {
        others[i] = i == axis ? zero_coord() : coords[i];
        if (i > axis)
            step *= type->shape[i];
    }
    Vec index = eval(n, tt_operand(op, 1), coords);
    Vec start = buffer_address(n, info_of(source)->buffer, 0, others, &stride);
    Vec result = {NULL, TT_MAX(index.level, start.level), index.uniform && !stride};
    LLVMValueRef at = result.uniform ? index.v : splat(n, index);
    at_level(n, result.level);
    at = emit_intrinsic2(e, "llvm.umin", at, const_int(LLVMTypeOf(at), type->shape[axis] - 1));
    if (LLVMGetIntTypeWidth(element_of(LLVMTypeOf(at))) < 32)
        at = LLVMBuildZExt(e->b, at, with_element(LLVMTypeOf(at), e->i32), "");
    LLVMTypeRef index_type = LLVMTypeOf(at), element = memory_type(e, type);
    at = LLVMBuildMul(e->b, at, const_int(index_type, step), "");
    if (stride)
        at = LLVMBuildAdd(e->b, at, const_lanes(element_of(index_type), n->width, 0, stride), "");
    LLVMValueRef pointer = emit_index(e, element, start.v, at);
    int align = tt_byte_width(type);
    LLVMValueRef value = result.uniform ? emit_load(e, element, pointer, align)
                                        : emit_masked_load(e, widened(element, n->width), pointer,
                                                           active_mask(n), NULL, align);
    result.v = to_register_form(e, value, type);
    return result;
}

/* A stored tile under another shape: the same elements in row-major order. */
static Vec eval_reshape(Nest *n, Op *op, const Coord *coords)
{
    Value *operand = tt_operand(op, 0);
    Coord inner[TT_MAX_RANK] = {0};
    if (is_splat(operand))
        return eval(n, operand, inner);
    if (keeps_coordinates(op)) {
        operand_coords(n, op, 0, coords, inner);
        return eval(n, operand, inner);
    }
    void **view = tt_map_slot_ptr(&n->l->views, op);
    if (!*view) {
        if (!info_of(operand)->stored)
            tt_bug("cpu: a tile is reshaped before it is stored");
        *view = tt_arena_copy(n->l->arena, info_of(operand)->buffer, sizeof(Buffer));
        ((Buffer *)*view)->type = op->results[0]->type;
    }
    return read_buffer(n, *view, coords);
}

static Vec eval_op(Nest *n, Value *value, const Coord *coords)
{
    Op *op = value->op;
    Emit *e = n->e;
    Coord inner[TT_MAX_RANK];
    if (tt_has(op, ELEMENTWISE))
        return eval_elementwise(n, op, coords);
    switch (op->opcode) {
    case OP_constant:
        return (Vec){const_scalar(e, value->type, tt_find_attr(op, ATTR_value)), 0, true};
    case OP_range: {
        Coord at = coords[0];
        at.offset += tt_int_attr(op, ATTR_start, 0);
        return coord_value(n, at, e->i32);
    }
    case OP_splat:
        return eval_scalar(n, tt_operand(op, 0));
    case OP_load:
        return eval_load(n, op, coords);
    case OP_gather:
        return eval_gather(n, op, coords);
    case OP_reshape:
        return eval_reshape(n, op, coords);
    default:
        operand_coords(n, op, value->index, coords, inner);
        return eval(n, tt_operand(op, 0), inner);
    }
}

Vec eval(Nest *n, Value *value, const Coord *coords)
{
    if (!tt_is_tile(value->type))
        return eval_scalar(n, value);
    int rank = value->type->rank;
    const Vec *known = recall(n, value, coords, rank);
    if (known)
        return *known;
    if (is_assumed_true(n, value, coords)) /* what it guards stays behind the test */
        return (Vec){const_int(n->e->i1, 1), n->assumed_level, true};
    Coord simple[TT_MAX_RANK], terms[TT_MAX_RANK];
    const Op *op = value->op;
    if (tt_is_ptr(value->type) && !is_splat(value) && simplify(n, value, coords, simple, terms))
        return remember(n, value, coords, rank, add_terms(n, eval(n, value, simple), terms, value->type));
    if (info_of(value)->stored)
        return remember(n, value, coords, rank, read_value(n, value, coords));
    if (!op || !is_virtual_op(op))
        tt_bug("cpu: a tile is used before it is stored");
    return remember(n, value, coords, rank, eval_op(n, value, coords));
}

LLVMValueRef eval_lanes(Nest *n, Value *value, const Coord *coords)
{
    return splat(n, eval(n, value, coords));
}

/* ---- addresses in scratch --------------------------------------------------------------------------------------------------------- */

Vec buffer_address(Nest *n, const Buffer *buffer, int64_t origin, const Coord *coords, int64_t *stride)
{
    Emit *e = n->e;
    const Type *type = buffer->type;
    LLVMTypeRef element = memory_type(e, type);
    int64_t constant = origin, steps[TT_MAX_RANK], step = 1;
    Coord key[TT_MAX_RANK] = {0};
    *stride = 0;
    for (int i = type->rank - 1; i >= 0; i--) {
        steps[i] = step;
        constant += coords[i].offset * step;
        *stride += coords[i].stride * step;
        step *= type->shape[i];
    }
    at_level(n, 0);
    Vec pointer = {buffer_pointer(n->l, buffer), 0, true};
    for (int level = 0; level <= n->level; level++)
        for (int i = 0; i < type->rank; i++) {
            if (!coords[i].base || coords[i].level != level)
                continue;
            key[i].base = coords[i].base;
            const Vec *known = recall(n, buffer, key, type->rank);
            if (known) {
                pointer = *known;
                continue;
            }
            LLVMValueRef index = steps[i] == 1 ? coords[i].base : scaled_base(n, &coords[i], steps[i]);
            at_level(n, level);
            pointer = (Vec){emit_index(e, element, pointer.v, index), level, true};
            remember(n, buffer, key, type->rank, pointer);
        }
    at_level(n, pointer.level);
    pointer.v = emit_offset(e, pointer.v, constant * tt_byte_width(type));
    return pointer;
}
