/* Builders: operations at a place, folded as they are built, and copies of others. module.c has the one primitive. */
#include "ir/ir.h"

Builder tt_builder_at_end(Region *region)
{
    return (Builder){.module = region->function->module, .region = region};
}

Builder tt_builder_before(Op *op)
{
    return (Builder){
        .module = op->parent->function->module, .region = op->parent, .before = op, .loc = op->loc};
}

Builder tt_builder_after(Op *op)
{
    Builder builder = tt_builder_before(op);
    builder.before = op->next;
    return builder;
}

const Type *tt_infer_type(Module *module, Opcode opcode, Value *const *operands)
{
    switch (tt_op_infos[opcode].rule) {
    case SAME:
        return operands[0]->type;
    case SELECT:
        return operands[1]->type;
    case COMPARE:
        return tt_with_element(module, operands[0]->type, tt_scalar_type(module, TT_I1));
    default:
        return opcode == OP_addptr ? operands[0]->type : NULL;
    }
}

Value *tt_build(Builder *b, Opcode opcode, Value *const *operands, int operand_count, const Type *type,
                Attr *attrs)
{
    if (!type)
        type = tt_infer_type(b->module, opcode, operands);
    TT_ASSERT(type);
    if (!b->raw) {
        Value *folded = tt_fold(b, opcode, operands, operand_count, type, attrs);
        if (folded)
            return folded;
    }
    return tt_build_op(b, opcode, operands, operand_count, &type, 1, attrs)->results[0];
}

Value *tt_build1(Builder *b, Opcode opcode, Value *x) { return tt_build(b, opcode, &x, 1, NULL, NULL); }

Value *tt_build2(Builder *b, Opcode opcode, Value *x, Value *y)
{
    return tt_build(b, opcode, (Value *[]){x, y}, 2, NULL, NULL);
}

Value *tt_build3(Builder *b, Opcode opcode, Value *x, Value *y, Value *z)
{
    return tt_build(b, opcode, (Value *[]){x, y, z}, 3, NULL, NULL);
}

Value *tt_build_cast(Builder *b, Opcode opcode, Value *x, const Type *element)
{
    return tt_build(b, opcode, &x, 1, tt_with_element(b->module, x->type, element), NULL);
}

static int64_t wrap_to_width(int64_t value, int bits)
{
    if (bits == 1)
        return value & 1;
    return bits == 64 ? value : (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

Value *tt_build_int(Builder *b, const Type *type, int64_t value)
{
    TT_ASSERT(tt_is_int(type));
    Attr *attr = tt_attr_int(b->module, ATTR_value, wrap_to_width(value, tt_bit_width(type)), NULL);
    return tt_build_op(b, OP_constant, NULL, 0, &type, 1, attr)->results[0];
}

Value *tt_build_float(Builder *b, const Type *type, double value)
{
    TT_ASSERT(tt_is_float(type));
    Attr *attr = tt_attr_float(b->module, ATTR_value, tt_round_to(type, value), NULL);
    return tt_build_op(b, OP_constant, NULL, 0, &type, 1, attr)->results[0];
}

Value *tt_build_range(Builder *b, int64_t start, int64_t end)
{
    Attr *attrs = tt_attr_int(b->module, ATTR_start, start, tt_attr_int(b->module, ATTR_end, end, NULL));
    int64_t extent = end - start;
    const Type *type = tt_tile_type(b->module, tt_scalar_type(b->module, TT_I32), &extent, 1);
    return tt_build(b, OP_range, NULL, 0, type, attrs);
}

Value *tt_build_splat(Builder *b, Value *scalar, const int64_t *shape, int rank)
{
    if (!rank)
        return scalar;
    return tt_build(b, OP_splat, &scalar, 1, tt_tile_type(b->module, scalar->type, shape, rank), NULL);
}

Value *tt_build_expand_dims(Builder *b, Value *x, int axis)
{
    if (!tt_is_tile(x->type))
        return tt_build_splat(b, x, (int64_t[]){1}, 1);
    int64_t shape[TT_MAX_RANK];
    TT_ASSERT(x->type->rank < TT_MAX_RANK && axis >= 0 && axis <= x->type->rank);
    for (int i = 0, from = 0; i <= x->type->rank; i++)
        shape[i] = i == axis ? 1 : x->type->shape[from++];
    const Type *type = tt_tile_type(b->module, x->type->element, shape, x->type->rank + 1);
    return tt_build(b, OP_expand_dims, &x, 1, type, tt_attr_int(b->module, ATTR_axis, axis, NULL));
}

Value *tt_build_broadcast(Builder *b, Value *x, const int64_t *shape)
{
    const Type *type = tt_tile_type(b->module, x->type->element, shape, x->type->rank);
    return type == x->type ? x : tt_build(b, OP_broadcast, &x, 1, type, NULL);
}

Value *tt_build_reshape(Builder *b, Value *x, const int64_t *shape, int rank)
{
    const Type *type = tt_tile_type(b->module, x->type->element, shape, rank);
    TT_ASSERT(type->count == x->type->count);
    return type == x->type ? x : tt_build(b, OP_reshape, &x, 1, type, NULL);
}

Value *tt_build_permute(Builder *b, Value *x, const int64_t *order)
{
    int64_t shape[TT_MAX_RANK];
    for (int i = 0; i < x->type->rank; i++)
        shape[i] = x->type->shape[order[i]];
    const Type *type = tt_tile_type(b->module, x->type->element, shape, x->type->rank);
    return tt_build(b, OP_permute, &x, 1, type,
                    tt_attr_ints(b->module, ATTR_order, order, x->type->rank, NULL));
}

Value *tt_build_addptr(Builder *b, Value *pointer, Value *offset)
{
    return tt_build(b, OP_addptr, (Value *[]){pointer, offset}, 2, pointer->type, NULL);
}

/* ---- copying ---------------------------------------------------------------------------------------------------- */

static Value *mapped(const Map *map, Value *value)
{
    Value *replacement = tt_map_find_ptr(map, value);
    return replacement ? replacement : value;
}

Op *tt_clone_op(Builder *b, const Op *op, Map *map)
{
    Module *module = b->module;
    Value **operands = TT_NEW_ARRAY(module->arena, Value *, op->operand_count);
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = mapped(map, tt_operand(op, i));
    const Type **types = TT_NEW_ARRAY(module->arena, const Type *, op->result_count);
    for (int i = 0; i < op->result_count; i++)
        types[i] = op->results[i]->type;
    const Loc *loc = b->loc;
    b->loc = op->loc;
    Op *copy = tt_build_op(b, op->opcode, operands, op->operand_count, types, op->result_count,
                           tt_copy_attrs(module, op->attrs));
    for (int i = 0; i < op->result_count; i++) {
        copy->results[i]->name = op->results[i]->name;
        copy->results[i]->layout = op->results[i]->layout;
        *tt_map_slot_ptr(map, op->results[i]) = copy->results[i];
    }
    for (int r = 0; r < op->region_count; r++) {
        const Region *from = op->regions[r];
        for (int i = 0; i < from->arg_count; i++) {
            Value *arg = tt_add_region_arg(copy->regions[r], from->args[i]->type);
            arg->name = from->args[i]->name;
            *tt_map_slot_ptr(map, from->args[i]) = arg;
        }
        Builder inner = tt_builder_at_end(copy->regions[r]);
        TT_FOR_OPS(inner_op, from)
        tt_clone_op(&inner, inner_op, map);
    }
    b->loc = loc;
    return copy;
}

void tt_clone_region_body(Builder *b, const Region *region, Map *map)
{
    TT_FOR_OPS(op, region)
    if (op != region->last || !tt_has(op, TERMINATOR))
        tt_clone_op(b, op, map);
}
