/* Shape operations. Layouts are assigned such that mostly each register of the result is one of an operand's in the same
 * thread; where that cannot be (reversals, extents that are no powers of two), the elements go through shared memory. */
#include "gpu/simt.h"

/* ---- in registers --------------------------------------------------------------------------------------------------------------------- */

static uint64_t coordinates_to_element(const LinearLayout *layout, const int64_t *coordinates)
{
    uint64_t element = 0;
    for (int axis = 0; axis < layout->rank; axis++)
        element |= (uint64_t)coordinates[axis] << tt_layout_axis_start(layout, axis);
    return element;
}

/* Element of operand *operand that element `element` of result `result` is. */
static uint64_t source_element(const Op *op, int result, uint64_t element, int *operand)
{
    const LinearLayout *from = tt_operand(op, 0)->layout, *to = op->results[result]->layout;
    int64_t c[TT_MAX_RANK] = {0}, d[TT_MAX_RANK] = {0};
    uint64_t columns[64], fixed;
    *operand = 0;
    switch (op->opcode) {
    case OP_broadcast:
        tt_layout_coordinates(to, element, c);
        for (int i = 0; i < from->rank; i++)
            c[i] &= (1ll << from->out_bits[i]) - 1;
        return coordinates_to_element(from, c);
    case OP_permute:
        tt_layout_coordinates(to, element, c);
        for (int i = 0; i < from->rank; i++)
            d[tt_find_attr(op, ATTR_order)->ints[i]] = c[i];
        return coordinates_to_element(from, d);
    case OP_join:
        *operand = (int)(element & 1);
        return element >> 1;
    case OP_split:
        return element << 1 | (uint64_t)result;
    case OP_cat: {
        int axis = (int)tt_int_attr(op, ATTR_axis, 0);
        tt_layout_coordinates(to, element, c);
        *operand = (int)(c[axis] >> from->out_bits[axis]);
        c[axis] &= (1ll << from->out_bits[axis]) - 1;
        return coordinates_to_element(from, c);
    }
    case OP_slice:
        tt_slice_bits(op, columns, &fixed);
        return tt_f2_apply(columns, element) | fixed;
    default: /* expand_dims, reshape */
        return element;
    }
}

static void move_registers(Simt *s, const Op *op)
{
    for (int i = 0; i < op->result_count; i++) {
        const Value *result = op->results[i];
        Tile *tile = simt_new_tile(s, simt_registers(result));
        for (int r = 0; r < tile->count; r++) {
            int operand;
            uint64_t element = result->layout ? tt_f2_apply(result->layout->bases, (uint64_t)r) : 0;
            element = source_element(op, i, element, &operand);
            const Value *source = tt_operand(op, operand);
            tile->at[r] = simt_tile(s, source)->at[tt_register_of(source->layout, element)];
        }
        simt_set(s, result, tile);
    }
}

/* Two scalars: which one an element is depends on where a thread stands. */
static void join_scalars(Simt *s, const Op *op)
{
    const Value *result = op->results[0];
    LLVMValueRef a = simt_scalar(s, tt_operand(op, 0)), b = simt_scalar(s, tt_operand(op, 1));
    Tile *tile = simt_new_tile(s, simt_registers(result));
    for (int r = 0; r < tile->count; r++) {
        LLVMValueRef coordinate = simt_coordinate(s, result->layout, 0, r);
        LLVMValueRef first = LLVMBuildICmp(s->b, LLVMIntEQ, coordinate, simt_i32(s, 0), "");
        tile->at[r] = LLVMBuildSelect(s->b, first, a, b, "");
    }
    simt_set(s, result, tile);
}

/* ---- through shared memory ------------------------------------------------------------------------------------------------------------ */

/* A number for each element: constant + the sum of coordinates times strides. */
typedef struct Numbering {
    int64_t strides[TT_MAX_RANK], constant;
} Numbering;

static Numbering row_major(const Type *type)
{
    Numbering n = {0};
    int64_t stride = 1;
    for (int axis = type->rank - 1; axis >= 0; axis--) {
        n.strides[axis] = stride;
        stride *= type->shape[axis];
    }
    return n;
}

static LLVMValueRef number_of(Simt *s, const Numbering *n, const LinearLayout *layout, int reg, int64_t scale)
{
    LLVMValueRef sum = simt_i32(s, n->constant * scale);
    for (int axis = 0; axis < layout->rank; axis++) {
        LLVMValueRef coordinate = simt_coordinate(s, layout, axis, reg);
        sum = simt_add(s, sum, simt_mul(s, coordinate, simt_i32(s, n->strides[axis] * scale)));
    }
    return sum;
}

void simt_store_numbered(Simt *s, const Value *value, const int64_t *strides, int64_t constant,
                         int64_t scratch)
{
    Numbering n = {.constant = constant};
    memcpy(n.strides, strides, sizeof(int64_t) * (size_t)value->type->rank);
    const Tile *tile = simt_tile(s, value);
    LLVMValueRef first = simt_is_first_copy(s, value->layout);
    for (int r = 0; r < tile->count; r++) {
        if (simt_is_register_copy(value->layout, r))
            continue;
        LLVMValueRef predicate = simt_and(s, first, simt_in_bounds(s, value->type, value->layout, r));
        LLVMValueRef place = number_of(s, &n, value->layout, r, tt_byte_width(value->type));
        simt_shared_store(s, place, scratch, tile->at[r], predicate);
    }
}

/* Padding reads the first element, which is there. */
static void load_numbered(Simt *s, const Value *value, const Numbering *n, int64_t scratch)
{
    Tile *tile = simt_new_tile(s, simt_registers(value));
    for (int r = 0; r < tile->count; r++) {
        LLVMValueRef place = number_of(s, n, value->layout, r, tt_byte_width(value->type));
        LLVMValueRef inside = simt_in_bounds(s, value->type, value->layout, r);
        if (inside)
            place = LLVMBuildSelect(s->b, inside, place, simt_i32(s, 0), "");
        tile->at[r] = simt_shared_load(s, place, scratch, simt_type(s, value->type));
    }
    simt_set(s, value, tile);
}

static void move_through_memory(Simt *s, const Op *op)
{
    const Value *result = op->results[0];
    int64_t scratch = tt_scratch_offset(op);
    Numbering load = row_major(result->type);
    for (int i = 0; i < op->operand_count; i++) {
        const Value *operand = tt_operand(op, i);
        Numbering store = row_major(op->opcode == OP_cat ? result->type : operand->type);
        if (i) {
            int axis = (int)tt_int_attr(op, ATTR_axis, 0);
            store.constant = store.strides[axis] * tt_operand(op, 0)->type->shape[axis];
        }
        if (op->opcode == OP_slice)
            for (int axis = 0; axis < result->type->rank; axis++) {
                load.constant += tt_find_attr(op, ATTR_offsets)->ints[axis] * store.strides[axis];
                load.strides[axis] = tt_find_attr(op, ATTR_strides)->ints[axis] * store.strides[axis];
            }
        simt_store_numbered(s, operand, store.strides, store.constant, scratch);
    }
    simt_sync(s);
    load_numbered(s, result, &load, scratch);
}

void simt_shape(Simt *s, const Op *op)
{
    if (op->opcode == OP_join && !tt_operand(op, 0)->layout)
        join_scalars(s, op);
    else if (tt_moves_elements(op))
        move_through_memory(s, op);
    else
        move_registers(s, op);
}
