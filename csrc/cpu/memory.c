/* Loads and stores: of user memory through pointer tiles, and of tiles in scratch. Consecutive lanes of consecutive
 * addresses are one vector access, masked where the mask may be false; others gather and scatter. */
#include "cpu/lower.h"

/* ---- masks ------------------------------------------------------------------------------------------------------------------ */

/* The mask operand, uniform or of lanes; v is NULL where there is none or it is true. */
static Vec eval_mask(Nest *n, const Op *op, int operand, const Coord *coords)
{
    if (op->operand_count <= operand)
        return (Vec){NULL, 0, true};
    Vec mask = eval(n, tt_operand(op, operand), coords);
    return is_all_true(mask.v) ? (Vec){NULL, mask.level, true} : mask;
}

/* As lanes, without those behind the end of the row; NULL: all. */
static LLVMValueRef mask_lanes(Nest *n, Vec mask, int level)
{
    LLVMValueRef active = active_mask(n);
    if (!mask.v)
        return active;
    LLVMValueRef lanes = splat(n, mask);
    at_level(n, level);
    return active ? LLVMBuildAnd(n->e->b, lanes, active, "") : lanes;
}

/* ---- scalars: a false mask turns the access to a place of our own, without a branch ------------------------------------------- */

static LLVMValueRef guarded_pointer(Lower *l, LLVMValueRef pointer, LLVMValueRef mask)
{
    return mask ? emit_select(l->e, mask, pointer, l->scratch) : pointer;
}

static LLVMValueRef guarded_load(Lower *l, const Op *op, LLVMValueRef pointer, LLVMValueRef mask,
                                 LLVMValueRef other)
{
    Emit *e = l->e;
    const Type *type = op->results[0]->type;
    pointer = guarded_pointer(l, pointer, mask);
    begin_access(e, op);
    LLVMValueRef value = emit_load(e, memory_type(e, type), pointer, tt_byte_width(type));
    end_access(e);
    LLVMSetVolatile(value, tt_int_attr(op, ATTR_volatile, 0) != 0);
    value = to_register_form(e, value, type);
    return mask ? emit_select(e, mask, value, other ? other : LLVMConstNull(LLVMTypeOf(value))) : value;
}

static LLVMValueRef scalar_operand(Lower *l, const Op *op, int operand)
{
    return op->operand_count > operand ? lower_scalar(l, tt_operand(op, operand)) : NULL;
}

void lower_scalar_load(Lower *l, Op *op)
{
    LLVMValueRef pointer = scalar_operand(l, op, 0), mask = scalar_operand(l, op, 1),
                 other = scalar_operand(l, op, 2);
    straight(l);
    info_of(op->results[0])->scalar = guarded_load(l, op, pointer, mask, other);
}

static void guarded_store(Lower *l, const Op *op, LLVMValueRef pointer, LLVMValueRef value, LLVMValueRef mask)
{
    value = to_memory_form(l->e, value);
    pointer = guarded_pointer(l, pointer, mask);
    begin_access(l->e, op);
    emit_store(l->e, value, pointer, tt_byte_width(tt_operand(op, 1)->type));
    end_access(l->e);
}

void lower_scalar_store(Lower *l, Op *op)
{
    LLVMValueRef pointer = scalar_operand(l, op, 0), value = scalar_operand(l, op, 1),
                 mask = scalar_operand(l, op, 2);
    straight(l);
    guarded_store(l, op, pointer, value, mask);
}

/* ---- tiles of pointers --------------------------------------------------------------------------------------------------------- */

typedef enum Access { ONE_ADDRESS, CONSECUTIVE, SCATTERED } Access;

/* How the lanes' addresses lie, and the coordinates at which to compute the address (all lanes' if scattered). */
static Access classify(Nest *n, const Value *pointer, const Coord *coords, Coord *at)
{
    const AxisInfo *axes = axis_of(n->l, pointer);
    Access access = ONE_ADDRESS;
    for (int i = 0; i < pointer->type->rank; i++) {
        at[i] = coords[i];
        if (!coords[i].stride || within_group(n, &coords[i], axes->constancy[i], pointer->type->shape[i]))
            continue;
        bool consecutive = coords[i].stride == 1 && access == ONE_ADDRESS &&
                           within_group(n, &coords[i], axes->contiguity[i], pointer->type->shape[i]);
        if (!consecutive)
            return SCATTERED;
        access = CONSECUTIVE;
        at[i].stride = 0;
    }
    return access;
}

/* ---- blocks: loads along the rows, transposed ------------------------------------------------------------------------------- */

/* The dimensions of a value that run along the nest's rows and lanes in a block; false where it is not in one. */
static bool find_block(const Nest *n, int rank, const Coord *coords, int *rows, int *lanes)
{
    *rows = *lanes = -1;
    for (int i = 0; i < rank && n->square; i++) {
        const Coord *row = &n->coords[n->block_dim];
        if (coords[i].stride == 1 && *lanes < 0)
            *lanes = i;
        else if (coords[i].stride)
            return false;
        else if (coords[i].base == row->base && coords[i].offset == row->offset && *rows < 0)
            *rows = i;
    }
    return *rows >= 0 && *lanes >= 0 && n->active == n->width;
}

/* Lane j of vector i becomes lane i of vector j: in each step the halves of pairs of vectors change places. */
static void transpose(Emit *e, LLVMValueRef *vectors, int width)
{
    int low[64], high[64];
    for (int distance = 1; distance < width; distance *= 2) {
        for (int lane = 0; lane < width; lane++) {
            bool upper = lane & distance;
            low[lane] = upper ? width + lane - distance : lane;
            high[lane] = upper ? width + lane : lane + distance;
        }
        for (int i = 0; i < width; i++) {
            if (i & distance)
                continue;
            LLVMValueRef a = vectors[i], b = vectors[i + distance];
            vectors[i] = emit_shuffle(e, a, b, low, width);
            vectors[i + distance] = emit_shuffle(e, a, b, high, width);
        }
    }
}

/* Where vector `lane` of the block begins: along the rows, at one place of the lanes. */
static void block_coords(const Nest *n, const Coord *coords, int rank, int rows, int lanes, int lane,
                         Coord *at)
{
    memcpy(at, coords, sizeof(Coord) * (size_t)rank);
    at[rows].offset = n->block_row;
    at[rows].stride = 1;
    at[lanes].stride = 0;
    at[lanes].offset += lane;
}

/* Keeps the rows of the transposed block where eval finds them; gives the current one. */
static Vec keep_rows(Nest *n, const Value *value, const Coord *coords, int rows, LLVMValueRef *vectors)
{
    Coord row[TT_MAX_RANK];
    int current = (int)(coords[rows].offset - n->block_row);
    memcpy(row, coords, sizeof(Coord) * (size_t)value->type->rank);
    for (int i = 0; i < n->width; i++) {
        row[rows].offset = n->block_row + i;
        if (i != current)
            remember_vec(n, value, row, (Vec){vectors[i], n->level, false});
    }
    return (Vec){vectors[current], n->level, false};
}

static bool load_block(Nest *n, Op *op, const Coord *coords, Vec *result)
{
    Value *pointer = tt_operand(op, 0);
    int rank = pointer->type->rank, rows, lanes;
    Coord at[TT_MAX_RANK], start[TT_MAX_RANK];
    LLVMValueRef vectors[64];
    if (!find_block(n, rank, coords, &rows, &lanes))
        return false;
    block_coords(n, coords, rank, rows, lanes, 0, at);
    if (classify(n, pointer, at, start) != CONSECUTIVE)
        return false;
    for (int i = 0; i < n->width; i++) {
        block_coords(n, coords, rank, rows, lanes, i, at);
        Vec vector = eval_load(n, op, at);
        vectors[i] = splat(n, vector);
    }
    at_level(n, n->level);
    transpose(n->e, vectors, n->width);
    *result = keep_rows(n, op->results[0], coords, rows, vectors);
    return true;
}

Vec read_value(Nest *n, const Value *value, const Coord *coords)
{
    const Buffer *buffer = info_of(value)->buffer;
    int rank = value->type->rank, rows, lanes;
    LLVMValueRef vectors[64];
    Coord at[TT_MAX_RANK];
    if (!find_block(n, rank, coords, &rows, &lanes) || rows != rank - 1)
        return read_buffer(n, buffer, coords);
    for (int i = 0; i < n->width; i++) {
        block_coords(n, coords, rank, rows, lanes, i, at);
        vectors[i] = splat(n, read_buffer(n, buffer, at));
    }
    at_level(n, n->level);
    transpose(n->e, vectors, n->width);
    return keep_rows(n, value, coords, rows, vectors);
}

/* ---- loads and stores --------------------------------------------------------------------------------------------------------- */

Vec eval_load(Nest *n, Op *op, const Coord *coords)
{
    Lower *l = n->l;
    Emit *e = n->e;
    Value *pointer = tt_operand(op, 0);
    const Type *type = op->results[0]->type;
    Coord at[TT_MAX_RANK];
    Access access = classify(n, pointer, coords, at);
    Vec transposed;
    if (access == SCATTERED && load_block(n, op, coords, &transposed))
        return transposed;
    if (access == SCATTERED)
        memcpy(at, coords, sizeof(Coord) * (size_t)type->rank);
    Vec address = eval(n, pointer, at), mask = eval_mask(n, op, 1, coords);
    Vec other = op->operand_count > 2 ? eval(n, tt_operand(op, 2), coords) : (Vec){NULL, 0, true};
    int level = TT_MAX(address.level, TT_MAX(mask.level, other.level));
    if (access == ONE_ADDRESS && address.uniform && mask.uniform && other.uniform) {
        at_level(n, level);
        return (Vec){guarded_load(l, op, address.v, mask.v, other.v), level, true};
    }
    LLVMValueRef addresses = access == CONSECUTIVE ? address.v : splat(n, address);
    LLVMValueRef lanes = mask_lanes(n, mask, level), fallback = other.v ? splat(n, other) : NULL;
    at_level(n, level);
    if (fallback)
        fallback = to_memory_form(e, fallback);
    LLVMTypeRef vector = widened(memory_type(e, type), n->width);
    begin_access(e, op);
    LLVMValueRef value = emit_masked_load(e, vector, addresses, lanes, fallback, tt_byte_width(type));
    end_access(e);
    if (tt_int_attr(op, ATTR_volatile, 0) && LLVMGetInstructionOpcode(value) == LLVMLoad)
        LLVMSetVolatile(value, true);
    return (Vec){to_register_form(e, value, type), level, false};
}

typedef struct StoreOperands {
    bool consecutive;
    Vec address, value, mask;
} StoreOperands;

static StoreOperands store_operands(Nest *n, Op *op)
{
    Coord at[TT_MAX_RANK];
    Value *pointer = tt_operand(op, 0);
    StoreOperands operands = {.consecutive = classify(n, pointer, n->coords, at) == CONSECUTIVE};
    operands.address = eval(n, pointer, operands.consecutive ? at : n->coords);
    operands.value = eval(n, tt_operand(op, 1), n->coords);
    operands.mask = eval_mask(n, op, 2, n->coords);
    return operands;
}

void eval_store(Nest *n, Op *op) { store_operands(n, op); }

void sink_store(Nest *n, Op *op)
{
    Emit *e = n->e;
    int align = tt_byte_width(tt_operand(op, 1)->type);
    StoreOperands operands = store_operands(n, op);
    if (!n->width) {
        at_level(n, n->level);
        guarded_store(n->l, op, operands.address.v, operands.value.v, operands.mask.v);
        return;
    }
    LLVMValueRef addresses = operands.consecutive ? operands.address.v : splat(n, operands.address);
    LLVMValueRef lanes = mask_lanes(n, operands.mask, n->level), values = splat(n, operands.value);
    at_level(n, n->level);
    values = to_memory_form(e, values);
    begin_access(e, op);
    if (n->streaming && !lanes)
        mark_streaming(e, emit_store(e, values, addresses, align), n->width * align);
    else
        emit_masked_store(e, values, addresses, lanes, align);
    end_access(e);
}

/* ---- tiles in scratch ---------------------------------------------------------------------------------------------------------- */

enum { WIDEST_PICK = 64 };

/* Every stride-th element, from one load of all of them. Reading past the end stays within the arena's slack. */
static LLVMValueRef pick_elements(Nest *n, LLVMTypeRef element, LLVMValueRef pointer, int64_t stride,
                                  int align)
{
    int indices[WIDEST_PICK], width = n->width;
    for (int i = 0; i < width; i++)
        indices[i] = (int)(i * stride);
    LLVMTypeRef all = widened(element, (int)tt_next_pow2((width - 1) * stride + 1));
    LLVMValueRef loaded = emit_load(n->e, all, pointer, align);
    return emit_shuffle(n->e, loaded, NULL, indices, width);
}

Vec read_buffer(Nest *n, const Buffer *buffer, const Coord *coords)
{
    Emit *e = n->e;
    LLVMTypeRef element = memory_type(e, buffer->type);
    int align = tt_byte_width(buffer->type);
    int64_t stride;
    Vec address = buffer_address(n, buffer, 0, coords, &stride);
    at_level(n, address.level);
    LLVMValueRef value;
    if (!stride) {
        value = emit_load(e, element, address.v, align);
        return (Vec){to_register_form(e, value, buffer->type), address.level, true};
    }
    if (stride == 1) {
        value = emit_load(e, widened(element, n->width), address.v, align);
    } else if (stride > 1 && (n->width - 1) * stride + 1 <= WIDEST_PICK) {
        value = pick_elements(n, element, address.v, stride, align);
    } else {
        LLVMValueRef lanes = const_lanes(e->i32, n->width, 0, stride);
        LLVMValueRef addresses = emit_index(e, element, address.v, lanes);
        value = emit_masked_load(e, widened(element, n->width), addresses, active_mask(n), NULL, align);
    }
    return (Vec){to_register_form(e, value, buffer->type), address.level, false};
}

void write_buffer(Nest *n, const Buffer *buffer, int64_t origin, const Coord *coords, Vec value)
{
    Emit *e = n->e;
    int align = tt_byte_width(buffer->type);
    int64_t stride;
    Vec address = buffer_address(n, buffer, origin, coords, &stride);
    LLVMValueRef values = stride ? splat(n, value) : value.v;
    at_level(n, n->level);
    values = to_memory_form(e, values);
    if (!stride) {
        emit_store(e, values, address.v, align);
    } else if (stride == 1) {
        emit_masked_store(e, values, address.v, active_mask(n), align);
    } else {
        LLVMValueRef lanes = const_lanes(e->i32, n->width, 0, stride);
        LLVMValueRef addresses = emit_index(e, memory_type(e, buffer->type), address.v, lanes);
        emit_masked_store(e, values, addresses, active_mask(n), align);
    }
}
